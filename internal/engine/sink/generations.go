package sink

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/failure"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// gathered collects a generation for Replace. It holds the whole list.
type gathered struct {
	store   cache.ReflectorStore
	objects []interface{}
	// places are those of the objects: a page may be read twice.
	places map[string]int
	// unread are the keys of objects that could not be read.
	unread sets.Set[string]
}

func (g *gathered) Show(_ context.Context, it object.Item) error {
	it, err := it.Owned()
	if err != nil {
		return err
	}
	g.unread.Delete(it.Key)
	if place, again := g.places[it.Key]; again {
		if shown, err := object.Version(g.objects[place]); err == nil && !shown.SameObject(it.Version) {
			return Twice(it, shown.UID)
		}
		g.objects[place] = it.Object
		return nil
	}
	g.places[it.Key] = len(g.objects)
	g.objects = append(g.objects, it.Object)
	return nil
}

func (g *gathered) Keep(key string) {
	if _, shown := g.places[key]; !shown {
		g.unread.Insert(key)
	}
}

// Deletes implements Generation.
func (g *gathered) Deletes() bool {
	store, ok := g.store.(holder)
	return !ok || slices.ContainsFunc(store.List(), func(obj interface{}) bool {
		key, _ := object.Key(obj)
		_, shown := g.places[key]
		return !shown && !g.unread.Has(key)
	})
}

// End replaces what the store has. An object that could not be read stays as the store has
// it; a store that cannot say what it has, such as a queue, is given what was
// read by Add, so that it deletes nothing.
func (g *gathered) End(_ context.Context, resourceVersion string, complete bool) error {
	if !complete || len(g.unread) > 0 {
		holder, canList := g.store.(holder)
		if !canList {
			return g.addAll()
		}
		g.keepStored(holder, complete)
	}
	return failure.OfStore("Replace", "", g.store.Replace(g.objects, resourceVersion))
}

// keepStored adds what the store has of the objects that could not be read or, if the list is not
// complete, of all that were not shown. Objects are compared by namespace and name, because the
// store's own keys may be made in another way.
func (g *gathered) keepStored(store holder, complete bool) {
	for _, obj := range store.List() {
		key, _ := object.Key(obj) // a list shows nothing without a key
		if _, shown := g.places[key]; !shown && !complete || g.unread.Has(key) {
			g.objects = append(g.objects, obj)
		}
	}
}

func (g *gathered) addAll() error {
	for _, obj := range g.objects {
		if err := g.store.Add(obj); err != nil {
			return failure.OfStore("Add", "", err)
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
	if shown := g.shown[it.Key]; !it.Version.SameObject(keytable.Version{UID: shown}) {
		return Twice(it, shown)
	}
	g.shown[it.Key] = it.Version.UID
	return failure.OfStore("Add", it.Key, g.store.Add(it.Object))
}

func (g *streamed) Keep(key string) { g.shown[key] = "" }

// Deletes implements Generation.
func (g *streamed) Deletes() bool {
	return slices.ContainsFunc(g.store.List(), func(obj interface{}) bool {
		key, _ := object.Key(obj)
		_, shown := g.shown[key]
		return !shown
	})
}

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
			return failure.OfStore("List", "", err)
		}
		if uid, ok := g.shown[key]; ok && version.SameObject(keytable.Version{UID: uid}) {
			continue
		}
		if err := g.store.Delete(obj); err != nil {
			return failure.OfStore("Delete", key, err)
		}
	}
	return nil
}

func (g *streamed) Abandon() {}
