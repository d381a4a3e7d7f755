package deltaqueue

import (
	"container/heap"
	"context"
	"time"
)

// unparkDueLocked makes the parked entries ready that are due, and returns how
// long it is until the next one is; zero if there is none.
func (q *Queue) unparkDueLocked(now time.Time) time.Duration {
	for len(q.parked) > 0 {
		if wait := q.parked[0].due.Sub(now); wait > 0 {
			return wait
		}
		q.readyLocked(heap.Pop(&q.parked).(*Entry))
	}
	return 0
}

// roomLocked waits until the queue has room for key.
func (q *Queue) roomLocked(ctx context.Context, key string) error {
	for q.pending[key] == nil && (q.order.Len() >= q.limit || q.bytes >= q.limitBytes) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		q.waitLocked(ctx, 0)
	}
	return nil
}

// waitLocked gives the lock up until something changed, the context ended or,
// if it is positive, the timeout is over.
func (q *Queue) waitLocked(ctx context.Context, timeout time.Duration) {
	q.waiting = true
	changed := q.changed
	q.mu.Unlock()
	defer q.mu.Lock()
	var expired <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-changed:
	case <-expired:
	case <-ctx.Done():
	}
}

func (q *Queue) wakeLocked() {
	if q.waiting {
		close(q.changed)
		q.changed = make(chan struct{})
		q.waiting = false
	}
}
