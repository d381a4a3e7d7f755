package flow

import (
	"context"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/edge/audit"
	"github.com/rvinformer/informer/internal/engine/known"
)

// Audited returns the run under way as an audit sees it, if all that it has read at first is
// delivered.
func (f *Flow) Audited() (audit.Informer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state.stage != following {
		return nil, api.ErrNotRunning
	}
	if !f.isSynced() {
		return nil, api.ErrNotSynced
	}
	return audited{f.Versions, f.state.run}, nil
}

// audited is a run as an audit sees it.
type audited struct {
	*known.Versions
	run *run
}

func (a audited) OnDeletion(deleted func(key, resourceVersion string)) (stop func()) {
	a.run.queue.OnDeletion(deleted)
	return func() { a.run.queue.OnDeletion(nil) }
}

func (a audited) Acknowledged() string { return a.run.queue.ResumePoint() }

func (a audited) Told() string { return a.run.queue.ToldPoint() }

func (a audited) Await(ctx context.Context, resourceVersion string) error {
	return a.run.WaitUntil(ctx, resourceVersion, nil)
}

func (a audited) AwaitRead(ctx context.Context) error { return a.run.queue.AwaitPut(ctx) }

func (a audited) News() (news int64, watches bool) { return a.run.Report.News() }

func (a audited) ListAgain(ctx context.Context) error {
	newest := a.run.queue.Generation() // before Relist, which may have begun the next one when it returns
	a.run.follower.Relist()
	return a.run.queue.AwaitList(ctx, newest)
}
