package deltaqueue

import (
	"context"
	"slices"
	"strings"

	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/recency"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// Standing is what the state of a key in a list is to the queue, which goes on with its watch
// beside that list.
type Standing int

const (
	// Past: the consumer was given a newer state since.
	Past Standing = iota
	// Coming: a change of the key waits, or the state was put.
	Coming
	// Ahead: the producer has not come to the state. It is going to put the state, or its end.
	Ahead
	// Doubtful: the consumer has refused a change of the key, so that it is not certain what the
	// consumer has. The newest state has to be asked for: see Redelivery.Renew.
	Doubtful
	// Repeatable: the consumer has acknowledged just this state.
	Repeatable
)

// isOwed reports whether the redelivery has to wait for a key.
func (s Standing) isOwed() bool { return s != Past && s != Ahead }

// Redelivery puts states again that the consumer has acknowledged. They are repeats: they wait
// behind all changes that a producer has put, the resume point does not wait for them, and few of
// them wait at a time.
//
// Keys are noted in the order of the calls. A key is owed until the consumer has given back all that
// waits of it.
type Redelivery struct {
	queue *Queue
	doubt func(key string) (doubtful bool, letter *api.DeadLetter)
	// most is how many keys may be owed.
	most int
	owed []owed
	// last is the key that was noted last, and done counts the keys that are not owed any more.
	last string
	done int64
	// moved fires when something is owed no more.
	moved signal
}

// owed is a key that is yet to be put, or whose entry the consumer has not given back. Before is the
// key that was noted before it.
type owed struct{ key, before string }

// repeats are about the repeats of a queue.
type repeats struct {
	// redelivery is the newest one, nil for none.
	redelivery *Redelivery
	// line has the repeats that can be taken: when nothing else is ready, or at the end of a batch.
	// A batch has share repeats at most.
	line  line
	share int
}

// defaultRepeats and repeatsShare say how many keys are owed at a time: so many, or this part of
// what the consumer takes at a time. A batch has half of them at most. A change that comes while the
// handler is called waits for that call, so a few repeats make it wait little longer.
const (
	defaultRepeats = 64
	repeatsShare   = 5
)

// Redeliver begins a redelivery behind the key after, for a consumer that takes so many entries at a
// time. It takes the place of the one before. Doubt reports whether the consumer has refused a change
// of a key, so that it is not certain what the consumer has, and the dead letter of the key, if there
// is one. It is called with the lock of the queue.
func (q *Queue) Redeliver(after string, done int64, atOnce int, doubt func(key string) (doubtful bool, letter *api.DeadLetter)) *Redelivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	most := max(defaultRepeats, atOnce/repeatsShare)
	r := &Redelivery{queue: q, doubt: doubt, most: most, last: after, done: done}
	if q.repeats == nil {
		q.repeats = &repeats{line: line{which: inReady}}
	}
	q.repeats.redelivery, q.repeats.share = r, max(1, min(atOnce/2, most/2))
	return r
}

// End ends the redelivery: nothing is owed any more. What was put stays.
func (r *Redelivery) End() {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	if r.queue.repeats.redelivery == r {
		r.queue.repeats.redelivery = nil
	}
}

// Position returns the newest key up to which no noted key is owed, and how many keys are done.
func (r *Redelivery) Position() (key string, done int64) {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	if len(r.owed) > 0 {
		return r.owed[0].before, r.done
	}
	return r.last, r.done
}

// Judge notes a key that a list shows in a version, and says what that is to the queue. It waits
// while much is owed, or a generation is under way. A Repeatable key is to be put, and a Doubtful
// one to be renewed; until then they are owed. It keeps neither key nor version. The error is that
// of ctx.
func (r *Redelivery) Judge(ctx context.Context, key string, version keytable.Version) (Standing, error) {
	q := r.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := r.awaitLocked(ctx, true); err != nil {
		return Past, err
	}
	standing := r.judgeLocked(key, version)
	r.noteLocked(key, standing)
	return standing, nil
}

// Expect notes a key that the server is about to be asked for. It is owed until it is renewed, or
// longer. It waits while much is owed. The error is that of ctx.
func (r *Redelivery) Expect(ctx context.Context, key string) error {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	if err := r.awaitLocked(ctx, true); err != nil {
		return err
	}
	r.noteLocked(key, Doubtful)
	return nil
}

// Put puts a key that was judged Repeatable, as Replaced, unless it is not repeatable any more. It
// waits for room as Queue.Put does. The error is that of ctx.
func (r *Redelivery) Put(ctx context.Context, d Delta) (Standing, error) {
	return r.put(ctx, d, func() Standing { return r.judgeLocked(d.Key, d.Version) })
}

