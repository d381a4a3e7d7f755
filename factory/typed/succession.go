package typed

import (
	"maps"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"
)

// succession is the indexer of an informer that takes the place of one that was stopped.
// It answers from the objects of the stopped one until the new one has begun: an empty
// answer would look as if everything were deleted.
type succession struct {
	// Indexer is that of the new informer.
	cache.Indexer
	// synced tells that the new informer has its objects, because others have started it.
	synced func() bool
	// past is the indexer of the stopped informer, nil once it is not asked any more, so
	// that its objects can be collected.
	past atomic.Pointer[cache.Indexer]
}

// succeed returns the indexer of an informer that takes the place of a share.
func succeed(former *share, informer cache.SharedIndexInformer) *succession {
	s := &succession{Indexer: informer.GetIndexer(), synced: informer.HasSynced}
	past := former.GetIndexer()
	if older, ok := past.(*succession); ok {
		past = older.current()
	}
	if past != s.Indexer { // a share may end where the informer goes on
		s.past.Store(&past)
	}
	return s
}

// begin has the new informer answer from now on.
func (s *succession) begin() { s.past.Store(nil) }

// current is the indexer that answers.
func (s *succession) current() cache.Indexer {
	past := s.past.Load()
	switch {
	case past == nil:
		return s.Indexer
	case s.synced():
		s.begin()
		return s.Indexer
	}
	return *past
}

// write changes the new informer's objects and, while these answer, those of the stopped one, so
// that readers find what was written before the start and after it.
func (s *succession) write(change func(cache.Indexer) error) error {
	current := s.current()
	if err := change(s.Indexer); err != nil || current == s.Indexer {
		return err
	}
	return change(current)
}

func (s *succession) Add(obj interface{}) error {
	return s.write(func(i cache.Indexer) error { return i.Add(obj) })
}

func (s *succession) Update(obj interface{}) error {
	return s.write(func(i cache.Indexer) error { return i.Update(obj) })
}

func (s *succession) Delete(obj interface{}) error {
	return s.write(func(i cache.Indexer) error { return i.Delete(obj) })
}

func (s *succession) Replace(objects []interface{}, resourceVersion string) error {
	return s.write(func(i cache.Indexer) error { return i.Replace(objects, resourceVersion) })
}

// AddIndexers gives the objects of the stopped informer the indexes too that they do not have.
func (s *succession) AddIndexers(indexers cache.Indexers) error {
	return s.addIndexers(s.Indexer.AddIndexers, indexers)
}

// addIndexers adds the indexes with add to the new informer, and itself to the stopped one.
func (s *succession) addIndexers(add func(cache.Indexers) error, indexers cache.Indexers) error {
	current := s.current()
	missing := maps.Clone(indexers) // the indexer may keep the map
	if err := add(indexers); err != nil || current == s.Indexer {
		return err
	}
	for name := range current.GetIndexers() {
		delete(missing, name)
	}
	return current.AddIndexers(missing)
}

func (s *succession) List() []interface{} { return s.current().List() }
func (s *succession) ListKeys() []string  { return s.current().ListKeys() }
func (s *succession) LastStoreSyncResourceVersion() string {
	return s.current().LastStoreSyncResourceVersion()
}

func (s *succession) Get(obj interface{}) (item interface{}, exists bool, err error) {
	return s.current().Get(obj)
}

func (s *succession) GetByKey(key string) (item interface{}, exists bool, err error) {
	return s.current().GetByKey(key)
}

func (s *succession) Index(indexName string, obj interface{}) ([]interface{}, error) {
	return s.current().Index(indexName, obj)
}

func (s *succession) IndexKeys(indexName, indexedValue string) ([]string, error) {
	return s.current().IndexKeys(indexName, indexedValue)
}

func (s *succession) ListIndexFuncValues(indexName string) []string {
	return s.current().ListIndexFuncValues(indexName)
}

func (s *succession) ByIndex(indexName, indexedValue string) ([]interface{}, error) {
	return s.current().ByIndex(indexName, indexedValue)
}
