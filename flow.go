package informer

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/deltaqueue"
	"github.com/rvinformer/informer/internal/follower"
	"github.com/rvinformer/informer/internal/intake"
	"github.com/rvinformer/informer/internal/keeper"
	"github.com/rvinformer/informer/internal/known"
	"github.com/rvinformer/informer/internal/object"
	"github.com/rvinformer/informer/internal/report"
	"github.com/rvinformer/informer/internal/rv"
	"github.com/rvinformer/informer/internal/sink"
)

// flow is one reflector feeding one delta queue feeding a consumer: what all the
// informers and controllers without a queue of the user's own are made of.
type flow struct {
	reflector *Reflector
	storage   *known.Versions
	// delivery hands what waits to the consumer.
	delivery delivery
	// skipUnchanged keeps objects from the consumer that a list shows unchanged.
	skipUnchanged bool
	// ordinary delivers as an ordinary informer does: every change, in order, in the
	// goroutine of run, so that a panic of the consumer reaches the caller.
	ordinary bool
	workers  int
	budget   *Budget
	// seed, if set, fills the storage at the beginning of each run.
	seed func()
	// claim makes what the runs write the informer's own until release.
	claim func(informer known.User) (release func(), err error)
	// keeper, if set, keeps what is acknowledged across restarts.
	keeper *keeper.Keeper
	intake intake.Intake

	synced chan struct{}

	mu sync.Mutex
	// queue is that of the run under way, or of the last one; nil before.
	queue   *deltaqueue.Queue
	running bool
	// release gives back what the run under way has claimed.
	release func()
}

// run lists, watches and processes until ctx ends. It returns after every
// goroutine that it started.
//
// It is on the stack while a watch is idle: see session.step.
func (f *flow) run(ctx context.Context) {
	r, err := f.begin(ctx)
	if err != nil {
		f.refuse(err)
		return
	}
	// The reflector may end the goroutine, as a failed assertion of a test in an ErrorHandler does.
	defer r.end()
	defer r.wait()
	defer r.stop()
	r.start()
	if f.ordinary {
		r.deliverHere()
		return
	}
	r.follower.Run(r.ctx, &r.from)
}

// deliverHere delivers, and has the reflector run beside it, which ends before a panic
// of the consumer goes further.
func (r *flowRun) deliverHere() {
	r.helpers.Go(func() {
		defer r.stop()
		r.follower.Run(r.ctx, &r.from)
	})
	deliverAll(r.ctx, r.queue, r.delivery)
}

// flowRun is a run of a flow that is under way.
type flowRun struct {
	*flow
	ctx              context.Context
	stop             context.CancelFunc
	queue            *deltaqueue.Queue
	follower         *follower.Follower
	from             follower.Origin
	helpers, workers sync.WaitGroup
}

// start makes what the run needs, and what runs beside the reflector.
func (r *flowRun) start() {
	r.reflector.report.BeginRun()
	if r.seed != nil {
		r.seed()
	}
	acknowledged, resume := r.acknowledged(), ""
	if r.keeper != nil {
		resume = r.keeper.Begin(r.ctx, acknowledged)
	}
	if resume != "" {
		acknowledged = resume
	}
	r.queue = r.newQueue(acknowledged, resume != "")
	if r.keeper != nil {
		r.help(func() { r.keeper.Run(r.ctx, r.queue) })
	}
	r.follower = r.reflector.newFollower(r.sink(r.queue))
	r.from = follower.Origin{Known: r.newestKnown(), Resume: resume, Resumed: r.follow, Objects: r.knownObjects}
}

// follow notes that the server has accepted the version that the run goes on from.
func (r *flowRun) follow() {
	r.reflector.report.Resumed(r.from.Resume)
	r.queue.Follow()
}

// knownObjects returns some objects that the server had, by what was read of it last. Those
// that wait in the queue have changed since.
func (r *flowRun) knownObjects() []object.Known {
	return r.storage.Sample(r.queue.Holds)
}

// help runs f beside the reflector, and again if a callback in it has ended its goroutine.
func (r *flowRun) help(f func()) {
	r.helpers.Go(func() {
		returned := false
		defer func() {
			if !returned && r.ctx.Err() == nil {
				r.help(f)
			}
		}()
		f()
		returned = true
	})
}

// hire starts a worker.
func (r *flowRun) hire() {
	r.workers.Go(func() { deliverAll(r.ctx, r.queue, r.delivery) })
}

func (r *flowRun) wait() {
	r.workers.Wait()
	r.helpers.Wait()
}

func (r *flowRun) end() {
	defer r.ended()
	if r.queue == nil { // it did not start
		r.reflector.report.Enter(PhaseStopped)
		if r.keeper != nil {
			r.keeper.Release()
		}
		return
	}
	defer r.queue.Close()
	if r.keeper != nil {
		r.keeper.End(r.ctx, r.queue)
	}
}

