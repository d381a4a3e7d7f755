package objectcache

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/internal/engine/intake"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/engine/recency"
	"github.com/rvinformer/informer/internal/engine/sink"
	"github.com/rvinformer/informer/internal/leaf/failure"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/moment"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// storeSink is the store and the changelog of an informer as a sink. Its rules for stale events are
// those of the delta queue.
type storeSink struct {
	informer *Informer
	intake   intake.Intake
	// observed is how far the store has taken what happened. It is set when readers see that, while the
	// changelog is applied to.
	observed observed
	// current is a moment.Moment, zero if there is none: everything that the server had then is in
	// the store. It does not go back.
	current    atomic.Int64
	tombstones recency.Tombstones
	// renames are those of Transform.
	renames renames
	// reading is the generation under way, nil without one.
	reading generation
	trust   recency.Trust
	// deleted, unless it is nil, is called with each deletion: see noteDeletion.
	deleted atomic.Pointer[func(key, resourceVersion string)]
	// covers tells whether the store has everything up to observed, and resume is the resource version
	// from which a watch tells the rest. All three are changed while the changelog is applied to.
	covers recency.Coverage
	resume string
}

// observed can be read while its writer is busy: an index function may hold that up for long.
type observed struct {
	mu sync.Mutex
	at rv.Reached
}

func (o *observed) load() rv.Reached {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.at
}

func (o *observed) store(at rv.Reached) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at = at
}

var _ sink.Sink = (*storeSink)(nil)

// Begin begins a generation, which is kept apart from the store until it ends.
func (s *storeSink) Begin(context.Context) (sink.Generation, error) {
	s.tombstones.Clear()
	s.renames.begin()
	s.reading = s.informer.objects.begin()
	s.beginCovering()
	return storeGeneration{s}, nil
}

// Put applies a change that a watch told. While a generation is read, the change is part of it.
func (s *storeSink) Put(ctx context.Context, kind watch.EventType, it object.Item) (sink.Verdict, error) {
	deletion := kind == watch.Deleted
	kept := s.renames.of(it.Key)
	verdict := sink.Taken
	if kind == watch.Added && s.has(kept, it.Version) {
		verdict = sink.TakenAgain
	}
	if s.stale(deletion, kept, it.Version) {
		if verdict == sink.TakenAgain {
			return sink.Known, nil
		}
		return sink.Stale, nil
	}
	e, err := s.encode(it)
	e.sum = checksum(it)
	switch {
	case err != nil && !deletion:
		return sink.Taken, err
	case err == nil && e.key != kept && s.stale(deletion, e.key, e.version): // a Transform has renamed it
		e.release()
		return sink.Stale, nil
	case deletion:
		if s.informer.setup.Resource != nil { // not every source makes new UIDs
			s.tombstones.Add(it.Version)
		}
		last := finalState
		switch {
		case err != nil: // a deletion counts, whatever becomes of its object
			e, last = encoded{key: strings.Clone(kept)}, unknownState
			s.informer.setup.Report.Skip(err)
		case s.informer.setup.Resource == nil && !it.Unselected:
			last = finalStateOfAny
		}
		s.renames.forget(it.Key)
		s.delete(e, last, it.Arrived)
		return sink.Taken, nil
	}
	if e.key != kept {
		s.leave(kept, it.Version, it.Arrived)
	}
	return verdict, s.put(ctx, it, e)
}

// leave deletes the object of a key if it is the one that Transform has given another key now.
func (s *storeSink) leave(key string, v keytable.Version, at moment.Moment) {
	if was, _, exists := s.known(key); exists && v.UID != "" && was.UID == v.UID {
		s.delete(encoded{key: strings.Clone(key)}, unknownState, at)
	}
}

// stale reports whether a change is not newer than what is known of its key, or of an object that
// was deleted not long ago.
func (s *storeSink) stale(deletion bool, key string, v keytable.Version) bool {
	if s.tombstones.Covers(v) {
		return true
	}
	known, told, exists := s.known(key)
	if s.informer.setup.Resource == nil && v.ResourceVersion == known.ResourceVersion {
		return false // not every source makes new versions: a fake client keeps those that it is given
	}
	return exists && recency.Stale(deletion, v, known, s.observed.load().ResourceVersion, func() bool { return told })
}

// has reports whether the object of a key is known in just this state.
func (s *storeSink) has(key string, v keytable.Version) bool {
	known, _, exists := s.known(key)
	return exists && known.SameState(v)
}

// known returns what is known of a key, and whether the generation under way has told it.
func (s *storeSink) known(key string) (v keytable.Version, told, exists bool) {
	if s.reading != nil {
		return s.reading.known(key)
	}
	v, exists = s.informer.objects.version(key)
	return v, false, exists
}

