package flow

import (
	"context"
	"fmt"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/audit"
)

// Audit compares what is acknowledged with what server has. With repair, what differs is listed
// again, and delivered as ever.
func (f *Flow) Audit(ctx context.Context, server audit.Server, bytesPerSecond int64, repair bool) (audit.Report, error) {
	r, err := f.current()
	if err != nil {
		return audit.Report{}, err
	}
	deletions := audit.NewDeletions()
	r.queue.OnDeletion(deletions.Add)
	defer r.queue.OnDeletion(nil)
	found, err := audit.Run(ctx, audit.Options{
		Copy: f.Versions, Server: server, Informer: audited{r}, Deletions: deletions, BytesPerSecond: bytesPerSecond,
	})
	if err != nil || !repair || found.Count() == 0 {
		return found, err
	}
	newest := r.queue.Generation() // before Relist, which may have begun the next one when it returns
	r.follower.Relist()
	if err := r.queue.AwaitList(ctx, newest); err != nil {
		return found, fmt.Errorf("waiting until what differs was delivered: %w", err)
	}
	found.MarkRepaired(f.Versions)
	return found, nil
}

// current returns the run under way, if all that it has read at first is delivered.
func (f *Flow) current() (*run, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state.stage != following {
		return nil, api.ErrNotRunning
	}
	select {
	case <-f.synced:
		return f.state.run, nil
	default:
		return nil, api.ErrNotSynced
	}
}

// audited is a run as an audit sees it.
type audited struct{ *run }

func (a audited) Acknowledged() string { return a.queue.ResumePoint() }

func (a audited) Await(ctx context.Context, resourceVersion string) error {
	return a.WaitUntil(ctx, resourceVersion, nil)
}
