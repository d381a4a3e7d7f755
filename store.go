package informer

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/keytable"
	"github.com/rvinformer/informer/internal/object"
	"github.com/rvinformer/informer/internal/report"
	"github.com/rvinformer/informer/internal/sink"
)

// GenerationStore is a cache.ReflectorStore that takes a list as it arrives,
// object by object, instead of whole in Replace. A Reflector uses it where its
// store has it.
type GenerationStore interface {
	cache.ReflectorStore
	// BeginGeneration is called before the first object of a list. The Generation
	// is given every object of the list and then either End or Abandon, all from
	// one goroutine, and nothing else is called on the store meanwhile.
	BeginGeneration(ctx context.Context) (Generation, error)
}

// Generation is one complete pass over the server's set. Its waits must end
// with their context.
type Generation interface {
	// Item is given one object, which is the store's from then on. One object may
	// come more than once. An error is reported, and the generation goes on: the
	// store must not delete what it had of the object.
	Item(ctx context.Context, obj interface{}) error
	// Skipped is called for an object of the list that could not be read: what
	// the store has of it must stay. If there was one of which not even the key is
	// known, it is called once more with an empty key, and End must not delete
	// anything.
	Skipped(key string)
	// End is called after the last object: what the generation did not show is
	// gone from the server and must be deleted. An error abandons the generation,
	// which is then read again.
	End(ctx context.Context, resourceVersion string) error
	// Abandon is called instead of End where the list could not be read to its
	// end. Nothing may be deleted.
	Abandon()
}

// storeSink is a cache.ReflectorStore as a sink.
type storeSink struct {
	store cache.ReflectorStore
	// streamed asks for lists to be added object by object where the store can
	// tell what it holds.
	streamed bool
}

func (s storeSink) Begin(ctx context.Context) (sink.Generation, error) {
	if store, ok := s.store.(GenerationStore); ok {
		g, err := store.BeginGeneration(ctx)
		if err != nil {
			return nil, &report.StoreError{Op: "BeginGeneration", Err: err}
		}
		return arriving{g}, nil
	}
	if holder, ok := s.store.(holder); ok && s.streamed {
		return &streamed{store: holder, shown: map[string]types.UID{}}, nil
	}
	return &gathered{store: s.store, places: map[string]int{}}, nil
}

func (s storeSink) Put(_ context.Context, event watch.EventType, it object.Item) (bool, error) {
	it, err := it.Owned()
	if err != nil {
		return false, err
	}
	switch event {
	case watch.Added:
		return false, report.OfStore("Add", it.Key, s.store.Add(it.Object))
	case watch.Modified:
		return false, report.OfStore("Update", it.Key, s.store.Update(it.Object))
	default:
		return false, report.OfStore("Delete", it.Key, s.store.Delete(it.Object))
	}
}

func (s storeSink) Observed(resourceVersion string, bookmark bool) error {
	if updater, ok := s.store.(ResourceVersionUpdater); ok {
		updater.UpdateResourceVersion(resourceVersion)
	}
	if !bookmark {
		return nil
	}
	switch store := s.store.(type) {
	case cache.ReflectorBookmarkStore:
		return report.OfStore("Bookmark", "", store.Bookmark(resourceVersion))
	case cache.Store: // whose Bookmark returns nothing
		store.Bookmark(resourceVersion)
	}
	return nil
}

func (s storeSink) Resync(context.Context) error {
	return report.OfStore("Resync", "", s.store.Resync())
}

// arriving hands a generation on to a store that takes it as it arrives.
type arriving struct{ store Generation }

func (g arriving) Show(ctx context.Context, it object.Item) error {
	it, err := it.Owned()
	if err != nil {
		return err
	}
	return report.OfStore("Item", it.Key, g.store.Item(ctx, it.Object))
}

func (g arriving) Keep(key string) { g.store.Skipped(key) }

