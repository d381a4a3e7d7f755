package sink

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/failure"
)

// Store is a cache.ReflectorStore as a Sink.
type Store struct {
	Into cache.ReflectorStore
	// Streamed asks for lists to be added object by object if Into can list what it holds.
	Streamed bool
	// BeginGeneration is that of Into, nil if it has none.
	BeginGeneration func(ctx context.Context) (StoreGeneration, error)
}

// StoreGeneration is a generation that a store takes as it arrives: the informer.Generation.
type StoreGeneration interface {
	Item(ctx context.Context, obj interface{}) error
	Skipped(key string)
	End(ctx context.Context, resourceVersion string) error
	Abandon()
}

// updater is a store that wants to know the newest resource version: the
// informer.ResourceVersionUpdater.
type updater interface {
	UpdateResourceVersion(resourceVersion string)
}

// Begin begins a generation, in the way that the store has.
func (s Store) Begin(ctx context.Context) (Generation, error) {
	if s.BeginGeneration != nil {
		g, err := s.BeginGeneration(ctx)
		if err != nil {
			return nil, &api.StoreError{Op: "BeginGeneration", Err: err}
		}
		return arriving{g}, nil
	}
	if holder, ok := s.Into.(holder); ok && s.Streamed {
		return &streamed{store: holder, shown: map[string]types.UID{}}, nil
	}
	return &gathered{store: s.Into, places: map[string]int{}, unread: sets.New[string]()}, nil
}

// Put adds, updates or deletes an object. It is never stale.
func (s Store) Put(_ context.Context, event watch.EventType, it object.Item) (Verdict, error) {
	it, err := it.Owned()
	if err != nil {
		return Taken, err
	}
	switch event {
	case watch.Added:
		verdict := Taken
		if s.has(it) {
			verdict = TakenAgain
		}
		return verdict, failure.OfStore("Add", it.Key, s.Into.Add(it.Object))
	case watch.Modified:
		return Taken, failure.OfStore("Update", it.Key, s.Into.Update(it.Object))
	default:
		return Taken, failure.OfStore("Delete", it.Key, s.Into.Delete(it.Object))
	}
}

// has reports whether the store has an object in just its state, as far as the store can say.
func (s Store) has(it object.Item) bool {
	store, ok := s.Into.(cache.KeyGetter)
	if !ok {
		return false
	}
	known, exists, err := store.GetByKey(it.Key)
	if err != nil || !exists {
		return false
	}
	_, version, err := object.KeyAndVersion(known)
	return err == nil && version.SameState(it.Version)
}

// Observed hands a resource version on, and a bookmark.
func (s Store) Observed(p Progress) error {
	if store, ok := s.Into.(updater); ok {
		store.UpdateResourceVersion(p.ResourceVersion)
	}
	if !p.Bookmark {
		return nil
	}
	switch store := s.Into.(type) {
	case cache.ReflectorBookmarkStore:
		return failure.OfStore("Bookmark", "", store.Bookmark(p.ResourceVersion))
	case cache.Store: // whose Bookmark returns nothing
		store.Bookmark(p.ResourceVersion)
	}
	return nil
}

// Resync has the store repeat what it has.
func (s Store) Resync(context.Context) error {
	return failure.OfStore("Resync", "", s.Into.Resync())
}

// arriving hands a generation on to a store that takes it as it arrives.
type arriving struct{ store StoreGeneration }

func (g arriving) Show(ctx context.Context, it object.Item) error {
	it, err := it.Owned()
	if err != nil {
		return err
	}
	return failure.OfStore("Item", it.Key, g.store.Item(ctx, it.Object))
}

func (g arriving) Keep(key string) { g.store.Skipped(key) }

// Deletes is true: the store does not say.
func (g arriving) Deletes() bool { return true }

func (g arriving) End(ctx context.Context, resourceVersion string, complete bool) error {
	if !complete {
		g.store.Skipped("")
	}
	return failure.OfStore("End", "", g.store.End(ctx, resourceVersion))
}

func (g arriving) Abandon() { g.store.Abandon() }
