package deltaqueue

import (
	"context"

	"k8s.io/client-go/tools/cache"
)

// roomLocked waits until there is room for d, and returns what it has taken of
// the budget for it.
func (q *Queue) roomLocked(ctx context.Context, d Delta) (reserved int64, err error) {
	if reserved, ok := q.tryRoomLocked(d); ok {
		return reserved, nil
	}
	return q.awaitRoomLocked(ctx, d, q.account.starved)
}

// tryRoomLocked is roomLocked without waiting.
func (q *Queue) tryRoomLocked(d Delta) (reserved int64, ok bool) {
	e := q.mergingLocked(d.Key)
	switch {
	case e != nil && e.replaces(d):
		return 0, true
	case q.aloneLocked(e):
		// One object always passes, whatever others have taken.
		q.account.budget.Take(d.Bytes)
		return d.Bytes, true
	default:
		return d.Bytes, q.hasPlaceLocked(e) && q.account.budget.TryTake(d.Bytes)
	}
}

// hasPlaceLocked reports whether one more delta may wait that merges into e, if there is one.
func (q *Queue) hasPlaceLocked(e *Entry) bool { return e != nil || q.order.len() < q.limit }

// awaitRoomLocked waits until there is room for d. Starved, if it is not nil, is called with true
// when that begins to wait for the budget, and with false when it does not any more.
func (q *Queue) awaitRoomLocked(ctx context.Context, d Delta, starved func(bool)) (reserved int64, err error) {
	for ctx.Err() == nil {
		if !q.hasPlaceLocked(q.mergingLocked(d.Key)) {
			q.awaitLocked(ctx, q.places.wait())
		} else if q.claimLocked(ctx, d, starved) {
			return d.Bytes, nil
		}
		if reserved, ok := q.tryRoomLocked(d); ok {
			return reserved, nil
		}
	}
	return 0, context.Cause(ctx)
}

// hasPlacesLocked reports whether a queue that was full has room for a quarter of its limit, or
// nothing that a consumer could take meanwhile. With less room, producer and consumer would wake
// each other for every entry.
func (q *Queue) hasPlacesLocked() bool {
	return q.order.len() <= q.limit-q.limit/4 || !q.canTakeLocked()
}

// replaces reports whether d takes the place of an object that waits in e, or has none:
// then it is let through, for it may be what a consumer waits for that fails. Behind a
// deletion, an object is one more.
func (e *Entry) replaces(d Delta) bool {
	newest := e.newest()
	ends := d.Type == cache.Deleted
	return d.Bytes == 0 || d.Type == cache.Sync || newest.Bytes > 0 && (ends || newest.Type != cache.Deleted)
}

// aloneLocked reports whether nothing waits or is taken, but for e.
func (q *Queue) aloneLocked(e *Entry) bool {
	return q.order.len() == 0 || e != nil && q.order.len() == 1
}

// claimLocked waits until the budget has granted the bytes of d, or has not to be
// asked any more.
func (q *Queue) claimLocked(ctx context.Context, d Delta, starved func(bool)) (granted bool) {
	if starved != nil {
		starved(true)
		defer starved(false)
	}
	claim := q.account.budget.Claim(d.Bytes)
	e := q.mergingLocked(d.Key)
	for ctx.Err() == nil && !q.aloneLocked(e) && q.mergingLocked(d.Key) == e {
		if waitLocked(ctx, q, claim.Granted) {
			return true
		}
	}
	q.account.budget.Withdraw(claim)
	return false
}

// waitLocked gives the lock up until something changed, the context ended, or over is closed or
// delivers, which it reports.
func waitLocked[T any](ctx context.Context, q *Queue, over <-chan T) (isOver bool) {
	changed := q.changed.wait()
	q.mu.Unlock()
	defer q.mu.Lock()
	select {
	case <-over:
		return true
	case <-changed:
	case <-ctx.Done():
	}
	return false
}

// awaitLocked gives the lock up until a signal fires, or the context ended.
func (q *Queue) awaitLocked(ctx context.Context, fired <-chan struct{}) {
	q.mu.Unlock()
	defer q.mu.Lock()
	select {
	case <-fired:
	case <-ctx.Done():
	}
}

func (q *Queue) wakeLocked() {
	q.changed.fire()
	if q.places.isAwaited() && q.hasPlacesLocked() {
		q.places.fire()
	}
}
