package objectcache

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/keytable"
)

// table has the objects and their indexes. Its owner guards it.
type table struct {
	records  map[string]*record
	indexers cache.Indexers
	// keys are those of each value of each index.
	keys  map[string]map[string]sets.Set[string]
	bytes int64
}

func newTable(indexers cache.Indexers) *table {
	t := &table{records: map[string]*record{}, indexers: cache.Indexers{}, keys: map[string]map[string]sets.Set[string]{}}
	for name, f := range indexers {
		t.indexers[name] = f
		t.keys[name] = map[string]sets.Set[string]{}
	}
	return t
}

func (t *table) unchanged(key string, v keytable.Version) bool {
	r := t.records[key]
	return r != nil && v.ResourceVersion != "" && r.version == v
}

// put returns the record that r replaces, nil if there was none.
func (t *table) put(r *record) (old *record) {
	old = t.remove(r.key)
	t.records[r.key] = r
	t.bytes += r.size()
	for name, values := range r.values {
		for _, value := range values {
			t.addValue(name, value, r.key)
		}
	}
	return old
}

func (t *table) addValue(name, value, key string) {
	of := t.keys[name][value]
	if of == nil {
		of = sets.Set[string]{}
		t.keys[name][value] = of
	}
	of.Insert(key)
}

// remove returns the record of key, nil if there is none.
func (t *table) remove(key string) *record {
	r := t.records[key]
	if r == nil {
		return nil
	}
	delete(t.records, key)
	t.bytes -= r.size()
	for name, values := range r.values {
		for _, value := range values {
			of := t.keys[name][value]
			of.Delete(key)
			if len(of) == 0 {
				delete(t.keys[name], value)
			}
		}
	}
	return r
}

// recordBytes is what a record takes beside its strings, about.
const recordBytes = 256

func (r *record) size() int64 {
	n := len(r.key) + len(r.version.ResourceVersion) + len(r.version.UID) + len(r.bytes) + recordBytes
	for name, value := range r.labels {
		n += len(name) + len(value)
	}
	for _, values := range r.values {
		for _, value := range values {
			n += len(value) + len(r.key)
		}
	}
	return int64(n)
}

func (t *table) size() int64 { return t.bytes }

// isNamespaceIndex reports whether f is cache.MetaNamespaceIndexFunc. Functions with the same code may differ only if they are
// closures, which that one is not.
func isNamespaceIndex(f cache.IndexFunc) bool {
	return reflect.ValueOf(f).Pointer() == reflect.ValueOf(cache.MetaNamespaceIndexFunc).Pointer()
}

// indexValues returns the values of e in each index. It panics if an index function fails, as client-go's store does.
// The caller holds the lock of writers.
func (s *Store) indexValues(e encoded) map[string][]string {
	values := map[string][]string{}
	for name, f := range s.table.indexers {
		values[name] = s.valuesOf(e, name, f)
	}
	return values
}

func (s *Store) valuesOf(e encoded, name string, f cache.IndexFunc) []string {
	if isNamespaceIndex(f) {
		return []string{namespaceOf(e.key)}
	}
	if e.object == nil {
		obj, err := Stored{store: s, record: &record{encoded: e}}.Decode()
		if err != nil {
			s.options.ErrorHandler(err)
			return nil
		}
		e.object = obj
	}
	values, err := f(e.object)
	if err != nil {
		panic(fmt.Errorf("unable to calculate an index entry for key %q on index %q: %v", e.key, name, err))
	}
	return slices.Clone(values)
}

func namespaceOf(key string) string {
	for i := range key {
		if key[i] == '/' {
			return key[:i]
		}
	}
	return ""
}
