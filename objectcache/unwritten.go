package objectcache

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/rvinformer/informer/internal/leaf/gotype"
)

// checkUnwritten returns an error if an object has a value in a field that JSON leaves out
// (`json:"-"`), which would be lost.
func checkUnwritten(obj interface{}) error {
	if field := unwritten(reflect.ValueOf(obj)); field != "" {
		return fmt.Errorf("the field %s has a value, and JSON leaves it out: only an Informer with Options.Decoded keeps it", field)
	}
	return nil
}

// unwritten returns the name of such a field, or "".
func unwritten(v reflect.Value) (field string) {
	if !hasUnwritten(v.Type()) {
		return ""
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			field = unwritten(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := 0; i < v.Len() && field == ""; i++ {
			field = unwritten(v.Index(i))
		}
	case reflect.Map:
		for each := v.MapRange(); field == "" && each.Next(); {
			field = unwritten(each.Value())
		}
	case reflect.Struct:
		for i := 0; i < v.NumField() && field == ""; i++ {
			switch of := v.Type().Field(i); {
			case !of.IsExported():
			case !isUnwritten(of):
				field = unwritten(v.Field(i))
			case !v.Field(i).IsZero():
				field = fmt.Sprintf("%v.%s", v.Type(), of.Name)
			}
		}
	}
	return field
}

func isUnwritten(field reflect.StructField) bool {
	name, _ := gotype.JSONName(field)
	return name == "-"
}

// hasUnwritten reports whether values of a type may have such fields. Hardly any type has them, so
// that most objects cost one look at a map.
func hasUnwritten(t reflect.Type) bool {
	if known, ok := withUnwritten.Load(t); ok {
		return known.(bool)
	}
	has := findUnwritten(t, map[reflect.Type]bool{})
	withUnwritten.Store(t, has)
	return has
}

// withUnwritten is the cache of hasUnwritten, by type.
var withUnwritten sync.Map

// findUnwritten looks at the types within t that it has not seen.
func findUnwritten(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] || gotype.HasOwnJSON(t) {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return findUnwritten(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if of := t.Field(i); of.IsExported() && (isUnwritten(of) || findUnwritten(of.Type, seen)) {
				return true
			}
		}
	}
	return false
}
