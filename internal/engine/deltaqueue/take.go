package deltaqueue

import (
	"context"
	"errors"
	"time"
)

// ErrIdle is returned by Take when there has been nothing to take for a while.
var ErrIdle = errors.New("nothing to take")

// idleConsumer is how long a consumer that was hired waits for something to take.
// An informer has none while nothing happens: a goroutine's stack is a large part
// of its memory then.
const idleConsumer = time.Second

// Take is TakeBatch for a single entry.
func (q *Queue) Take(ctx context.Context) (*Entry, error) {
	var one [1]*Entry
	batch, err := q.TakeBatch(ctx, one[:0], 1)
	if err != nil {
		return nil, err
	}
	return batch[0], nil
}

// TakeBatch adds the entries that can be taken to into, most of them at most, in
// their order, and waits for the first. What was postponed together is taken together,
// and without others. The error is that of ctx, or, for a consumer
// that was hired, ErrIdle. Each entry must be given back with Done, Drop, Skip,
// Advance, Retry, Postpone or Delay.
func (q *Queue) TakeBatch(ctx context.Context, into []*Entry, most int) ([]*Entry, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if err := ctx.Err(); err != nil {
			q.hiring.leave()
			return nil, context.Cause(ctx)
		}
		wait := q.unparkDueLocked()
		if q.canTakeLocked() {
			return q.takeLocked(into, most), nil
		}
		leaves := q.hiring.start != nil && wait == 0
		if leaves {
			wait = idleConsumer
		}
		var over <-chan time.Time
		if wait > 0 {
			over = time.After(wait)
		}
		q.hiring.idle++
		expired := waitLocked(ctx, q, over)
		q.hiring.idle--
		if leaves && expired && !q.canTakeLocked() && len(q.parking.heap) == 0 {
			q.hiring.leave()
			return nil, ErrIdle
		}
	}
}

// Upcoming calls each with the entries that can be taken next, most of them at most, in their
// order. It must not call the queue, nor keep or change the entry.
func (q *Queue) Upcoming(most int, each func(e *Entry)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for e := q.ready.first; e != nil && most > 0; e = q.ready.next(e) {
		each(e)
		most--
	}
}

func (q *Queue) takeLocked(into []*Entry, most int) []*Entry {
	if q.everyChange {
		most = 1
	}
	var batch uint64
	if e := q.ready.first; e != nil {
		batch = e.batch
	}
	most += len(into)
	into = takeFrom(&q.ready, into, most, batch)
	if batch == 0 && q.repeats != nil {
		into = takeFrom(&q.repeats.line, into, min(most, len(into)+q.repeats.share), batch)
	}
	q.hireLocked()
	return into
}

// takeFrom moves the first entries of a line that are of a batch to into, until into has that many.
func takeFrom(l *line, into []*Entry, most int, batch uint64) []*Entry {
	for e := l.first; e != nil && e.batch == batch && len(into) < most; e = l.first {
		l.remove(e)
		e.stage = taken
		into = append(into, e)
	}
	return into
}