func (g arriving) End(ctx context.Context, resourceVersion string, complete bool) error {
	if !complete {
		g.store.Skipped("")
	}
	return report.OfStore("End", "", g.store.End(ctx, resourceVersion))
}

func (g arriving) Abandon() { g.store.Abandon() }

// gathered collects a generation for Replace. It holds the whole list.
type gathered struct {
	store   cache.ReflectorStore
	objects []interface{}
	// places are those of the objects: a page may be read twice.
	places map[string]int
	// unread are the keys of objects that could not be read.
	unread []string
}

func (g *gathered) Show(_ context.Context, it object.Item) error {
	it, err := it.Owned()
	if err != nil {
		return err
	}
	if place, again := g.places[it.Key]; again {
		g.objects[place] = it.Object
		return nil
	}
	g.places[it.Key] = len(g.objects)
	g.objects = append(g.objects, it.Object)
	return nil
}

func (g *gathered) Keep(key string) { g.unread = append(g.unread, key) }

// end replaces what the store has. What could not be read stays as the store has
// it; a store that can not be asked for that, such as a queue, is given what was
// read by Add, so that it deletes nothing.
func (g *gathered) End(_ context.Context, resourceVersion string, complete bool) error {
	getter, canGet := g.store.(cache.KeyGetter)
	holder, canList := g.store.(holder)
	switch {
	case complete && len(g.unread) == 0:
	case complete && canGet:
		g.keepStored(getter)
	case canList:
		g.keepUnshown(holder)
	default:
		return g.addAll()
	}
	return report.OfStore("Replace", "", g.store.Replace(g.objects, resourceVersion))
}

func (g *gathered) keepStored(store cache.KeyGetter) {
	for _, key := range g.unread {
		if obj, exists, err := store.GetByKey(key); exists && err == nil {
			g.objects = append(g.objects, obj)
		}
	}
}

func (g *gathered) keepUnshown(store holder) {
	for _, obj := range store.List() {
		key, err := object.Key(obj)
		if err != nil {
			continue
		}
		if _, shown := g.places[key]; !shown {
			g.objects = append(g.objects, obj)
		}
	}
}

func (g *gathered) addAll() error {
	for _, obj := range g.objects {
		if err := g.store.Add(obj); err != nil {
			return report.OfStore("Add", "", err)
		}
	}
	return nil
}

func (g *gathered) Abandon() { g.objects = nil }

// holder is a store that can say which objects it holds.
type holder interface {
	cache.ReflectorStore
	List() []interface{}
}

// streamed adds a generation to a store object by object, and then deletes what
// it did not show. Objects are compared by namespace and name, because the
// store's own keys may be made in another way.
type streamed struct {
	store holder
	// shown has the UID of the object, empty for one that could not be read.
	shown map[string]types.UID
}

func (g *streamed) Show(_ context.Context, it object.Item) error {
	it, err := it.Owned()
	if err != nil {
		return err
	}
	g.shown[it.Key] = it.Version.UID
	return report.OfStore("Add", it.Key, g.store.Add(it.Object))
}

func (g *streamed) Keep(key string) { g.shown[key] = "" }

func (g *streamed) End(_ context.Context, resourceVersion string, complete bool) error {
	if complete {
		if err := g.sweep(); err != nil {
			return err
		}
	}
	if store, ok := g.store.(cache.Store); ok {
		store.Bookmark(resourceVersion)
	}
	return nil
}

func (g *streamed) sweep() error {
	for _, obj := range g.store.List() {
		key, version, err := object.KeyAndVersion(obj)
		if err != nil {
			return report.OfStore("List", "", err)
		}
		if uid, ok := g.shown[key]; ok && version.SameObject(keytable.Version{UID: uid}) {
			continue
		}
		if err := g.store.Delete(obj); err != nil {
			return report.OfStore("Delete", key, err)
		}
	}
	return nil
}

func (g *streamed) Abandon() {}
