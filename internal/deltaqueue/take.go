package deltaqueue

import (
	"context"
	"errors"
	"time"
)

// ErrIdle is returned by Take when there has been nothing to take for a while.
var ErrIdle = errors.New("nothing to take")

// idleConsumer is how long a consumer that was hired waits for something to take.
// An informer has none while nothing happens: a goroutine's stack is much of what
// it needs then.
const idleConsumer = time.Second

// Take returns the next entry, and waits for one; the error is that of ctx, or, for
// a consumer that was hired, ErrIdle. The entry must be given back with Done, Drop,
// Skip or Retry.
func (q *Queue) Take(ctx context.Context) (*Entry, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if err := ctx.Err(); err != nil {
			q.leaveLocked()
			return nil, context.Cause(ctx)
		}
		wait := q.unparkDueLocked(time.Now())
		if e := q.ready.first; e != nil {
			q.takeLocked(e)
			return e, nil
		}
		leaves := q.hire != nil && wait == 0
		if leaves {
			wait = idleConsumer
		}
		q.idle++
		expired := q.waitLocked(ctx, wait)
		q.idle--
		if leaves && expired && q.ready.first == nil && len(q.parked) == 0 {
			q.leaveLocked()
			return nil, ErrIdle
		}
	}
}

func (q *Queue) takeLocked(e *Entry) {
	q.ready.remove(e)
	delete(q.pending, e.Key)
	q.taken[e.Key] = e
	e.stage = taken
	q.hireLocked()
}

// hireLocked starts a consumer if there is something to take and none waits.
func (q *Queue) hireLocked() {
	if q.hire != nil && q.ready.first != nil && q.idle == 0 && q.hired < q.workers {
		q.hired++
		q.hire()
	}
}

// Leave is called for a consumer that was hired and is gone without an error of
// Take.
func (q *Queue) Leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.leaveLocked()
	q.hireLocked()
}

func (q *Queue) leaveLocked() {
	if q.hire != nil {
		q.hired--
	}
}
