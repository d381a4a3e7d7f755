package deltaqueue

import (
	"context"

	"github.com/rvinformer/informer/internal/report"
)

// OnDeletion has deleted called with each deletion that is acknowledged, and the resource version
// that came with it: empty, or that of an older state, if a list found it. Nil ends that. It must
// not call the queue.
func (q *Queue) OnDeletion(deleted func(key, resourceVersion string)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.deleted = deleted
}

// Generation is the number of the newest generation.
func (q *Queue) Generation() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.generation
}

// AwaitList returns when a generation that is newer than another was read to its end, and all of it
// is acknowledged. The error is that of ctx, or report.ErrNotRunning after Close.
func (q *Queue) AwaitList(ctx context.Context, generation uint64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		seq, _ := q.oldestLocked()
		switch {
		case q.ended && q.generation > generation && seq > q.listed:
			return nil
		case q.closed:
			return report.ErrNotRunning
		}
		if err := q.awaitAdvanceLocked(ctx); err != nil {
			return err
		}
	}
}

// awaitAdvanceLocked gives the lock up until the resume point may have moved.
func (q *Queue) awaitAdvanceLocked(ctx context.Context) error {
	if q.advanced == nil {
		q.advanced = make(chan struct{})
	}
	advanced := q.advanced
	q.mu.Unlock()
	defer q.mu.Lock()
	select {
	case <-advanced:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (q *Queue) advancedLocked() {
	if q.advanced != nil {
		close(q.advanced)
		q.advanced = nil
	}
	q.reachLocked()
}
