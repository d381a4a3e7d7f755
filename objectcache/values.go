package objectcache

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

// indexValues returns the values of e in each index that needs the object. It panics if an index
// function fails, as client-go's store does. The caller holds writing.
func (s *Store) indexValues(e *encoded) map[string][]string {
	return s.valuesIn(s.table.indexes, e.key, func() (runtime.Object, error) {
		if e.object != nil {
			return e.object, nil
		}
		s.decodes.Add(1)
		obj, err := s.forms.get(e.form).decode(e.bytes)
		if err != nil {
			return nil, fmt.Errorf("objectcache: decode %v %q: %w", s.forms.get(e.form).goType, e.key, err)
		}
		return obj, nil
	})
}

// valuesIn returns the values of an object in indexes. The object is decoded if there is one. What
// cannot be decoded has no values, and is one of the failures.
func (s *Store) valuesIn(indexes map[string]*index, key string, decode func() (runtime.Object, error)) map[string][]string {
	if len(indexes) == 0 {
		return nil
	}
	obj, err := decode()
	if err != nil {
		s.failures.add(err)
		return nil
	}
	all := make(map[string][]string, len(indexes))
	for name, x := range indexes {
		values, err := x.values(obj)
		if err != nil {
			panic(fmt.Errorf("unable to calculate an index entry for key %q on index %q: %v", key, name, err))
		}
		all[name] = values
	}
	return all
}
