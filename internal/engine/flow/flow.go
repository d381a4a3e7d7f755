// Package flow is one run after another of a follower that feeds a delta queue that feeds a
// consumer. All informers, and the controllers without a queue of the user's own, are made of it.
//
// A Flow outlives its runs, and remembers what the consumer has acknowledged. The consumer of a
// flow takes the deltas of one key at a time (Keys), or notices of many keys (Batches). The root
// package turns notices into calls of handlers.
package flow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/engine/follower"
	"github.com/rvinformer/informer/internal/engine/intake"
	"github.com/rvinformer/informer/internal/engine/keeper"
	"github.com/rvinformer/informer/internal/engine/known"
	"github.com/rvinformer/informer/internal/engine/sink"
	"github.com/rvinformer/informer/internal/engine/source"
	"github.com/rvinformer/informer/internal/leaf/budget"
	"github.com/rvinformer/informer/internal/leaf/moment"
	"github.com/rvinformer/informer/internal/leaf/rv"
	"github.com/rvinformer/informer/internal/leaf/waiting"
)

// Options configure a Flow.
type Options struct {
	Name     string
	Report   *report.Report
	Versions *known.Versions
	Intake   intake.Intake
	Consumer Consumer
	// Follow returns the follower of a run, which puts what it reads into a sink.
	Follow func(into sink.Sink) *follower.Follower
	// Shard is the part of the set that is followed.
	Shard api.Shard
	// Namespace has all keys of the set, if it is not empty.
	Namespace string
	// Keeper, if set, keeps what is acknowledged across restarts.
	Keeper *keeper.Keeper
	// Claim makes what the runs write the informer's own until release.
	Claim func() (release func(), err error)
	// Seed, if set, fills the versions at the beginning of each run.
	Seed func()
	// Beside, if set, is called beside each run, and returns when ctx ends.
	Beside func(ctx context.Context)
	// Objects returns the followed objects that a label selector selects, for a
	// redelivery. It is nil for a flow that has none.
	Objects func(selector string) (*source.Objects, error)
	// SkipUnchanged keeps objects from the consumer that a list shows unchanged.
	SkipUnchanged bool
	// Tombstones tells that every object has a UID of its own.
	Tombstones bool
	// Ordinary delivers as an ordinary informer does: every change, in order, in the
	// goroutine of Run, so that a panic of the consumer reaches the caller.
	Ordinary bool
	// Workers is how many consumers there may be at a time if it is not Ordinary.
	Workers int
	// MaxAttempts is after how many failures by itself an event is a dead letter, zero for never but
	// after panics. MaxDeadLetters is how many there may be, zero for a consumer that drops them.
	MaxAttempts, MaxDeadLetters int32
	Budget                      *budget.Budget
}

// Flow is one follower feeding one delta queue feeding a consumer.
type Flow struct {
	Options
	synced chan struct{}
	// waiting are the callers of WaitUntil.
	waiting waiting.Line
	// destination is where the consumer puts things.
	destination atomic.Pointer[destination]

	mu    sync.Mutex
	state state
	// queue is that of the run under way, or of the last one; nil before.
	queue *deltaqueue.Queue
	// again is the redelivery that is under way, or that the next run goes on with; nil without one.
	again *again
}

// state is how far the runs of a flow have come.
type state struct {
	stage stage
	// run is the one that is following, nil in the other stages.
	run *run
}

type stage int

const (
	// The zero value: no run has begun.
	_ stage = iota
	// starting: a run has begun, and audits do not see it yet.
	starting
	// following: the run has its queue and its follower.
	following
	// ended: a run has ended, and none is under way.
	ended
)

// New returns a flow.
func New(options Options) *Flow {
	f := &Flow{Options: options, synced: make(chan struct{})}
	f.Report.Consumer = f
	if f.Keeper != nil {
		f.Keeper.Redelivery = f
	}
	return f
}

// Run lists, watches and processes until ctx ends. It returns after every
// goroutine that it started.
//
// It is on the stack while a watch is idle: see follower.Follower.
func (f *Flow) Run(ctx context.Context) { f.RunWithin(ctx, ctx) }

// RunWithin is Run in a context that was made of the one that the caller of Redeliver may know, and
// that ends with it, but an instant later.
func (f *Flow) RunWithin(ctx, known context.Context) {
	r := f.beginOrRefuse(ctx, known)
	if r == nil {
		return
	}
	// A callback may end the goroutine, as a failed assertion of a test in an ErrorHandler does.
	defer r.finish()
	r.start()
	if f.Ordinary {
		r.deliverHere()
		return
	}
	r.follower.Run(ctx, &r.from) // not r.ctx, which is to be without children while only the follower waits
}

// Synced is closed when the first complete list has been delivered.
func (f *Flow) Synced() <-chan struct{} { return f.synced }

// isSynced reports whether the first complete list has been delivered.
func (f *Flow) isSynced() bool {
	select {
	case <-f.synced:
		return true
	default:
		return false
	}
}

// lastQueue returns the queue of the run under way, or of the last one; nil before.
func (f *Flow) lastQueue() *deltaqueue.Queue {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.queue
}

