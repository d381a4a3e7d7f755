package objectcache

import (
	"reflect"

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
	obj, exists, err := s.read(key)
	if !exists || err != nil {
		return nil, exists, err
	}
	return obj, true, nil
}

// read returns an object of the caller's own.
func (s *Store) read(key string) (obj runtime.Object, exists bool, err error) {
	obj, exists, err = s.Shared(key)
	if exists && err == nil && s.hot != nil {
		obj = obj.DeepCopyObject()
	}
	return obj, exists, err
}

// GetInto overwrites into with the object of a key, if there is one. Into is as for Stored.DecodeInto.
func (s *Store) GetInto(key string, into runtime.Object) (exists bool, err error) {
	if t := reflect.TypeOf(into); t == s.goType && !reflect.ValueOf(into).IsNil() {
		obj, exists, err := s.read(key)
		if !exists || err != nil {
			return exists, err
		}
		if reflect.TypeOf(obj) == t {
			reflect.ValueOf(into).Elem().Set(reflect.ValueOf(obj).Elem())
			return true, nil
		}
	}
	found, exists := s.Lookup(key)
	if !exists {
		return false, nil
	}
	return true, found.DecodeInto(into)
}

// Shared returns the object of a key without a copy. It may be one that others have got as well: no reader may change it.
func (s *Store) Shared(key string) (obj runtime.Object, exists bool, err error) {
	s.mu.RLock()
	n := s.table.find(key, live)
	if n == 0 {
		s.mu.RUnlock()
		return nil, false, nil
	}
	if obj = s.hot.get(n, s.table.slots.at(n).born); obj != nil {
		s.mu.RUnlock()
		return obj, true, nil
	}
	found := s.handle(n)
	s.mu.RUnlock()
	obj, err = found.Shared()
	return obj, true, err
}

// Lookup returns the object of a key, still encoded.
func (s *Store) Lookup(key string) (found Stored, exists bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found = s.handle(s.table.find(key, live))
	return found, !found.IsZero()
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
	keys := make([]string, 0, s.table.live)
	for n := range (postings{table: s.table, every: true}).all {
		keys = append(keys, s.table.key(n))
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
