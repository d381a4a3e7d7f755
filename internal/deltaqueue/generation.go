package deltaqueue

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/keytable"
)

// BeginGeneration starts a generation: what Shown is told from here on belongs
// to it. One that never ends has no effect beyond the objects that it showed.
func (q *Queue) BeginGeneration() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.generation = q.known.Begin()
}

// Shown notes that the generation shows key in version, and reports whether that
// is all there is to do: it waits in the queue in just this version, or is known
// in it and was shown before or SkipUnchanged is set. Otherwise the object is to be
// put, as Replaced. It keeps neither key nor version.
func (q *Queue) Shown(key string, version keytable.Version) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	again := q.markLocked(key)
	if e := q.newestLocked(key); e != nil {
		return e.shows(version)
	}
	// A page that was cut is read again: what was delivered from it already is not
	// told again. A slow consumer would never get past what cuts the page.
	return (q.skipUnchanged || again) && version.ResourceVersion != "" && q.unchangedLocked(key, version)
}

// unchangedLocked reports whether key is known in version. The UID of an object
// whose version was loaded without one is adopted here.
func (q *Queue) unchangedLocked(key string, version keytable.Version) bool {
	known, ok := q.known.Get(key)
	if !ok || known.ResourceVersion != version.ResourceVersion || !known.SameObject(version) {
		return false
	}
	if known.UID == "" && version.UID != "" {
		known.UID = types.UID(strings.Clone(string(version.UID)))
		q.known.Set(key, known, q.generation)
	}
	return true
}

// Keep notes that the generation shows key, of an object that could not be read. It
// does not keep key itself.
func (q *Queue) Keep(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.markLocked(key)
}

// markLocked notes that the generation shows key, wherever it is: what is taken
// may be acknowledged, and what waits behind it dropped, before the sweep.
func (q *Queue) markLocked(key string) (again bool) {
	for _, e := range []*Entry{q.pending[key], q.taken[key]} {
		if e != nil {
			e.generation = q.generation
		}
	}
	return q.known.Mark(key, q.generation)
}

// Sweep deletes every key that is known, or waits, and that the generation did
// not show. Before each deletion is put, deleting is told its key and last
// version; it is called without a lock. The error is that of ctx.
func (q *Queue) Sweep(ctx context.Context, deleting func(key string, last keytable.Version)) error {
	for _, key := range q.unshown() {
		q.mu.Lock()
		last, _ := q.versionLocked(key)
		q.mu.Unlock()
		deleting(key, last)
		if err := q.sweep(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// EndGeneration ends a complete generation that was swept.
func (q *Queue) EndGeneration() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.passed != nil && q.passed.generation < q.generation {
		q.passed.until = q.seq
	}
	q.endLocked()
}

// EndUnswept ends a generation that was read to its end, but may not have shown
// everything.
func (q *Queue) EndUnswept() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.endLocked()
}

func (q *Queue) endLocked() {
	q.initial = false
	q.checkSyncedLocked()
}

func (q *Queue) unshown() (keys []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for e := q.order.first; e != nil; e = q.order.next(e) {
		if e == q.newestLocked(e.Key) && e.generation < q.generation && !e.Deleted() {
			keys = append(keys, e.Key)
		}
	}
	for _, key := range q.known.Unmarked(q.generation) {
		if q.newestLocked(key) == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

func (q *Queue) sweep(ctx context.Context, key string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	d := Delta{Type: cache.Deleted, Key: key}
	reserved, err := q.roomLocked(ctx, d)
	if err != nil {
		return err
	}
	q.queueLocked(d, reserved)
	return nil
}
