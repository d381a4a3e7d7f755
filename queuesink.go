package informer

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/deltaqueue"
	"github.com/rvinformer/informer/internal/keytable"
	"github.com/rvinformer/informer/internal/known"
	"github.com/rvinformer/informer/internal/object"
	"github.com/rvinformer/informer/internal/objectsize"
	"github.com/rvinformer/informer/internal/report"
	"github.com/rvinformer/informer/internal/sink"
)

// ExtraStore is told of every object that an informer reads, before the
// handler is, on the reflector's goroutine. Each object of a list is one Add,
// or, where the informer knew it already, one Update, also if it has not
// changed; a watch event is an Add, an Update or a Delete; a deletion that a
// list found is a Delete of a cache.DeletedFinalStateUnknown. Its errors are
// reported to the ErrorHandler and change nothing else.
type ExtraStore interface {
	// Add is told of an object that is new to the informer.
	Add(obj interface{}) error
	// Update is told of an object that the informer knew.
	Update(obj interface{}) error
	// Delete is told of the final state of an object, or of a
	// cache.DeletedFinalStateUnknown.
	Delete(obj interface{}) error
	// Replace is not called: no list is ever held whole. It is here so that
	// stores written for other informers fit.
	Replace([]interface{}, string) error
}

// queueSink is the delta queue as a sink.
type queueSink struct {
	queue *deltaqueue.Queue
	*intake
	// began, if set, is called when a generation begins, and the func that it returns when that
	// generation has ended.
	began func() (ended func(complete bool))
}

// intake is what becomes of what is read, on its way into the queue.
type intake struct {
	// kind is what tombstones say that they are of.
	kind metav1.TypeMeta
	refining
	// pool has the memory of objects that their consumer has returned; nil where
	// consumers keep them.
	pool  *object.Pool
	extra ExtraStore
	// report is told what the ExtraStore refuses.
	report func(error)
	// stored lists what a resync repeats; nil if there is nothing to repeat.
	stored func() []interface{}
}

func (s queueSink) Begin(context.Context) (sink.Generation, error) {
	g := queueGeneration{queueSink: s}
	if s.began != nil {
		g.ended = s.began()
	}
	s.queue.BeginGeneration()
	return g, nil
}

// deltaTypes are those of watch events.
var deltaTypes = map[watch.EventType]cache.DeltaType{
	watch.Added:    cache.Added,
	watch.Modified: cache.Updated,
	watch.Deleted:  cache.Deleted,
}

func (s queueSink) Put(ctx context.Context, event watch.EventType, it object.Item) (bool, error) {
	d := deltaqueue.Delta{Type: deltaTypes[event], Key: it.Key, Version: it.Version}
	if s.queue.Stale(d) {
		return true, nil
	}
	unreadable := s.fill(&d, it)
	told := d.Object
	switch {
	case unreadable != nil && d.Type != cache.Deleted:
		return false, unreadable
	case unreadable != nil: // a deletion counts, whatever becomes of its object
		d.Object, told = nil, s.tombstone(d.Key, d.Version)
	}
	s.tell(d.Type, d.Key, told)
	if err := s.queue.Put(ctx, d); err != nil {
		return false, err
	}
	return false, unreadable
}

// fill gives a delta memory of its own, and its object: as the consumer is to see
// it, or, where nobody sees it before, as it came off the wire.
func (i *intake) fill(d *deltaqueue.Delta, it object.Item) error {
	if err := known.CheckLengths(it.Key, it.Version); err != nil {
		d.Key, d.Version = it.Identity()
		return object.Item{Place: it.Place}.Unreadable(err)
	}
	read := interface{}(it.Object)
	if it.Lent != nil {
		raw, err := it.Copy(i.pool)
		if err != nil {
			d.Key, d.Version = it.Identity()
			return it.Unreadable(err)
		}
		d.Key, d.Version, d.Object, d.Bytes = raw.Key(), raw.Version(), raw, raw.Size()
		if i.extra == nil && it.Lent.Form.Decodes() {
			return nil
		}
		read, it = raw, object.Item{Key: raw.Key(), Place: raw.Place()}
	}
	obj, err := i.refine(read)
	if err != nil {
		return it.Unreadable(err)
	}
	d.Object = obj
	if raw, ok := i.form.Raw(obj); ok {
		d.Bytes = raw.Size()
	} else {
		d.Bytes = objectsize.Of(obj)
	}
	return nil
}

// tell tells the ExtraStore, if there is one.
func (i *intake) tell(change cache.DeltaType, key string, obj interface{}) {
	if i.extra == nil {
		return
	}
	var err error
	switch change {
	case cache.Added:
		err = report.OfStore("Add", key, i.extra.Add(obj))
	case cache.Deleted:
		err = report.OfStore("Delete", key, i.extra.Delete(obj))
	default:
		err = report.OfStore("Update", key, i.extra.Update(obj))
	}
	if err != nil {
		i.report(err)
	}
}

func (s queueSink) Observed(resourceVersion string, _ bool) error {
	s.queue.Observed(resourceVersion)
	return nil
}

func (s queueSink) Resync(ctx context.Context) error {
	if s.stored == nil {
		return nil
	}
	for _, obj := range s.stored() {
		key, version, err := object.KeyAndVersion(obj)
		if err != nil {
			s.report(report.OfStore("List", "", err))
			continue
		}
		if err := s.queue.Resync(ctx, deltaqueue.Delta{Type: cache.Sync, Key: key, Version: version, Object: obj}); err != nil {
			return err
		}
	}
	return nil
}

func (i *intake) tombstone(key string, last keytable.Version) cache.DeletedFinalStateUnknown {
	return object.Tombstone(i.kind, key, last)
}

// queueGeneration is a generation that goes into the queue as it arrives.
type queueGeneration struct {
	queueSink
	ended func(complete bool)
}

func (g queueGeneration) Show(ctx context.Context, it object.Item) error {
	shown := g.queue.Shown(it.Key, it.Version)
	if shown && g.extra == nil { // who is told of unchanged objects too
		return nil
	}
	d := deltaqueue.Delta{Type: cache.Replaced, Key: it.Key, Version: it.Version}
	if err := g.fill(&d, it); err != nil {
		return err
	}
	change := cache.Added
	if g.queue.Knows(it.Key) {
		change = cache.Updated
	}
	g.tell(change, d.Key, d.Object)
	if shown {
		return nil
	}
	return g.queue.Put(ctx, d)
}

func (g queueGeneration) Keep(key string) { g.queue.Keep(key) }

func (g queueGeneration) End(ctx context.Context, resourceVersion string, complete bool) error {
	if complete {
		deleting := func(key string, last keytable.Version) {
			g.tell(cache.Deleted, key, g.tombstone(key, last))
		}
		if err := g.queue.Sweep(ctx, deleting); err != nil {
			return err
		}
	}
	// Before it may be synced: who waits for that may ask for the version.
	g.queue.Observed(resourceVersion)
	if complete {
		g.queue.EndGeneration()
	} else {
		g.queue.EndUnswept()
	}
	if g.ended != nil {
		g.ended(complete)
	}
	return nil
}

// abandon has nothing to undo: marks of a generation that did not end mean
// nothing to the next.
func (g queueGeneration) Abandon() {}
