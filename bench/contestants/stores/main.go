// Command stores has what can remember the versions of objects: this library's
// storage, Go maps, and what client-go's informers keep objects in.
package main

import (
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/bench/race"
)

func main() {
	race.Main(
		contestant("map-uint64", func() race.Store { return newLockedMap(number) }),
		contestant("map-string", func() race.Store { return newLockedMap((*metav1.PartialObjectMetadata).GetResourceVersion) }),
		contestant("ours-storage", func() race.Store { return &storage{versions: informer.NewResourceVersionStorage()} }),
		contestant("client-go-store", func() race.Store {
			return &objectStore{objects: cache.NewThreadSafeStore(cache.Indexers{}, cache.Indices{})}
		}),
	)
}

func contestant(name string, open func() race.Store) race.Contestant {
	return race.Contestant{Entry: race.Entry{Name: name, Floor: "map-uint64", Scenarios: []race.Scenario{race.Storage}}, Open: open}
}

// storage is ours.
type storage struct {
	versions *informer.ResourceVersionStorage
	last     interface{} // read, so that it is not optimized away
	letters  int         // as last
}

func (s *storage) Put(obj *metav1.PartialObjectMetadata)    { must(s.versions.Add(obj)) }
func (s *storage) Remove(obj *metav1.PartialObjectMetadata) { must(s.versions.Delete(obj)) }
func (s *storage) ListKeys() []string                       { return s.versions.ListKeys() }

func (s *storage) Has(key string) (exists bool) {
	var err error
	s.last, exists, err = s.versions.GetByKey(key)
	must(err)
	return exists
}

func (s *storage) Pass() (n int) {
	for range s.versions.Lend() {
		n++
	}
	return n
}

func (s *storage) PassKeys() (n int) {
	for key := range s.versions.Lend() {
		s.letters += int(key[len(key)-1])
		n++
	}
	return n
}

// lockedMap is a map with the lock that it needs where several use it.
type lockedMap[V any] struct {
	mu       sync.RWMutex
	versions map[string]V
	of       func(*metav1.PartialObjectMetadata) V
	last     V
	letters  int
}

func newLockedMap[V any](of func(*metav1.PartialObjectMetadata) V) *lockedMap[V] {
	return &lockedMap[V]{versions: map[string]V{}, of: of}
}

func number(obj *metav1.PartialObjectMetadata) uint64 {
	n, err := strconv.ParseUint(obj.ResourceVersion, 10, 64)
	must(err)
	return n
}

func (m *lockedMap[V]) Put(obj *metav1.PartialObjectMetadata) {
	key, version := keyOf(obj), m.of(obj)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.versions[key] = version
}

func (m *lockedMap[V]) Remove(obj *metav1.PartialObjectMetadata) {
	key := keyOf(obj)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.versions, key)
}

func (m *lockedMap[V]) Has(key string) (exists bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	m.last, exists = m.versions[key]
	return exists
}

func (m *lockedMap[V]) Pass() (n int) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, m.last = range m.versions {
		n++
	}
	return n
}

func (m *lockedMap[V]) PassKeys() (n int) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for key, version := range m.versions {
		m.last = version
		m.letters += int(key[len(key)-1])
		n++
	}
	return n
}

func (m *lockedMap[V]) ListKeys() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	keys := make([]string, 0, len(m.versions))
	for key := range m.versions {
		keys = append(keys, key)
	}
	return keys
}

// objectStore is what client-go's informers keep objects in, without an index.
type objectStore struct {
	objects cache.ThreadSafeStore
	last    string
	letters int
}

func (s *objectStore) Put(obj *metav1.PartialObjectMetadata)    { s.objects.Add(keyOf(obj), obj) }
func (s *objectStore) Remove(obj *metav1.PartialObjectMetadata) { s.objects.Delete(keyOf(obj)) }
func (s *objectStore) ListKeys() []string                       { return s.objects.ListKeys() }

func (s *objectStore) Has(key string) bool {
	obj, exists := s.objects.Get(key)
	if exists {
		s.last = obj.(*metav1.PartialObjectMetadata).ResourceVersion
	}
	return exists
}

func (s *objectStore) Pass() (n int) {
	for _, obj := range s.objects.List() {
		s.last = obj.(*metav1.PartialObjectMetadata).ResourceVersion
		n++
	}
	return n
}

func (s *objectStore) PassKeys() (n int) {
	for _, obj := range s.objects.List() {
		obj := obj.(*metav1.PartialObjectMetadata)
		s.last = obj.ResourceVersion
		s.letters += int(obj.Name[len(obj.Name)-1])
		n++
	}
	return n
}

func keyOf(obj *metav1.PartialObjectMetadata) string {
	key, err := cache.MetaNamespaceKeyFunc(obj)
	must(err)
	return key
}

// must is for what an object with a name and a version cannot cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
