package objectcache

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/known"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// decodedStore keeps objects decoded, in client-go's own indexer, and hands them out as they are.
// It adds what an Informer needs to write to it.
type decodedStore struct {
	cache.Indexer
	transactions cache.TransactionStore
	// kind is what metadata off the wire is given, empty for other objects.
	kind schema.GroupVersionKind

	// writing is held by whoever changes the store.
	writing sync.Mutex
	live    atomic.Int64
	// sums have the checksums of what the objects were read as, where they are known. They belong to
	// the holder of writing.
	sums map[runtime.Object]uint32
}

func newDecodedStore(example runtime.Object, indexers cache.Indexers, opts ...cache.StoreOption) *decodedStore {
	own := cache.Indexers{} // the indexer keeps the map, and adds to it
	for name, f := range indexers {
		own[name] = f
	}
	indexer := cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, own, opts...)
	s := &decodedStore{Indexer: indexer, transactions: indexer.(cache.TransactionStore), sums: map[runtime.Object]uint32{}}
	kind := metadataKind(example)
	s.kind = kind.GroupVersionKind()
	return s
}

// Len returns how many objects the store has.
func (s *decodedStore) Len() int { return int(s.live.Load()) }

// Add stores obj, in the place of an object of its key.
func (s *decodedStore) Add(obj interface{}) error {
	return s.change(func() error { return s.Indexer.Add(obj) })
}

// Update does what Add does.
func (s *decodedStore) Update(obj interface{}) error { return s.Add(obj) }

// Delete forgets the object with the key of obj.
func (s *decodedStore) Delete(obj interface{}) error {
	return s.change(func() error { return s.Indexer.Delete(obj) })
}

// Replace makes list all that the store has.
func (s *decodedStore) Replace(list []interface{}, resourceVersion string) error {
	return s.change(func() error { return s.Indexer.Replace(list, resourceVersion) })
}

// change has a caller other than the informer change the store, and counts the objects anew: there
// are few such changes.
func (s *decodedStore) change(change func() error) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	defer func() { s.live.Store(int64(len(s.ListKeys()))) }()
	clear(s.sums) // it is not known which objects stay
	return change()
}

// AddIndexers adds indexes, also of the objects that are there.
func (s *decodedStore) AddIndexers(newIndexers cache.Indexers) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.Indexer.AddIndexers(newIndexers)
}

// checkIndexes panics if an index function fails. Client-go's indexer does so too, but when the
// object is in it. The caller holds writing.
func (s *decodedStore) checkIndexes(e encoded) {
	for name, f := range s.GetIndexers() {
		if isNamespaceIndex(f) {
			continue
		}
		if _, err := f(e.object); err != nil {
			panic(fmt.Errorf("unable to calculate an index entry for key %q on index %q: %v", e.key, name, err))
		}
	}
}

// get returns the object of a key, nil if there is none. Key may be lent.
func (s *decodedStore) get(key string) runtime.Object {
	obj, _, _ := s.GetByKey(key) // it never fails
	o, _ := obj.(runtime.Object)
	return o
}

// versionOf is empty for what is no object of the API, which others than the informer may have
// added.
func versionOf(obj runtime.Object) (v keytable.Version) {
	if m, err := meta.Accessor(obj); err == nil {
		v.ResourceVersion, v.UID = m.GetResourceVersion(), m.GetUID()
	}
	return v
}

func (s *decodedStore) version(key string) (v keytable.Version, ok bool) {
	obj := s.get(key)
	if obj == nil {
		return v, false
	}
	return versionOf(obj), true
}

// encodeItem decodes an object off the wire.
func (s *decodedStore) encodeItem(it object.Item) (encoded, error) {
	e := encoded{key: strings.Clone(it.Key), object: it.Object}
	if it.Lent != nil {
		var err error
		if e.object, err = it.Decode(); err != nil {
			return encoded{}, err
		}
		if !s.kind.Empty() {
			e.object.GetObjectKind().SetGroupVersionKind(s.kind)
		}
	}
	e.version = versionOf(e.object)
	if err := known.CheckLengths(e.key, e.version); err != nil {
		return encoded{}, it.Unreadable(err)
	}
	return e, nil
}

func (s *decodedStore) encodeObject(obj runtime.Object, _ metav1.TypeMeta) (encoded, error) {
	if !isStruct(reflect.TypeOf(obj)) {
		return encoded{}, fmt.Errorf("objectcache: store a %T: %w", obj, errNoObject)
	}
	key, version, err := object.KeyAndVersion(obj)
	return encoded{key: key, version: version, object: obj}, err
}

func (s *decodedStore) put(e encoded) change {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.checkIndexes(e)
	old := s.get(e.key)
	_ = s.Indexer.Update(e.object) // it has a key
	if old == nil {
		s.live.Add(1)
	}
	s.noteSum(old, e.object, e.sum)
	return change{old: storedObject(old), new: storedObject(e.object)}
}

func (s *decodedStore) remove(key string) change {
	s.writing.Lock()
	defer s.writing.Unlock()
	old := s.get(key)
	if old != nil {
		_ = s.Indexer.Delete(cache.ExplicitKey(key))
		s.live.Add(-1)
	}
	s.noteSum(old, nil, 0)
	return change{old: storedObject(old)}
}

// noteSum notes the checksum of an object, nil if there is none, that has taken the place of old.
func (s *decodedStore) noteSum(old, obj runtime.Object, sum uint32) {
	delete(s.sums, old)
	if sum != 0 && obj != nil {
		s.sums[obj] = sum
	}
}