// Asked is what there was of a key when the server was asked for it.
type Asked struct {
	generation uint64
	// Letter is the dead letter of the key, nil for none. Each refusal makes another one.
	Letter *api.DeadLetter
}

// Ask returns what Renew needs to know of a key that the server is about to be asked for. It waits
// until no generation is under way. The error is that of ctx.
func (r *Redelivery) Ask(ctx context.Context, key string) (Asked, error) {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	err := r.awaitLocked(ctx, false)
	return r.askedLocked(key), err
}

func (r *Redelivery) askedLocked(key string) Asked {
	_, letter := r.doubt(key)
	return Asked{r.queue.generation.number, letter}
}

// Renew puts what the server has of a key, which it was asked for: an object, as Replaced, or its
// absence, as Deleted without an object. At is the version of the answer. Named tells that the
// consumer is to be told of an absence although it is not known to have the key. Doubtful means that
// the server is to be asked again: there was a generation meanwhile, or the consumer has refused what
// may be newer than the answer.
func (r *Redelivery) Renew(ctx context.Context, d Delta, at string, asked Asked, named bool) (Standing, error) {
	return r.put(ctx, d, func() Standing {
		if r.askedLocked(d.Key) != asked {
			return Doubtful
		}
		return r.judgeNewestLocked(d, at, named)
	})
}

func (r *Redelivery) put(ctx context.Context, d Delta, judge func() Standing) (Standing, error) {
	q := r.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if err := r.awaitLocked(ctx, !r.isOwedLocked(d.Key)); err != nil {
			return Past, err
		}
		if standing := judge(); standing != Repeatable {
			r.resolveLocked(d.Key, standing)
			return standing, nil
		}
		reserved, ok := q.tryRoomLocked(d)
		if !ok {
			var err error
			if reserved, err = q.awaitRoomLocked(ctx, d, nil); err != nil {
				return Past, err
			}
			ok = !r.mustWaitLocked(false) && judge() == Repeatable // the lock was given up meanwhile
		}
		if ok {
			q.repeatLocked(d, reserved)
			q.newest[d.Key].owes = r
			return Coming, nil
		}
		q.account.budget.Give(reserved)
	}
}

// Refuse notes that a key which is owed is not to be put.
func (r *Redelivery) Refuse(key string) {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	r.resolveLocked(key, Past)
}

// Settled returns when nothing is owed. The error is that of ctx.
func (r *Redelivery) Settled(ctx context.Context) error {
	q := r.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(r.owed) > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		q.awaitLocked(ctx, r.moved.wait())
	}
	return nil
}

// Idle waits until no generation is under way. The error is that of ctx.
func (r *Redelivery) Idle(ctx context.Context) error {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	return r.awaitLocked(ctx, false)
}

// awaitLocked waits until a key can be judged: another one that is to be owed, or one that is.
func (r *Redelivery) awaitLocked(ctx context.Context, another bool) error {
	for r.mustWaitLocked(another) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.queue.awaitLocked(ctx, r.queue.audit.advanced.wait())
	}
	return nil
}

// mustWaitLocked reports whether a generation is under way, where a repeat would count as shown, or
// what the consumer has is not known yet; or, for another key, whether many are owed.
func (r *Redelivery) mustWaitLocked(another bool) bool {
	q := r.queue
	return q.phase.isInitial() || q.generation.underWay || another && len(r.owed) >= r.most
}

func (r *Redelivery) judgeLocked(key string, version keytable.Version) Standing {
	q := r.queue
	known, exists := q.known.Get(key)
	if e := q.newest[key]; e != nil {
		switch {
		case e.stage != taken || e.Deleted() || recency.Older(version, e.Version):
			e.owes = r
			e.tellAgainLocked()
			return Coming
		case !e.shows(version):
			return Ahead
		}
		return Repeatable // behind the call that is under way
	}
	doubtful, _ := r.doubt(key)
	switch {
	case doubtful:
		return Doubtful
	case !exists:
		return Ahead
	case known.SameState(version):
		return Repeatable
	case recency.Older(version, known):
		return Past
	}
	return Ahead
}

