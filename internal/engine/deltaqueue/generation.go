package deltaqueue

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/recency"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/moment"
)

// generation is the newest generation, 0 before the first.
type generation struct {
	number   uint64
	underWay bool
	// since is the first of the generations up to this one that did not end: this one
	// goes on with what they have told.
	since uint64
	// listed is the last entry of the newest generation that was read to its end.
	listed uint64
	// tombstones are of deltas that were put since the generation began.
	tombstones recency.Tombstones
}

func (g *generation) begin(number uint64) {
	if !g.underWay {
		g.since, g.underWay = number, true
	}
	g.number = number
	g.tombstones.Clear()
}

// isOn reports whether the generation of a number is under way.
func (g *generation) isOn(number uint64) bool { return g.underWay && g.number == number }

// BeginGeneration starts a generation: what Shown is told from here on belongs
// to it. One that never ends has no effect beyond the objects that it showed.
func (q *Queue) BeginGeneration() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.generation.begin(q.known.Begin())
}

// Shown notes that the generation shows key in version, and reports whether that
// is all there is to do: it waits in the queue in just this version, or is known
// in it and was shown before, by this generation or by those before it that did not
// end, or SkipUnchanged is set; or it is older than what this generation has told, as of
// a proxy that repeats the events of a watch-list. Otherwise the object is to be
// put, as Replaced. It keeps neither key nor version.
//
// Other, if it is not empty, is the UID of another object of this key that the
// generation has shown before. It stays, and the object is not to be put.
func (q *Queue) Shown(key string, version keytable.Version) (done bool, other types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.generation.tombstones.Covers(version) {
		return true, ""
	}
	e := q.newest[key]
	waits := e != nil && e.generation == q.generation.number
	q.showEntriesLocked(e)
	again, c := q.known.Show(key, version, q.generation.number, q.generation.since)
	if e != nil {
		if waits && !e.Deleted() && !e.Version.SameObject(version) {
			return true, e.Version.UID
		}
		return e.shows(version) || waits && recency.Older(version, e.Version), ""
	}
	refused, in, exists := q.refusedLocked(key)
	refusedHere := exists && q.generation.isOn(in) // and what is known may be of before the generation
	if c.Marked && !(c.SameVersion && c.SameObject) {
		switch known, ok := q.known.Get(key); {
		case ok && !refusedHere && !known.SameObject(version):
			return true, known.UID
		case ok && !c.SameVersion && recency.Older(version, known):
			return true, ""
		}
	}
	if !c.SameVersion && refusedHere && recency.Older(version, keytable.Version{ResourceVersion: refused}) {
		return true, ""
	}
	// A page, or all of a list, that was cut is read again: what was delivered from it
	// already is not told again. A slow consumer would never get past what cuts it.
	told := q.skipUnchanged || again
	if !told || version.ResourceVersion == "" || !c.SameVersion || !c.SameObject {
		return false, ""
	}
	if !c.Identified && version.UID != "" { // loaded without its UID, which is adopted
		version.ResourceVersion = strings.Clone(version.ResourceVersion)
		version.UID = types.UID(strings.Clone(string(version.UID)))
		q.known.Set(strings.Clone(key), version, q.generation.number) // another writer may have deleted it
	}
	return true, ""
}

// Keep notes that the generation shows key, of an object that could not be read. It
// does not keep key itself.
func (q *Queue) Keep(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.showEntriesLocked(q.newest[key])
	q.known.Show(key, keytable.Version{}, q.generation.number, q.generation.number)
}

// showEntriesLocked notes that the generation shows the key of e, which may be nil, and of the
// entries before it: one of those may be the last that is acknowledged before the sweep, if those
// after it are dropped.
func (q *Queue) showEntriesLocked(e *Entry) {
	for ; e != nil; e = e.older {
		e.generation = q.generation.number
	}
}

// Sweep deletes every key that is known, or waits, and that the generation did
// not show. Before each deletion is put, deleting is told its key and last
// version; it is called without a lock. The error is that of ctx.
func (q *Queue) Sweep(ctx context.Context, deleting func(key string, last keytable.Version)) error {
	at := moment.Now()
	if err := q.sweepAll(ctx, at, q.unshownEntries(), deleting); err != nil {
		return err
	}
	for cursor := keytable.Cursor(0); ; {
		keys, next := q.unshownFrom(cursor)
		if err := q.sweepAll(ctx, at, keys, deleting); err != nil || next == 0 {
			return err
		}
		cursor = next
	}
}

// Sweeps reports whether Sweep would delete a key.
func (q *Queue) Sweeps() bool {
	if len(q.unshownEntries()) > 0 {
		return true
	}
	for cursor := keytable.Cursor(0); ; {
		keys, next := q.unshownFrom(cursor)
		if len(keys) > 0 || next == 0 {
			return len(keys) > 0
		}
		cursor = next
	}
}

func (q *Queue) sweepAll(ctx context.Context, at moment.Moment, keys []string, deleting func(key string, last keytable.Version)) error {
	for _, key := range keys {
		q.mu.Lock()
		last, _ := q.versionLocked(key)
		q.mu.Unlock()
		deleting(key, last)
		if err := q.sweep(ctx, at, key); err != nil {
			return err
		}
	}
	return nil
}

// EndGeneration ends a generation that was read to its end.
func (q *Queue) EndGeneration() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.phase = listed
	q.generation.underWay, q.generation.listed = false, q.seq
	q.advancedLocked()
	q.checkSyncedLocked()
}

// unshownEntries are the keys that wait and that the generation did not show.
func (q *Queue) unshownEntries() (keys []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for e := q.order.first; e != nil; e = q.order.next(e) {
		if e.newer == nil && e.generation < q.generation.number && !e.Deleted() {
			keys = append(keys, e.Key)
		}
	}
	return keys
}

// sweptAtOnce is about how many known keys are looked at under one lock: that is
// some tenths of a millisecond.
const sweptAtOnce = 1000

// unshownFrom are those of the next keys that are known, do not wait, and that the
// generation did not show. They stay so until they are swept: it is the producer that
// shows and puts, and it sweeps now.
func (q *Queue) unshownFrom(cursor keytable.Cursor) (keys []string, next keytable.Cursor) {
	q.mu.Lock()
	defer q.mu.Unlock()
	keys, next = q.known.UnmarkedFrom(cursor, q.generation.number, sweptAtOnce)
	return slices.DeleteFunc(keys, func(key string) bool { return q.newest[key] != nil }), next
}

func (q *Queue) sweep(ctx context.Context, at moment.Moment, key string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	d := Delta{Type: cache.Deleted, Key: key, Arrived: at}
	reserved, err := q.roomLocked(ctx, d)
	if err != nil {
		return err
	}
	q.queueLocked(d, reserved)
	return nil
}
