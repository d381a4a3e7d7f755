package objectcache

import (
	"reflect"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer/internal/object"
)

// Get returns the object with the key of obj, an object or a cache.ExplicitKey. See GetByKey.
func (s *Store) Get(obj interface{}) (item interface{}, exists bool, err error) {
	key, err := object.Key(obj)
	if err != nil {
		return nil, false, err
	}
	return s.GetByKey(key)
}

// GetByKey returns the object of a key, which belongs to the caller. The error says that it cannot be decoded.
func (s *Store) GetByKey(key string) (item interface{}, exists bool, err error) {
	obj, exists, err := s.Shared(key)
	if !exists || err != nil {
		return nil, exists, err
	}
	if s.hot == nil {
		return obj, true, nil
	}
	return obj.DeepCopyObject(), true, nil
}

// GetInto overwrites into with the object of a key, if there is one. Into is as for Stored.DecodeInto.
func (s *Store) GetInto(key string, into runtime.Object) (exists bool, err error) {
	if reflect.TypeOf(into) == s.goType {
		obj, exists, err := s.GetByKey(key)
		if exists && err == nil {
			reflect.ValueOf(into).Elem().Set(reflect.ValueOf(obj).Elem())
		}
		return exists, err
	}
	found, exists := s.Lookup(key)
	if !exists {
		return false, nil
	}
	return true, found.DecodeInto(into)
}

// Shared returns the object of a key without a copy. It may be one that others have got as well: nobody may change it.
func (s *Store) Shared(key string) (obj runtime.Object, exists bool, err error) {
	if obj, ok := s.hot.get(key); ok {
		return obj, true, nil
	}
	found, exists := s.Lookup(key)
	if !exists {
		return nil, false, nil
	}
	obj, err = found.Shared()
	return obj, true, err
}

// Shared returns the object without a copy. It may be one that others have got as well: nobody may change it.
func (o Stored) Shared() (runtime.Object, error) {
	obj, err := o.Decode()
	if err != nil {
		return nil, err
	}
	s := o.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.table.records[o.Key()] != o.record {
		return obj, nil
	}
	return s.hot.add(o.Key(), obj, len(o.record.bytes)), nil
}

// Lookup returns the object of a key, still encoded.
func (s *Store) Lookup(key string) (found Stored, exists bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r, exists := s.table.records[key]
	return s.handle(r), exists
}

// List returns all objects, in one state of the store. The caller owns them.
func (s *Store) List() []interface{} {
	found, _ := s.Select(Query{}) // fails for unknown indexes only
	return s.decodeAll(found)
}

// ListKeys returns the keys of all objects.
func (s *Store) ListKeys() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	keys := make([]string, 0, len(s.table.records))
	for key := range s.table.records {
		keys = append(keys, key)
	}
	return keys
}

// decodeAll decodes what can be decoded, and reports the rest.
func (s *Store) decodeAll(found []Stored) []interface{} {
	objects := make([]interface{}, 0, len(found))
	for _, o := range found {
		obj, err := o.Decode()
		if err != nil {
			s.options.ErrorHandler(err)
			continue
		}
		objects = append(objects, obj)
	}
	return objects
}

// Query says which objects of a store are selected. The zero value selects all.
type Query struct {
	// Namespace is the namespace of the objects; empty for all.
	Namespace string
	// Labels selects objects; nil for all.
	Labels labels.Selector
	// Indexed are values of indexes, all of which the objects have.
	Indexed []IndexedValue
	// Limit is how many objects are selected at most; zero for all.
	Limit int
}

// IndexedValue is a value in an index.
type IndexedValue struct{ Name, Value string }

// Select returns the objects that a query selects, in one state of the store and in no order, without decoding any. The
// error says that an index does not exist.
func (s *Store) Select(q Query) ([]Stored, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, indexed := range q.Indexed {
		if s.table.indexers[indexed.Name] == nil {
			return nil, unknownIndex(indexed.Name)
		}
	}
	found := []Stored{}
	for key, r := range s.table.records {
		if q.Limit > 0 && len(found) == q.Limit {
			break
		}
		if s.table.matches(key, r, q) {
			found = append(found, s.handle(r))
		}
	}
	return found, nil
}

func (t *table) matches(key string, r *record, q Query) bool {
	if q.Namespace != "" && namespaceOf(key) != q.Namespace {
		return false
	}
	for _, indexed := range q.Indexed {
		if !t.keys[indexed.Name][indexed.Value].Has(key) {
			return false
		}
	}
	return q.Labels == nil || q.Labels.Matches(labels.Set(r.labels))
}

// ListMatching returns the objects of a namespace, or of all if it is empty, that a selector selects, nil for all. It decodes only
// these, and the caller owns them. The error says which object cannot be decoded.
func ListMatching(s *Store, namespace string, selector labels.Selector) ([]runtime.Object, error) {
	found, err := s.Select(Query{Namespace: namespace, Labels: selector})
	if err != nil {
		return nil, err
	}
	objects := make([]runtime.Object, 0, len(found))
	for _, o := range found {
		obj, err := o.Decode()
		if err != nil {
			return nil, err
		}
		objects = append(objects, obj)
	}
	return objects, nil
}