// acknowledged is the resource version up to which the runs before have acknowledged
// everything, if another run can go on from there without a list.
func (f *flow) acknowledged() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.queue == nil {
		return ""
	}
	return keeper.SafePoint(f.queue, true)
}

// newestKnown is the newest resource version that the storage has or that was read.
func (f *flow) newestKnown() string {
	last := f.reflector.LastSyncResourceVersion()
	known := rv.Newest(f.storage.Newest(), last)
	if known == "" { // no order in them: what was seen last was the newest
		return last
	}
	return known
}

// sink is where the reflector puts what it reads.
func (f *flow) sink(queue *deltaqueue.Queue) sink.Sink {
	if f.keeper == nil {
		return f.intake.Into(queue, nil)
	}
	return f.intake.Into(queue, func() func(bool) { return f.keeper.BeginList(queue) })
}

// begin notes that a run is under way. It is to be ended.
func (f *flow) begin(ctx context.Context) (*flowRun, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running {
		return nil, report.ErrAlreadyRunning
	}
	release, err := f.claim(f.reflector)
	if err != nil {
		return nil, err
	}
	f.running, f.release = true, release
	f.reflector.budget = f.budget.orDefault().shared
	r := &flowRun{flow: f}
	r.ctx, r.stop = context.WithCancel(ctx)
	return r, nil
}

// refuse reports why a run did not begin. The status stays that of the run under way, if there
// is one.
func (f *flow) refuse(err error) {
	err = fmt.Errorf("%s: %w", f.reflector.name, err)
	if errors.Is(err, report.ErrAlreadyRunning) {
		f.reflector.report.Handler(err)
		return
	}
	f.reflector.report.Fail(err)
	f.reflector.report.Enter(PhaseStopped)
}

// newQueue makes the queue of the run, which goes on from the resource version up to
// which everything is acknowledged, with a list or, resumed, without.
func (r *flowRun) newQueue(acknowledged string, resumed bool) *deltaqueue.Queue {
	f := r.flow
	if f.keeper != nil {
		f.storage.Attach(f.keeper.Journal(), f.keeper.Changed)
	} else {
		f.storage.Attach(nil, nil)
	}
	opts := deltaqueue.Options{
		Known:         f.storage,
		Limit:         max(deltaqueue.DefaultLimit, 2*f.delivery.most()), // a batch waits while one is handled
		SkipUnchanged: f.skipUnchanged,
		EveryChange:   f.ordinary,
		Tombstones:    f.reflector.resource != nil,
		Budget:        f.budget.orDefault().shared,
		Synced:        f.synced,
		Resume:        acknowledged,
		Resumed:       resumed,
		Stuck:         func(is bool) { r.follower.Stuck(is) },
	}
	if !f.ordinary {
		opts.Workers, opts.Hire = f.workers, r.hire
	}
	queue := deltaqueue.New(opts)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = queue
	return queue
}

// ended notes that no run is under way.
func (f *flow) ended() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = false
	f.release()
}

func (f *flow) status() Status {
	s := statusOf(f.reflector.report.Snapshot())
	s.Synced = cache.IsDone(f.syncedChecker())
	s.Objects = f.storage.Len()
	f.mu.Lock()
	queue := f.queue
	f.mu.Unlock()
	if queue != nil {
		s.Queued, s.QueuedBytes = queue.Len()
		s.ResourceVersion = queue.ResumePoint()
	}
	return s
}

func (f *flow) syncedChecker() cache.DoneChecker {
	return doneChecker{name: f.reflector.name, done: f.synced}
}

// deltas returns what an entry says of a key as client-go's queues hand it out, with
// a tombstone where the final state is not known, and before an object that took the
// place of another of its name.
func (f *flow) deltas(key string, seen []deltaqueue.Delta) (deltas cache.Deltas) {
	last, exists := f.storage.Get(key)
	for _, d := range seen {
		unseen := d.FinalStateUnknown()
		replaced := exists && d.Type != cache.Deleted && !last.SameObject(d.Version)
		if unseen || replaced {
			deltas = append(deltas, cache.Delta{Type: cache.Deleted, Object: f.intake.Tombstone(key, last)})
		}
		if !unseen {
			deltas = append(deltas, cache.Delta{Type: d.Type, Object: d.Object})
		}
		exists = exists && d.Type != cache.Deleted
	}
	return deltas
}

// doneChecker is a cache.DoneChecker over a channel.
type doneChecker struct {
	name string
	done <-chan struct{}
}

func (d doneChecker) Name() string          { return d.name }
func (d doneChecker) Done() <-chan struct{} { return d.done }