// encode returns an object as it is stored. The error is an *informer.ItemError.
func (s *storeSink) encode(it object.Item) (encoded, error) {
	i := s.informer
	if s.intake.Transform == nil && (it.Lent != nil || s.intake.Fields == nil) {
		return i.objects.encodeItem(it)
	}
	read, v, kind := interface{}(it.Object), it.Version, metav1.TypeMeta{}
	if it.Lent != nil {
		raw, err := it.Copy(&object.Shared)
		if err != nil {
			return encoded{}, it.Unreadable(err)
		}
		defer object.Shared.Put(raw)
		read, v, kind = raw, raw.Version(), *raw.Kind()
		i.noteDecoded()
	}
	obj, err := s.intake.Refine(read)
	if err != nil {
		return encoded{}, it.Unreadable(err)
	}
	e, err := s.encodeRefined(v, kind, obj)
	if err != nil {
		return encoded{}, it.Unreadable(err)
	}
	s.renames.note(it.Key, e.key)
	return e, nil
}

// encodeRefined encodes an object that was transformed, and was read as one of a kind. It puts back what identifies
// its state.
func (s *storeSink) encodeRefined(v keytable.Version, kind metav1.TypeMeta, refined interface{}) (encoded, error) {
	obj, ok := refined.(runtime.Object)
	if !ok {
		return encoded{}, fmt.Errorf("transform returned a %T, which is no runtime.Object", refined)
	}
	if p := reflect.ValueOf(obj); p.Kind() == reflect.Pointer && p.IsNil() {
		return encoded{}, fmt.Errorf("transform returned a %T that is nil", refined)
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return encoded{}, fmt.Errorf("transform returned a %T: %w", refined, err)
	}
	if accessor.GetResourceVersion() != v.ResourceVersion {
		accessor.SetResourceVersion(v.ResourceVersion)
	}
	if accessor.GetUID() != v.UID {
		accessor.SetUID(v.UID)
	}
	return s.informer.objects.encodeObject(obj, kind)
}

// put stores an object, or makes it part of the generation under way, and tells the handlers. A
// panic of an index function is an *informer.ItemError where utilruntime lets the process survive
// it.
func (s *storeSink) put(ctx context.Context, it object.Item, e encoded) error {
	i := s.informer
	defer i.reportFailures()
	err := failure.Guard(ctx, i.setup.Report.NoteFailure, func() error {
		if s.reading != nil {
			s.reading.put(e)
			return nil
		}
		i.changelog.applying.Lock()
		defer i.changelog.applying.Unlock()
		i.tell(i.objects.put(e), it.Arrived)
		i.changed()
		return nil
	})
	if err != nil {
		return it.Unreadable(err)
	}
	return nil
}

// noteDeletion tells an audit of a deletion before readers see it. An empty key stands for those of
// a list.
func (s *storeSink) noteDeletion(key, resourceVersion string) {
	if deleted := s.deleted.Load(); deleted != nil {
		(*deleted)(key, resourceVersion)
	}
}

// lastState is what is known of the last state of an object that is deleted.
type lastState int

const (
	// unknownState: nothing is known but the key.
	unknownState lastState = iota
	// finalState: the deletion has it.
	finalState
	// finalStateOfAny: the deletion has it, and handlers are called with it also where the store does
	// not have the object. Client-go calls them for each deletion, and fake clients and watches are made
	// for that.
	finalStateOfAny
)

// delete deletes the object of e.key. Last says whether e is its last state.
func (s *storeSink) delete(e encoded, last lastState, at moment.Moment) {
	if s.reading != nil {
		s.reading.drop(e.key)
		e.release()
		return
	}
	i := s.informer
	i.changelog.applying.Lock()
	defer i.changelog.applying.Unlock()
	s.noteDeletion(e.key, e.version.ResourceVersion)
	old := i.objects.remove(e.key).old
	switch {
	case old.IsZero() && last == finalStateOfAny:
		gone := i.objects.detached(e)
		i.changelog.append(nil, event{old: &gone, arrived: at})
		return
	case old.IsZero():
		e.release()
		return
	}
	i.changed()
	deletion := event{old: &old, unknown: true, arrived: at}
	if last != unknownState { // an object that could not be read has no form
		if gone := i.objects.detached(e); sameObject(old, gone) {
			deletion.old, deletion.unknown = &gone, false
		}
	}
	i.changelog.append(&old, deletion)
}

// sameObject is true where a UID is not known.
func sameObject(a, b Stored) bool { return a.uid == 0 || b.uid == 0 || a.uid == b.uid }

