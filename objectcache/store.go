package objectcache

import (
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/pack"
)

// StoreOptions are options of a Store. The zero value is good.
type StoreOptions struct {
	// HotBytes is about how much memory decoded objects may take that were read by key, the least
	// recently used of which go first. What they take is measured for some objects of each type and
	// estimated for the others, within a third for objects of one kind. Reading such an object
	// again costs a DeepCopy. Where there is no room, only an object that is read again takes the
	// place of others. Zero is 8 MiB; negative keeps none.
	HotBytes int64
	// ErrorHandler is called with the error of an object that List, Index or ByIndex leaves out, or
	// that is in no index, because it cannot be decoded. It is called without a lock. The default
	// hands it to utilruntime.ErrorHandlers.
	ErrorHandler func(error)
}

// Store is a cache.Indexer that keeps each object encoded. It is safe for concurrent use. See the
// package comment.
type Store struct {
	options StoreOptions
	// goType and kind are what objects off the wire are decoded to.
	goType   reflect.Type
	shape    *shape // of goType
	kind     metav1.TypeMeta
	forms    forms
	decodes  atomic.Int64
	failures failures
	// secrets tells that the store has had unstructured Secrets, and kindless that it has had
	// unstructured objects that say no kind.
	secrets, kindless atomic.Bool
	hot               *hot
	// owned tells that an Informer has the store, whose batches name slots, and shrinks it where no
	// batch does.
	owned    bool
	metadata sync.Pool // of *wire.Metadata

	// replacing is held from the begin of a generation to its end. Writing is held by whoever
	// changes the store, while it compresses, decodes and calls index functions too. They are taken
	// in this order, and before mu.
	replacing, writing sync.Mutex

	// mu guards what follows. Only the holder of writing takes it for writing, and not for long.
	// What mu guards may be read by the holder of writing as well.
	mu              sync.RWMutex
	table           *table
	resourceVersion string
}

var _ cache.Indexer = (*Store)(nil)

// NewStore returns an empty store for objects like example: a pointer to a typed object, a
// *metav1.PartialObjectMetadata or a *unstructured.Unstructured. A nil example means unstructured.
// Objects of other types may be added as well; each comes back as what it was. Indexers may be nil;
// the map stays the caller's. An index function may read the store, and must not write to it.
func NewStore(example runtime.Object, indexers cache.Indexers, opts StoreOptions) *Store {
	if opts.ErrorHandler == nil {
		opts.ErrorHandler = func(err error) { report.Unhandled(klog.Background(), err, "Object was left out") }
	}
	s := &Store{options: opts, goType: unstructuredType, hot: newHot(opts.HotBytes)}
	s.table = newTable(s.hot)
	if t := reflect.TypeOf(example); isStruct(t) {
		s.goType, s.shape = t, shapeOf(t)
	}
	s.kind = metadataKind(example)
	for name, f := range indexers {
		s.table.addIndex(name, f, newIndex(f))
	}
	return s
}

// Add stores obj, in the place of an object of its key. The caller keeps obj. The error is a
// cache.KeyError if obj has no key, or says that it cannot be encoded. Like client-go's store, Add
// panics if an index function fails.
func (s *Store) Add(obj interface{}) error {
	e, err := s.encodeAny(obj)
	if err != nil {
		return err
	}
	defer s.reportFailures()
	s.put(e)
	return nil
}

func (s *Store) encodeAny(obj interface{}) (encoded, error) {
	o, ok := obj.(runtime.Object)
	if !ok {
		return encoded{}, fmt.Errorf("objectcache: store a %T: %w", obj, errNoObject)
	}
	return s.encodeObject(o, metav1.TypeMeta{})
}

// Update does what Add does.
func (s *Store) Update(obj interface{}) error { return s.Add(obj) }

// Delete forgets the object with the key of obj, an object or a cache.DeletedFinalStateUnknown. It
// is no error if there is none. The error is a cache.KeyError.
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

// Replace makes list all that the store has, at once: readers see all of the old objects or all of
// the new. The caller keeps list. The error is one of Add, and nothing is changed then. Replace
// waits for a list that an Informer is reading into the store.
func (s *Store) Replace(list []interface{}, resourceVersion string) error {
	defer s.reportFailures()
	g := s.begin()
	defer g.abandon()
	for _, obj := range list {
		e, err := s.encodeAny(obj)
		if err != nil {
			return err
		}
		g.put(e)
	}
	g.end(resourceVersion, true)
	for !s.owned && s.shrink() {
	}
	return nil
}

// Resync does nothing.
func (s *Store) Resync() error { return nil }

// Bookmark sets what LastStoreSyncResourceVersion returns.
func (s *Store) Bookmark(resourceVersion string) {
	s.writing.Lock()
	defer s.writing.Unlock()
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

// SizeBytes returns the memory that the store holds, in bytes: objects, keys, versions, labels,
// indexes and the decoded objects of StoreOptions.HotBytes.
func (s *Store) SizeBytes() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.table.sizeBytes()
}

// Len returns how many objects the store has.
func (s *Store) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.table.live
}

// version returns the version of the object of a key, and whether there is one.
func (s *Store) version(key string) (v keytable.Version, ok bool) {
	found, ok := s.Lookup(key)
	if !ok {
		return v, false
	}
	v, err := found.version()
	return v, err == nil
}

// unchanged reports whether the store has the object in this version. It allocates nothing.
func (s *Store) unchanged(key string, v keytable.Version) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n := s.table.find(key, live)
	return n != 0 && s.table.isVersion(n, v)
}

// change is what became of one key. Without an old object it was added, without a new one deleted.
type change struct{ old, new Stored }

// put stores e.
func (s *Store) put(e encoded) change {
	s.writing.Lock()
	defer s.writing.Unlock()
	old := s.table.find(e.key, live)
	values := s.indexValues(&e)
	prepared := s.prepare(&e, old)
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.table.stage(&e, prepared, values)
	e.release()
	c := change{old: s.handle(old)}
	s.replace(old, n)
	s.resourceVersion = e.version.ResourceVersion
	s.table.tidy()
	c.new = s.handle(n)
	s.shrinkOwn()
	return c
}

// shrinkOwn does a part of the work of shrinking a store that is not an Informer's. The caller
// holds the locks.
func (s *Store) shrinkOwn() {
	if !s.owned {
		s.table.shrink()
	}
}

// shrink gives back memory after a peak, for as long as it takes to move a page of slots. It
// reports whether more is to be done.
func (s *Store) shrink() (more bool) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if !s.table.isSparse() { // readers need not wait
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	more = s.table.shrink()
	for s.table.tidy() {
	}
	return more
}

// prepare compresses the bytes of an object that is going to replace an old one, or none.
func (s *Store) prepare(e *encoded, old uint32) pack.Prepared {
	var ref pack.Ref
	if old != 0 {
		ref = s.table.slots.at(old).ref
	}
	return s.table.pack.Prepare(e.like, ref, e.bytes)
}

// replace makes a staged slot live in the place of an old one, or of none.
func (s *Store) replace(old, n uint32) {
	if old != 0 {
		s.table.unlink(old)
		s.table.release(old)
	}
	s.table.link(n)
}

// remove forgets the object of a key, if there is one.
func (s *Store) remove(key string) (c change) {
	s.writing.Lock()
	defer s.writing.Unlock()
	n := s.table.find(key, live)
	if n == 0 {
		return c
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.old = s.handle(n)
	s.table.unlink(n)
	s.table.release(n)
	s.table.tidy()
	s.shrinkOwn()
	return c
}