// judgeNewestLocked judges what the server has answered about one key.
func (r *Redelivery) judgeNewestLocked(d Delta, at string, named bool) Standing {
	q := r.queue
	if e := q.newest[d.Key]; e != nil {
		if d.Type != cache.Deleted {
			return r.judgeLocked(d.Key, d.Version)
		}
		e.tellAgainLocked()
		switch {
		case !e.Deleted():
			return Ahead // the watch tells of the deletion
		case e.stage == taken && named:
			return Repeatable // behind the call under way, which may be of another deletion, or of none
		}
		e.owes = r
		return Coming
	}
	known, exists := q.known.Get(d.Key)
	doubtful, letter := r.doubt(d.Key)
	var refused string
	if letter != nil {
		refused = letter.Newest
	}
	if doubtful && rv.Compare(refused, at) == rv.Newer {
		return Past // the answer is of a server that lags
	}
	if d.Type == cache.Deleted {
		refusedEnd := letter != nil && letter.Type == api.Deleted
		switch {
		case doubtful && letter == nil && !exists && named:
			return Repeatable // the doubt may be of such a deletion, and then the watch tells nothing
		case doubtful && !refusedEnd && (at == "" || !rv.NotNewer(at, q.frontier.observed)):
			// The watch tells what came before the end, and the end; or a list does. An answer without an
			// order does not show that the watch has come to it.
			return Ahead
		case doubtful || !exists && named:
			return Repeatable
		case exists:
			return Ahead
		}
		return Past
	}
	switch {
	case !doubtful:
		return r.judgeLocked(d.Key, d.Version)
	case recency.Older(d.Version, known):
		return Past
	case d.Version.ResourceVersion == refused || exists && known.SameState(d.Version):
		return Repeatable
	case rv.NotNewer(d.Version.ResourceVersion, q.frontier.observed):
		return Repeatable
	}
	return Ahead // what the watch tells up to that state must not come after it
}

// noteLocked notes a key, and what it is to the queue.
func (r *Redelivery) noteLocked(key string, standing Standing) {
	key = strings.Clone(key)
	switch {
	case !standing.isOwed():
		r.done++
	case !r.isOwedLocked(key):
		r.owed = append(r.owed, owed{key, r.last})
	}
	r.last = key
}

// resolveLocked notes what has become of a key that may be owed.
func (r *Redelivery) resolveLocked(key string, standing Standing) {
	if !standing.isOwed() {
		r.settleLocked(key)
	}
}

func (r *Redelivery) isOwedLocked(key string) bool { return r.indexLocked(key) >= 0 }

func (r *Redelivery) indexLocked(key string) int {
	return slices.IndexFunc(r.owed, func(o owed) bool { return o.key == key })
}

func (r *Redelivery) settleLocked(key string) {
	if i := r.indexLocked(key); i >= 0 {
		r.owed = slices.Delete(r.owed, i, i+1)
		r.done++
		r.moved.fire()
	}
}

// givenBackLocked notes that the consumer has given e back for good. P may be nil.
func (p *repeats) givenBackLocked(e *Entry) {
	if p != nil && p.redelivery != nil && e.owes == p.redelivery {
		p.redelivery.settleLocked(e.Key)
	}
}

// tellAgainLocked has an entry tell the consumer of its state also if the consumer has that already.
// The consumer reads this without the lock, so an entry that it has is marked when it comes back.
func (e *Entry) tellAgainLocked() {
	if e.stage != taken {
		e.again = true
	}
}

// repeatLocked adds an entry for d, a repeat, behind that of its key which the consumer has.
func (q *Queue) repeatLocked(d Delta, reserved int64) {
	older := q.newest[d.Key]
	e := q.newEntryAs(d, older, true)
	e.Deltas = append(e.Deltas, d)
	q.account.grow(d.Bytes, reserved)
	if d.hasState() {
		e.Version = d.Version
	} else if refused, _, exists := q.refusedLocked(d.Key); exists && older == nil { // what was refused is gone, too
		e.Version.ResourceVersion = rv.AtLeast(refused, e.Version.ResourceVersion)
	}
	// Beside no generation, the newest one has shown what there is.
	e.generation = q.generation.number
	q.wakeLocked()
}

// renewLocked makes e, a repeat which is about to get d, which a producer has put, an entry like
// those that are put now.
func (q *Queue) renewLocked(e *Entry, d Delta) {
	e.repeat = false
	q.order.remove(e)
	q.seq++
	e.seq, e.resume, e.current, e.Arrived = q.seq, q.frontier.reached().ClaimFor(d.Version.ResourceVersion), q.frontier.current, d.Arrived
	q.order.pushBack(e)
	if e.stage == late {
		q.repeats.line.remove(e)
		q.readyLocked(e)
	}
}

// firstOwnLocked is the oldest entry that is no repeat, nil for none.
func (q *Queue) firstOwnLocked() *Entry {
	e := q.order.first
	for e != nil && e.repeat {
		e = q.order.next(e)
	}
	return e
}

// canTakeLocked reports whether there is an entry that can be taken.
func (q *Queue) canTakeLocked() bool {
	return q.ready.first != nil || q.repeats != nil && q.repeats.line.first != nil
}