// Observed notes the resource version of the object that was put last, or of a bookmark.
func (s *storeSink) Observed(p sink.Progress) error {
	i := s.informer
	i.changelog.applying.Lock()
	defer i.changelog.applying.Unlock()
	s.observed.store(p.Reached)
	s.resume = p.Claim()
	if int64(p.Current) > s.current.Load() {
		s.current.Store(int64(p.Current))
	}
	i.objects.Bookmark(p.ResourceVersion)
	i.shrink()
	i.reachNow()
	return nil
}

// Resync has the handlers called again that are due.
func (s *storeSink) Resync(context.Context) error {
	i := s.informer
	due := i.dueForResync()
	if len(due) == 0 {
		return nil
	}
	i.changelog.applying.Lock()
	defer i.changelog.applying.Unlock()
	i.changelog.resync(due, i.objects.all(), moment.Now())
	return nil
}

// shrink does a part of the work of giving back memory after a peak, and reports whether more is to
// be done. The batches of handlers name what would be moved, so it waits until all are finished.
// The caller holds applying, without which no batch is made.
func (i *Informer) shrink() (more bool) { return !i.changelog.hasBatches() && i.objects.shrink() }

// tell appends a change, which has arrived at a moment, to the changelog. The caller holds
// applying.
func (i *Informer) tell(c change, at moment.Moment) {
	old := c.old
	switch {
	case old.IsZero():
		i.changelog.append(nil, event{new: c.new, arrived: at})
	case c.new.IsZero():
		i.changelog.append(&old, event{old: &old, unknown: true, arrived: at})
	case sameObject(old, c.new):
		i.changelog.append(&old, event{old: &old, new: c.new, arrived: at})
	default:
		i.changelog.append(&old, event{old: &old, unknown: true, arrived: at}, event{new: c.new, arrived: at})
	}
}

var errRestored = errors.New("the list shows that the server was restored from a backup: it is read once more, because the same version may be of another state")

// storeGeneration is a generation that the store takes when it is complete.
type storeGeneration struct{ *storeSink }

func (g storeGeneration) Show(ctx context.Context, it object.Item) error {
	if i := g.informer; i.snapshots != nil && it.Lent == nil { // it may be unchanged since a snapshot was restored
		i.store.noteKind(it.Object)
	}
	kept := g.renames.of(it.Key)
	sum := checksum(it)
	if g.tombstones.Covers(it.Version) || !g.trust.Lost() && g.reading.show(kept, it.Version, sum) {
		return nil
	}
	known, told, exists := g.known(kept)
	if told && exists && kept == it.Key && !known.SameObject(it.Version) { // a Transform may rename objects to one key
		return sink.Twice(it, known.UID)
	}
	if told && recency.Older(it.Version, known) {
		return nil // a proxy repeats the events of a watch-list
	}
	e, err := g.encode(it)
	if err != nil {
		return err
	}
	e.sum = sum
	same := exists && known.SameState(it.Version)
	if !told && !same && e.key == it.Key { // a Transform may rename it
		g.trust.Note(e.version.ResourceVersion)
	}
	if (same || g.trust.Lost()) && g.reading.showSame(e) {
		e.release()
		return nil
	}
	return g.put(ctx, it, e)
}

func (g storeGeneration) Keep(key string) { g.reading.keep(g.renames.of(key)) }

// Deletes implements sink.Generation.
func (g storeGeneration) Deletes() bool { return g.reading.deletes() }

func (g storeGeneration) End(ctx context.Context, resourceVersion string, complete bool) error {
	reading := g.reading
	g.reading = nil
	if !g.trust.End(resourceVersion) {
		reading.abandon()
		return errRestored
	}
	i := g.informer
	initial := !i.HasSynced()
	err := failure.Guard(ctx, i.setup.Report.NoteFailure, func() error {
		i.changelog.applying.Lock()
		defer i.changelog.applying.Unlock()
		added, at := &batch{initial: initial, order: byBirth}, moment.Now()
		g.noteDeletion("", "")
		for c := range reading.end(resourceVersion, complete) {
			i.changed()
			if c.old.IsZero() {
				added.add(c.new)
			} else {
				i.tell(c, at)
			}
		}
		if added.len() > 0 {
			i.changelog.append(nil, event{batch: added, arrived: at})
		}
		i.waiting.Listed(g.observed.load().ResourceVersion, resourceVersion)
		if complete {
			g.renames.end()
		}
		g.observed.store(rv.At(resourceVersion))
		g.resume = resourceVersion
		g.covers.End(complete)
		i.lists.end()
		for i.shrink() {
		}
		return nil
	})
	if err != nil {
		return errors.Join(errors.New("store a list"), err)
	}
	if i.snapshots != nil {
		i.snapshots.Listed()
	}
	i.sync()
	return nil
}

func (g storeGeneration) Abandon() {
	g.reading.abandon()
	g.reading = nil
}
