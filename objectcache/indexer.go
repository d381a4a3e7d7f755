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
	return s.decodeAll(s.withAny(indexName, values)), nil
}

// withAny returns the objects with one of the values in an index, each once.
func (s *Store) withAny(indexName string, values []string) []Stored {
	p := s.pickAny(indexName, values)
	found := make([]Stored, len(p.list))
	for i := range found {
		found[i] = p.stored(s, i)
	}
	return found
}

func (s *Store) pickAny(indexName string, values []string) (p picks) {
	seen := map[uint32]bool{}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, value := range values {
		for n := range s.table.resolve(indexName, value).all {
			if len(values) > 1 && seen[n] {
				continue
			}
			p.list = append(p.list, s.table.pick(n))
			if len(values) > 1 {
				seen[n] = true
			}
		}
	}
	p.find(s.table)
	return p
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
	keys := []string{}
	for n := range s.table.resolve(indexName, indexedValue).all {
		keys = append(keys, s.table.key(n))
	}
	slices.Sort(keys)
	return keys, nil
}

// ListIndexFuncValues returns the values that objects have in an index.
func (s *Store) ListIndexFuncValues(indexName string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	values := []string{}
	texts := s.table.texts(indexName)
	if texts == nil {
		return values
	}
	for _, text := range texts.list {
		if text.count > 0 {
			values = append(values, text.text)
		}
	}
	return values
}

// GetIndexers returns a copy of the indexers.
func (s *Store) GetIndexers() cache.Indexers {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.Clone(s.table.indexers)
}

// AddIndexers adds indexes, also of the objects that are there, each of which is decoded once.
// Readers do not wait for that. The error names indexers that exist already. It panics if an index
// function fails, and adds nothing.
func (s *Store) AddIndexers(newIndexers cache.Indexers) error {
	defer s.reportFailures()
	s.writing.Lock()
	defer s.writing.Unlock()
	if conflicts := sets.KeySet(newIndexers).Intersection(sets.KeySet(s.table.indexers)); len(conflicts) > 0 {
		return fmt.Errorf("indexer conflict: %v", conflicts)
	}
	added := s.fill(newIndexers)
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, f := range newIndexers {
		s.table.addIndex(name, f, added[name])
	}
	return nil
}

// fill returns indexes of all slots, but for those that are answered from the key. The caller holds
// writing.
func (s *Store) fill(indexers cache.Indexers) map[string]*index {
	added := map[string]*index{}
	for name, f := range indexers {
		if !isNamespaceIndex(f) {
			added[name] = newIndex(f)
		}
	}
	if len(added) == 0 {
		return added
	}
	for n := uint32(1); n < s.table.slots.len; n++ {
		flags := s.table.slots.at(n).flags
		if flags&(live|staged) == 0 {
			continue
		}
		o := s.handle(n)
		values := s.valuesIn(added, o.Key(), o.Decode)
		for name, x := range added {
			x.set(n, values[name])
			if flags&live != 0 {
				x.link(n)
			}
		}
	}
	return added
}