func (s *decodedStore) detached(e encoded) Stored { return storedObject(e.object) }

func (s *decodedStore) all() *batch {
	all := &batch{}
	for _, obj := range s.List() {
		if o, ok := obj.(runtime.Object); ok {
			all.objects = append(all.objects, o)
		}
	}
	return all
}

// shrink does nothing: client-go's indexer keeps its maps.
func (s *decodedStore) shrink() (more bool) { return false }

func (s *decodedStore) begin() generation {
	return &decodedGeneration{store: s, stays: map[runtime.Object]bool{}, places: map[string]int{}, sums: map[runtime.Object]uint32{}}
}

// decodedGeneration is a generation of a decodedStore.
type decodedGeneration struct {
	store *decodedStore
	// stays has the objects of the store that were shown, and false for those that the server has
	// deleted meanwhile.
	stays map[runtime.Object]bool
	// staged are objects that the store takes at the end, nil where one was dropped, and places are
	// their places by their keys.
	staged []runtime.Object
	places map[string]int
	// sums are those of what is staged.
	sums map[runtime.Object]uint32
}

func (g *decodedGeneration) show(key string, v keytable.Version, sum uint32) bool {
	g.store.writing.Lock()
	defer g.store.writing.Unlock()
	if place, again := g.places[key]; again { // a page may be read twice
		obj := g.staged[place]
		return v.SameState(versionOf(obj)) && sum != 0 && g.sums[obj] == sum
	}
	obj := g.store.get(key)
	if obj == nil || !v.SameState(versionOf(obj)) || sum == 0 || g.store.sums[obj] != sum {
		return false
	}
	g.stays[obj] = true
	return true
}

func (g *decodedGeneration) showSame(e encoded) bool {
	g.store.writing.Lock()
	defer g.store.writing.Unlock()
	obj := g.store.get(e.key)
	if _, again := g.places[e.key]; again || obj == nil || !e.version.SameState(versionOf(obj)) || !equality.Semantic.DeepEqualWithNilDifferentFromEmpty(obj, e.object) {
		return false
	}
	g.store.noteSum(nil, obj, e.sum)
	g.stays[obj] = true
	return true
}

func (g *decodedGeneration) put(e encoded) {
	g.store.writing.Lock()
	defer g.store.writing.Unlock()
	g.store.checkIndexes(e)
	if e.sum != 0 {
		g.sums[e.object] = e.sum
	}
	if place, again := g.places[e.key]; again {
		g.staged[place] = e.object
		return
	}
	g.places[e.key] = len(g.staged)
	g.staged = append(g.staged, e.object)
}

func (g *decodedGeneration) drop(key string) {
	if place, staged := g.places[key]; staged {
		g.staged[place] = nil
		delete(g.places, key)
	}
	if obj := g.store.get(key); obj != nil {
		g.stays[obj] = false
	}
}

func (g *decodedGeneration) keep(key string) {
	if obj := g.store.get(key); obj != nil {
		g.stays[obj] = true
	}
}

func (g *decodedGeneration) known(key string) (v keytable.Version, told, ok bool) {
	if place, staged := g.places[key]; staged {
		return versionOf(g.staged[place]), true, true
	}
	obj := g.store.get(key)
	if obj == nil {
		return v, false, false
	}
	return versionOf(obj), g.stays[obj], true
}

func (g *decodedGeneration) deletes() bool {
	g.store.writing.Lock()
	defer g.store.writing.Unlock()
	return slices.ContainsFunc(g.changes(true), func(c decodedChange) bool { return c.new == nil })
}

func (g *decodedGeneration) end(resourceVersion string, complete bool) iter.Seq[change] {
	s := g.store
	s.writing.Lock()
	defer s.writing.Unlock()
	changes := g.changes(complete)
	s.apply(changes)
	for _, c := range changes {
		s.noteSum(c.old, c.new, g.sums[c.new])
	}
	s.Bookmark(resourceVersion)
	return func(yield func(change) bool) {
		for _, c := range changes {
			if !yield(change{old: storedObject(c.old), new: storedObject(c.new)}) {
				return
			}
		}
	}
}

// decodedChange is a change of an object, nil before an addition and after a deletion.
type decodedChange struct{ old, new runtime.Object }

// changes returns what is to be done.
func (g *decodedGeneration) changes(complete bool) []decodedChange {
	changes := make([]decodedChange, 0, len(g.places))
	for _, obj := range g.staged {
		if obj == nil {
			continue
		}
		key, _ := object.Key(obj) // it has one: it was staged by it
		old := g.store.get(key)
		if old != nil { // it is replaced, and not to be deleted
			g.stays[old] = true
		}
		changes = append(changes, decodedChange{old, obj})
	}
	for _, obj := range g.store.all().objects {
		if stays, told := g.stays[obj]; !stays && (complete || told) {
			changes = append(changes, decodedChange{old: obj})
		}
	}
	return changes
}

// apply makes all changes at once for readers.
func (s *decodedStore) apply(changes []decodedChange) {
	all := make([]cache.Transaction, 0, len(changes))
	for _, c := range changes {
		switch {
		case c.new == nil:
			all = append(all, cache.Transaction{Type: cache.TransactionTypeDelete, Object: c.old})
			s.live.Add(-1)
		default:
			all = append(all, cache.Transaction{Type: cache.TransactionTypeUpdate, Object: c.new})
			if c.old == nil {
				s.live.Add(1)
			}
		}
	}
	_ = s.transactions.Transaction(all...) // all have keys
}

func (g *decodedGeneration) abandon() {}
