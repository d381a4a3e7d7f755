// Package flow is one run after another of a follower that feeds a delta queue that feeds a consumer.
// All informers, and the controllers without a queue of the user's own, are made of it.
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

	"github.com/rvinformer/informer/internal/budget"
	"github.com/rvinformer/informer/internal/deltaqueue"
	"github.com/rvinformer/informer/internal/follower"
	"github.com/rvinformer/informer/internal/intake"
	"github.com/rvinformer/informer/internal/keeper"
	"github.com/rvinformer/informer/internal/known"
	"github.com/rvinformer/informer/internal/report"
	"github.com/rvinformer/informer/internal/rv"
	"github.com/rvinformer/informer/internal/sink"
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
	// Keeper, if set, keeps what is acknowledged across restarts.
	Keeper *keeper.Keeper
	// Claim makes what the runs write the informer's own until release.
	Claim func() (release func(), err error)
	// Seed, if set, fills the versions at the beginning of each run.
	Seed func()
	// Beside, if set, is called beside each run, and returns when ctx ends.
	Beside func(ctx context.Context)
	// SkipUnchanged keeps objects from the consumer that a list shows unchanged.
	SkipUnchanged bool
	// Ordinary delivers as an ordinary informer does: every change, in order, in the
	// goroutine of Run, so that a panic of the consumer reaches the caller.
	Ordinary bool
	// Workers is how many consumers there may be at a time if it is not Ordinary.
	Workers int
	Budget  *budget.Budget
	// Tombstones tells that every object has a UID of its own.
	Tombstones bool
}

// Flow is one follower feeding one delta queue feeding a consumer.
type Flow struct {
	Options
	synced chan struct{}

	mu sync.Mutex
	// queue is that of the run under way, or of the last one; nil before.
	queue   *deltaqueue.Queue
	running bool
	// underWay is the run whose queue it is, nil without one.
	underWay *run
	// release gives back what the run under way has claimed.
	release func()
}

// New returns a flow.
func New(options Options) *Flow {
	f := &Flow{Options: options, synced: make(chan struct{})}
	f.Report.Consumer = f
	return f
}

// Run lists, watches and processes until ctx ends. It returns after every
// goroutine that it started.
//
// It is on the stack while a watch is idle: see follower.Follower.
func (f *Flow) Run(ctx context.Context) {
	r, err := f.begin(ctx)
	if err != nil {
		f.refuse(err)
		return
	}
	// A callback may end the goroutine, as a failed assertion of a test in an ErrorHandler does.
	defer r.end()
	defer r.wait()
	defer r.stop()
	r.start()
	if f.Ordinary {
		r.deliverHere()
		return
	}
	r.follower.Run(r.ctx, &r.from)
}

// Synced is closed when the first complete list has been delivered.
func (f *Flow) Synced() <-chan struct{} { return f.synced }

// Queued returns how many keys have deltas that are not acknowledged, their bytes, and the resource
// version up to which everything is acknowledged.
func (f *Flow) Queued() (keys int, bytes int64, resourceVersion string) {
	f.mu.Lock()
	queue := f.queue
	f.mu.Unlock()
	if queue == nil {
		return 0, 0, ""
	}
	keys, bytes = queue.Len()
	return keys, bytes, queue.ResumePoint()
}

// Delivery returns how far the consumer has come.
func (f *Flow) Delivery() report.Delivery {
	f.mu.Lock()
	queue := f.queue
	f.mu.Unlock()
	d := report.Delivery{}
	select {
	case <-f.synced:
		d.Synced = true
	default:
	}
	if queue != nil {
		d.Queued, _ = queue.Len()
		d.Retrying = queue.Retrying()
	}
	return d
}

// Look returns what is known of a key, and what waits, and whether the consumer has failed to acknowledge another version since.
func (f *Flow) Look(key string) (l deltaqueue.Look, unsettled bool) {
	f.mu.Lock()
	queue := f.queue
	f.mu.Unlock()
	if queue != nil {
		l = queue.Look(key)
		_, _, unsettled = f.Versions.Delivered(key)
	} else {
		l.Known, l.Exists, unsettled = f.Versions.Delivered(key)
	}
	return l, unsettled
}

// acknowledged is the resource version up to which the runs before have acknowledged
// everything, if another run can go on from there without a list.
func (f *Flow) acknowledged() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.queue == nil {
		return ""
	}
	return keeper.SafePoint(f.queue, true)
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
func (f *Flow) begin(ctx context.Context) (*run, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running {
		return nil, report.ErrAlreadyRunning
	}
	release, err := f.Claim()
	if err != nil {
		return nil, err
	}
	f.running, f.release = true, release
	r := &run{Flow: f}
	r.ctx, r.stop = context.WithCancel(ctx)
	return r, nil
}

// refuse reports why a run did not begin. The status stays that of the run under way, if there
// is one.
func (f *Flow) refuse(err error) {
	err = fmt.Errorf("%s: %w", f.Name, err)
	if errors.Is(err, report.ErrAlreadyRunning) {
		f.Report.Handler(err)
		return
	}
	f.Report.Fail(err)
	f.Report.Enter(report.Stopped)
}

// ended notes that no run is under way.
func (f *Flow) ended() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running, f.underWay = false, nil
	f.release()
}
