package flow

import (
	"context"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/known"
)

// Running is a run as what goes on beside it sees it: what is acknowledged, and how far the run is. It
// is all that an audit needs of the engine.
type Running struct {
	*known.Versions
	run *run
}

// Running returns the run under way, if all that it has read at first is delivered.
func (f *Flow) Running() (Running, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state.stage != following {
		return Running{}, api.ErrNotRunning
	}
	if !f.isSynced() {
		return Running{}, api.ErrNotSynced
	}
	return Running{f.Versions, f.state.run}, nil
}

// OnDeletion has deleted called with the key and the resource version of each deletion, before it is
// acknowledged, until stop. An empty key stands for deletions that are not told one by one.
func (r Running) OnDeletion(deleted func(key, resourceVersion string)) (stop func()) {
	r.run.queue.OnDeletion(deleted)
	return func() { r.run.queue.OnDeletion(nil) }
}

// Acknowledged returns the resource version up to which everything is acknowledged.
func (r Running) Acknowledged() string { return r.run.queue.ResumePoint() }

// Told is Acknowledged, or an older version: no change of a version up to it can come any more.
func (r Running) Told() string { return r.run.queue.ToldPoint() }

// Await returns when everything up to a resource version is acknowledged.
func (r Running) Await(ctx context.Context, resourceVersion string) error {
	return r.run.WaitUntil(ctx, resourceVersion, nil)
}

// AwaitRead returns when everything that was read by now is acknowledged.
func (r Running) AwaitRead(ctx context.Context) error { return r.run.queue.AwaitPut(ctx) }

// News returns a number that grows with each event, list and failure, and whether the run watches.
func (r Running) News() (news int64, watches bool) { return r.run.Report.News() }

// ListAgain has the server listed, and returns when all of that list is acknowledged.
func (r Running) ListAgain(ctx context.Context) error {
	newest := r.run.queue.Generation() // before Relist, which may have begun the next one when it returns
	r.run.follower.Relist()
	return r.run.queue.AwaitList(ctx, newest)
}
