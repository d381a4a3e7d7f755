package deltaqueue

import (
	"context"

	"github.com/rvinformer/informer/api"
)

// audit is what an audit is told.
type audit struct {
	// deleted, if set, is called with each deletion that is acknowledged.
	deleted func(key, resourceVersion string)
	// advanced fires when the resume point may have moved, and at Close.
	advanced signal
	// closed tells that nothing will be acknowledged any more.
	closed bool
}

// OnDeletion has deleted called with each deletion, before it is acknowledged, and the resource
// version that came with it: empty, or that of an older state, if a list found it. With an empty key
// it is called when the queue is closed, which is not told of others. Nil ends that. It must not call
// the queue.
func (q *Queue) OnDeletion(deleted func(key, resourceVersion string)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.audit.deleted = deleted
	if q.audit.closed {
		q.endAuditLocked()
	}
}

// endAuditLocked tells an audit that the queue is closed: others may delete from now on.
func (q *Queue) endAuditLocked() {
	if q.audit.deleted != nil {
		q.audit.deleted("", "")
	}
}

// Generation is the number of the newest generation.
func (q *Queue) Generation() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.generation.number
}

// AwaitList returns when a generation that is newer than another was read to its end, and all of it
// is acknowledged. The error is that of ctx, or api.ErrNotRunning after Close.
func (q *Queue) AwaitList(ctx context.Context, generation uint64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		seq, _ := q.oldestLocked()
		switch {
		case !q.generation.underWay && q.generation.number > generation && seq > q.generation.listed:
			return nil
		case q.audit.closed:
			return api.ErrNotRunning
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		q.awaitLocked(ctx, q.audit.advanced.wait())
	}
}

// AwaitPut returns when all that was put by now is acknowledged, or was dropped. The error is that of
// AwaitList.
func (q *Queue) AwaitPut(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for newest := q.seq; ; {
		seq, _ := q.oldestLocked()
		switch {
		case seq > newest:
			return nil
		case q.audit.closed:
			return api.ErrNotRunning
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		q.awaitLocked(ctx, q.audit.advanced.wait())
	}
}

func (q *Queue) advancedLocked() {
	q.audit.advanced.fire()
	q.reachLocked()
}
