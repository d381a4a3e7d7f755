package objectcache

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer/internal/engine/object"
)

// Get returns the object with the key of obj, an object or a cache.ExplicitKey. See GetByKey.
func (s *Store) Get(obj interface{}) (item interface{}, exists bool, err error) {
	key, err := object.Key(obj)
	if err != nil {
		return nil, false, err
	}
	return s.GetByKey(key)
}

// GetByKey returns the object of a key, which belongs to the caller. The error says that it cannot
// be decoded.
func (s *Store) GetByKey(key string) (item interface{}, exists bool, err error) {
	obj, exists, err := s.read(key)
	if !exists || err != nil {
		return nil, exists, err
	}
	return obj, true, nil
}

// read returns an object of the caller's own.
func (s *Store) read(key string) (obj runtime.Object, exists bool, err error) {
	found, shared := s.lookupHot(key)
	switch {
	case shared != nil:
		return shared.DeepCopyObject(), true, nil
	case found.IsZero():
		return nil, false, nil
	}
	obj, length, err := found.decode()
	if err != nil {
		return nil, true, err
	}
	found.heat(obj, length)
	return obj, true, nil
}

// GetInto overwrites into with the object of a key, if there is one. Into is as for
// Stored.DecodeInto.
func (s *Store) GetInto(key string, into runtime.Object) (exists bool, err error) {
	found, shared := s.lookupHot(key)
	switch {
	case shared != nil && reflect.TypeOf(shared) == reflect.TypeOf(into) && !reflect.ValueOf(into).IsNil():
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(shared.DeepCopyObject()).Elem())
		return true, nil
	case found.IsZero():
		return false, nil
	}
	length, err := found.decodeInto(into)
	if err == nil && reflect.TypeOf(into) == found.form.goType {
		found.heat(into, length)
	}
	return true, err
}

// heat keeps a copy of the object, which was decoded from so many bytes, if it is read often
// enough.
func (o Stored) heat(obj runtime.Object, length int) {
	if o.store.hot.wants(o.state(), reflect.TypeOf(obj), length) {
		o.share(obj.DeepCopyObject(), length)
	}
}

// lookupHot returns the object of a key, and the one that is shared if it is hot.
func (s *Store) lookupHot(key string) (found Stored, shared runtime.Object) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n := s.table.find(key, live)
	if n == 0 {
		return Stored{}, nil
	}
	return s.handle(n), s.hot.get(n, s.table.slots.at(n).born)
}

// Shared returns the object of a key without a copy. It may be one that others have got as well: no
// reader may change it.
func (s *Store) Shared(key string) (obj runtime.Object, exists bool, err error) {
	found, obj := s.lookupHot(key)
	if obj != nil || found.IsZero() {
		return obj, !found.IsZero(), nil
	}
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
