package objectcache

import (
	"fmt"
	"maps"
	"reflect"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/keytable"
	"github.com/rvinformer/informer/internal/object"
)

// StoreOptions are options of a Store. The zero value is good.
type StoreOptions struct {
	// HotBytes is about how much memory decoded objects may take that were read by key, the least recently used of
	// which go first. Reading such an object again costs a DeepCopy. Zero is 8 MiB; negative keeps none.
	HotBytes int64
	// ErrorHandler is called with the error of an object that List, Index or ByIndex leaves out, because it cannot be decoded.
	// The default is utilruntime.HandleError.
	ErrorHandler func(error)
}

// Store is a cache.Indexer that keeps each object encoded. It is safe for concurrent use. See the package comment.
type Store struct {
	options StoreOptions
	// goType and kind are what objects off the wire are decoded to.
	goType  reflect.Type
	kind    metav1.TypeMeta
	decodes atomic.Int64

	// writing is held by whoever changes the store, while it encodes, decodes and calls index functions too. It is taken
	// before mu.
	writing sync.Mutex

	// mu guards what follows. Only the holder of writing takes it for writing, and not for long.
	mu              sync.RWMutex
	table           *table
	resourceVersion string
	hot             *hot
}

var _ cache.Indexer = (*Store)(nil)

// NewStore returns an empty store for objects like example: a pointer to a typed object, a *metav1.PartialObjectMetadata or
// a *unstructured.Unstructured. A nil example means unstructured. Objects of other types may be added as well; each
// comes back as what it was. Indexers may be nil; the map stays the caller's.
func NewStore(example runtime.Object, indexers cache.Indexers, opts StoreOptions) *Store {
	if opts.ErrorHandler == nil {
		opts.ErrorHandler = utilruntime.HandleError
	}
	s := &Store{options: opts, goType: unstructuredType, hot: newHot(opts.HotBytes)}
	if t := reflect.TypeOf(example); isStruct(t) {
		s.goType = t
	}
	if partial, ok := example.(*metav1.PartialObjectMetadata); ok && partial != nil {
		s.kind = partial.TypeMeta
	}
	s.table = newTable(maps.Clone(indexers))
	return s
}

// Add stores obj, in the place of an object of its key. The caller keeps obj. The error is a cache.KeyError if obj has no key,
// or says that it cannot be encoded. Like client-go's store, Add panics if an index function fails.
func (s *Store) Add(obj interface{}) error {
	o, ok := obj.(runtime.Object)
	if !ok {
		return fmt.Errorf("objectcache: store a %T: it is no runtime.Object", obj)
	}
	e, err := s.encodeObject(o)
	if err != nil {
		return err
	}
	s.put(e)
	return nil
}

// Update does what Add does.
func (s *Store) Update(obj interface{}) error { return s.Add(obj) }

// Delete forgets the object with the key of obj, an object or a cache.DeletedFinalStateUnknown. It is no error if there is
// none. The error is a cache.KeyError.
func (s *Store) Delete(obj interface{}) error {
	key, err := object.Key(obj)
	if err != nil {
		return err
	}
	s.remove(key)
	if deleted, err := meta.Accessor(obj); err == nil {
		s.Bookmark(deleted.GetResourceVersion())
	}
	return nil
}

// Replace makes list all that the store has, at once: readers see all of the old objects or all of the new. The caller keeps
// list. The error is one of Add, and nothing is changed then.
func (s *Store) Replace(list []interface{}, resourceVersion string) error {
	g := s.begin()
	for _, obj := range list {
		o, ok := obj.(runtime.Object)
		if !ok {
			g.abandon()
			return fmt.Errorf("objectcache: store a %T: it is no runtime.Object", obj)
		}
		e, err := s.encodeObject(o)
		if err != nil {
			g.abandon()
			return err
		}
		g.put(e)
	}
	g.end(resourceVersion, true)
	return nil
}

// Resync does nothing.
func (s *Store) Resync() error { return nil }

// Bookmark sets what LastStoreSyncResourceVersion returns.
func (s *Store) Bookmark(resourceVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resourceVersion = resourceVersion
}

// LastStoreSyncResourceVersion returns the resource version of the newest change, list or bookmark.
func (s *Store) LastStoreSyncResourceVersion() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.resourceVersion
}

// Decoded returns how many objects were decoded so far, for readers, handlers and index functions.
func (s *Store) Decoded() int64 { return s.decodes.Load() }

// SizeBytes returns the memory that the store holds, in bytes: objects, keys, versions, labels, indexes and the decoded objects
// of StoreOptions.HotBytes.
func (s *Store) SizeBytes() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.table.size() + s.hot.size()
}

// unchanged reports whether the store has the object in this version. It allocates nothing.
func (s *Store) unchanged(key string, v keytable.Version) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.table.unchanged(key, v)
}

// change is what became of one key. Without an old object it was added, without a new one deleted.
type change struct{ old, new Stored }

// put stores e.
func (s *Store) put(e encoded) change {
	s.writing.Lock()
	defer s.writing.Unlock()
	r := &record{encoded: e, values: s.indexValues(e)}
	r.object = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.table.put(r)
	s.hot.drop(e.key)
	s.resourceVersion = e.version.ResourceVersion
	return change{old: s.handle(old), new: s.handle(r)}
}

// remove forgets the object of a key, if there is one.
func (s *Store) remove(key string) change {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hot.drop(key)
	return change{old: s.handle(s.table.remove(key))}
}

func (s *Store) handle(r *record) Stored {
	if r == nil {
		return Stored{}
	}
	return Stored{store: s, record: r}
}