// Snapshot returns how far the informer has come, what waits for its consumer, and what holds it up.
func (f *Flow) Snapshot() report.Snapshot {
	s := f.Report.Snapshot()
	s.Synced = f.isSynced()
	s.Objects = f.Versions.Len()
	s.DeadLetters, _ = f.Versions.Dead()
	if queue := f.lastQueue(); queue != nil {
		s.Queued, s.QueuedBytes = queue.Len()
		s.ResourceVersion = queue.ResumePoint()
		current, oldest := queue.Times()
		s.CurrentAsOf, s.OldestQueued = current.Time(), oldest.Time()
	}
	s.Shard = f.Shard
	s.Counts.StoredBytes = f.Versions.SizeBytes()
	s.Condition = f.Report.Condition()
	s.Redelivery = f.Redelivery()
	return s
}

// currentAsOf is the newest moment for which everything that the server had then is known to be
// acknowledged by the runs before, zero if there is none.
func (f *Flow) currentAsOf() moment.Moment {
	queue := f.lastQueue()
	if queue == nil {
		return 0
	}
	current, _ := queue.Times()
	return current
}

// reached is the resource version up to which everything is acknowledged, empty before the first run.
func (f *Flow) reached() string {
	queue := f.lastQueue()
	if queue == nil {
		return ""
	}
	return queue.ResumePoint()
}

// WaitUntil waits until everything up to a resource version is acknowledged. Gone, if it is not
// nil, is closed when no other run will follow. The error is an *api.WaitError.
func (f *Flow) WaitUntil(ctx context.Context, resourceVersion string, gone <-chan struct{}) error {
	return f.waiting.Until(ctx, waiting.Wait{
		Informer:        f.Name,
		ResourceVersion: resourceVersion,
		Check:           f.reach,
		Reached:         f.reached,
		Gone:            gone,
	})
}

// reach ends the waits for what is acknowledged already, and all if no run is under way after one.
func (f *Flow) reach() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.queue != nil {
		f.queue.Reach()
	}
	if f.state.stage == ended {
		f.waiting.Stop()
	}
}

// Subject is the name of the informer.
func (f *Flow) Subject() string { return f.Name }

// Delivery returns how far the consumer has come.
func (f *Flow) Delivery() report.Delivery {
	d := report.Delivery{Synced: f.isSynced()}
	if queue := f.lastQueue(); queue != nil {
		d.Queued, _ = queue.Len()
		d.Retrying = queue.Retrying()
		_, d.Oldest = queue.Times()
	}
	d.DeadLetters, d.DeadLetter = f.Versions.Dead()
	d.DeadLettersFull = d.DeadLetters > 0 && d.DeadLetters >= int(f.MaxDeadLetters)
	return d
}

// Pending says what the end of a run waits for.
func (f *Flow) Pending() string {
	queue := f.lastQueue()
	if queue == nil {
		return ""
	}
	switch key, keys := queue.Taken(); {
	case keys == 1:
		return fmt.Sprintf("the handler, which has %q", key)
	case keys > 1:
		return fmt.Sprintf("the handler, which has %q and %d more keys", key, keys-1)
	case f.Keeper != nil:
		return "the checkpoint to be saved"
	}
	return ""
}

// acknowledged is the resource version up to which the runs before have acknowledged
// everything, if another run can go on from there without a list.
func (f *Flow) acknowledged() string {
	queue := f.lastQueue()
	if queue == nil {
		return ""
	}
	return keeper.SafePoint(queue, true)
}

// newestKnown returns the newest resource version that is stored or was read.
func (f *Flow) newestKnown() string {
	last := f.Report.LastResourceVersion()
	newest := rv.Newest(f.Versions.Newest(), last)
	if newest == "" { // without an order, the one that was seen last is the newest
		return last
	}
	return newest
}

// sink returns the sink of the follower.
func (f *Flow) sink(queue *deltaqueue.Queue) sink.Sink {
	if f.Keeper == nil {
		return f.Intake.Into(queue, nil)
	}
	return f.Intake.Into(queue, func() func(bool) { return f.Keeper.BeginList(queue) })
}

// begin notes that a run is under way. It is to be ended.
func (f *Flow) begin(ctx, known context.Context) (*run, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state.stage == starting || f.state.stage == following {
		return nil, api.ErrAlreadyRunning
	}
	release, err := f.Claim()
	if err != nil {
		return nil, err
	}
	f.state = state{stage: starting}
	r := &run{Flow: f, release: release, known: known}
	r.ctx, r.stop = context.WithCancel(ctx)
	return r, nil
}

// beginOrRefuse returns nil if a run cannot begin.
func (f *Flow) beginOrRefuse(ctx, known context.Context) *run {
	r, err := f.begin(ctx, known)
	if err != nil {
		f.refuse(err)
		return nil
	}
	return r
}

// refuse reports why a run did not begin. The status stays that of the run under way, if there
// is one.
func (f *Flow) refuse(err error) {
	err = fmt.Errorf("%s: %w", f.Name, err)
	if errors.Is(err, api.ErrAlreadyRunning) {
		f.Report.Handler(err)
		return
	}
	f.Report.Fail(err)
	f.Report.Enter(api.PhaseStopped)
}
