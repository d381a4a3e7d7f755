package flow

import (
	"context"
	"sync"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/engine/follower"
	"github.com/rvinformer/informer/internal/engine/object"
)

// run is a run of a flow that is under way.
type run struct {
	*Flow
	// ctx is that of the workers and helpers. It ends with the run. Known is the context of the user's
	// Run, which a caller of Redeliver may use too.
	ctx, known context.Context
	stop       context.CancelFunc
	queue      *deltaqueue.Queue
	follower   *follower.Follower
	from       follower.Origin
	// release gives back what the run has claimed.
	release          func()
	helpers, workers sync.WaitGroup
	// isEnding tells that no other helper may be started. It belongs to the lock of the flow.
	isEnding bool
}

// deliverHere delivers, and has the reflector run beside it, which ends before a panic
// of the consumer goes further.
func (r *run) deliverHere() {
	r.helpers.Go(func() {
		defer r.stop()
		r.follower.Run(r.ctx, &r.from)
	})
	r.deliverAll(r.ctx, r.queue)
}

// start makes what the run needs, and what runs beside the reflector.
func (r *run) start() {
	r.Report.LogTo(r.ctx)
	r.Report.BeginRun()
	if r.Seed != nil {
		r.Seed()
	}
	acknowledged, resume := r.acknowledged(), ""
	if r.Keeper != nil {
		resume = r.Keeper.Begin(r.ctx, acknowledged)
	} else {
		r.Versions.Confine(r.Shard)
	}
	if resume != "" {
		acknowledged = resume
	}
	r.queue = r.newQueue(acknowledged, resume != "")
	if r.Keeper != nil {
		r.help(func() { r.Keeper.Run(r.ctx, r.queue) })
	}
	r.follower = r.Follow(r.sink(r.queue))
	r.from = follower.Origin{Known: r.newestKnown(), Resume: resume, Resumed: r.follow, Objects: r.knownObjects, Latest: r.latestObjects}
	r.publish()
	if r.Beside != nil {
		r.help(func() { r.Beside(r.ctx) })
	}
}

// publish lets audits see the run.
func (r *run) publish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = state{following, r}
	if r.again != nil && r.Objects != nil {
		r.goOnRedelivering(r.again)
	}
}

// noteEnded notes that no run is under way.
func (r *run) noteEnded() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = state{stage: ended}
	r.waiting.Stop()
	r.release()
}

// follow notes that the server has accepted the version that the run goes on from.
func (r *run) follow() {
	r.Report.Resumed(r.from.Resume)
	r.queue.Follow()
}

// knownObjects returns some objects that the server had, by what was read of it last. Those
// that wait in the queue have changed since.
func (r *run) knownObjects() []object.Known {
	return r.Versions.Sample(r.queue.Holds)
}

// latestObjects returns the objects with the newest versions, but for those that wait in the queue.
func (r *run) latestObjects() []object.Known { return r.Versions.Latest(r.queue.Holds) }

// help runs f beside the reflector, and again if a callback in it has ended its goroutine.
func (r *run) help(f func()) {
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
func (r *run) hire() {
	r.workers.Go(func() {
		r.Report.Attend()
		defer r.Report.Rest()
		r.deliverAll(r.ctx, r.queue)
	})
}

// wait waits for the helpers first: one that puts a repeat may have a worker hired.
func (r *run) wait() {
	r.helpers.Wait()
	r.workers.Wait()
}

// finish stops the run, and returns after every goroutine that it started.
func (r *run) finish() {
	defer r.end()
	defer r.wait()
	r.stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isEnding = true
}

func (r *run) end() {
	defer r.noteEnded()
	defer r.Report.Enter(api.PhaseStopped)
	if r.queue == nil { // it did not start
		if r.Keeper != nil {
			r.Keeper.Release()
		}
		return
	}
	defer r.queue.Close()
	if r.Keeper != nil {
		r.Keeper.End(r.ctx, r.queue)
	}
}

// newQueue makes the queue of the run, which goes on from the resource version up to
// which everything is acknowledged, with a list or, resumed, without.
func (r *run) newQueue(acknowledged string, resumed bool) *deltaqueue.Queue {
	f := r.Flow
	if f.Keeper != nil {
		f.Versions.Attach(f.Keeper.Journal(), f.Keeper.Changed)
	} else {
		f.Versions.Attach(nil, nil)
	}
	opts := deltaqueue.Options{
		Known:         f.Versions,
		Limit:         max(deltaqueue.DefaultLimit, 2*f.Consumer.Max()), // a batch waits while one is handled
		SkipUnchanged: f.SkipUnchanged,
		EveryChange:   f.Ordinary,
		Tombstones:    f.Tombstones,
		Budget:        f.Budget,
		Synced:        f.synced,
		NoteSynced:    f.Report.NoteSynced,
		Resume:        acknowledged,
		Resumed:       resumed,
		Starved:       f.Report.Starved,
		Current:       f.currentAsOf(),
		Waiting:       &f.waiting,
	}
	if !f.Ordinary {
		opts.Workers, opts.Hire = f.Workers, r.hire
	}
	queue := deltaqueue.New(opts)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = queue
	return queue
}
