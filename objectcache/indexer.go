package objectcache

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

// unknownIndex is the error of client-go's store.
func unknownIndex(name string) error { return fmt.Errorf("Index with name %s does not exist", name) }

// Index returns the objects that share a value with obj in an index. The caller owns them.
func (s *Store) Index(indexName string, obj interface{}) ([]interface{}, error) {
	s.mu.RLock()
	f := s.table.indexers[indexName]
	s.mu.RUnlock()
	if f == nil {
		return nil, unknownIndex(indexName)
	}
	values, err := f(obj)
	if err != nil {
		return nil, err
	}
	s.mu.RLock()
	keys := sets.Set[string]{}
	for _, value := range values {
		keys = keys.Union(s.table.keys[indexName][value])
	}
	found := s.gather(keys)
	s.mu.RUnlock()
	return s.decodeAll(found), nil
}

// ByIndex returns the objects with a value in an index. The caller owns them.
func (s *Store) ByIndex(indexName, indexedValue string) ([]interface{}, error) {
	found, err := s.Select(Query{Indexed: []IndexedValue{{Name: indexName, Value: indexedValue}}})
	if err != nil {
		return nil, err
	}
	return s.decodeAll(found), nil
}

// IndexKeys returns the keys of the objects with a value in an index, sorted.
func (s *Store) IndexKeys(indexName, indexedValue string) ([]string, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.table.indexers[indexName] == nil {
		return nil, unknownIndex(indexName)
	}
	return sets.List(s.table.keys[indexName][indexedValue]), nil
}

// ListIndexFuncValues returns the values that objects have in an index.
func (s *Store) ListIndexFuncValues(indexName string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.AppendSeq(make([]string, 0, len(s.table.keys[indexName])), maps.Keys(s.table.keys[indexName]))
}

// GetIndexers returns a copy of the indexers.
func (s *Store) GetIndexers() cache.Indexers {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.Clone(s.table.indexers)
}

// AddIndexers adds indexes, also of the objects that are there, each of which is decoded once. Readers do not wait for that.
// The error names indexers that exist already. It panics if an index function fails, and adds nothing.
func (s *Store) AddIndexers(newIndexers cache.Indexers) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	names := sets.KeySet(newIndexers)
	if conflicts := names.Intersection(sets.KeySet(s.table.indexers)); len(conflicts) > 0 {
		return fmt.Errorf("indexer conflict: %v", conflicts)
	}
	// Only the holder of writing changes the table, so that it may be read without mu.
	indexed := make([]*record, 0, len(s.table.records))
	for _, r := range s.table.records {
		next := *r
		next.values = maps.Clone(r.values)
		for name, f := range newIndexers {
			next.values[name] = s.valuesOf(next.encoded, name, f)
		}
		indexed = append(indexed, &next)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, f := range newIndexers {
		s.table.indexers[name] = f
		s.table.keys[name] = map[string]sets.Set[string]{}
	}
	for _, r := range indexed {
		s.table.put(r)
	}
	return nil
}

// gather returns handles of the objects with the keys. The caller holds the lock.
func (s *Store) gather(keys sets.Set[string]) []Stored {
	found := make([]Stored, 0, len(keys))
	for key := range keys {
		found = append(found, s.handle(s.table.records[key]))
	}
	return found
}
