package objectcache

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/rvinformer/informer/internal/leaf/gotype"
)

// loses reports whether an object that is encoded, in protobuf or in JSON, would not come back as it
// is: protobuf knows no empty lists and maps, and has no place for fields without a number; JSON
// leaves empty lists and maps out of fields with the option "omitempty".
func loses(v reflect.Value, protobuf bool) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return !v.IsNil() && loses(v.Elem(), protobuf)
	case reflect.Slice, reflect.Array:
		for i := 0; i < v.Len(); i++ {
			if loses(v.Index(i), protobuf) {
				return true
			}
		}
	case reflect.Map:
		for each := v.MapRange(); each.Next(); {
			if loses(each.Value(), protobuf) {
				return true
			}
		}
	case reflect.Struct:
		for _, f := range lossyFieldsOf(v.Type()) {
			if of := v.Field(f.index); f.loses(of, protobuf) || f.within && loses(of, protobuf) {
				return true
			}
		}
	}
	return false
}

// lossyField is a field of a struct that may lose its value, or has something within that may.
type lossyField struct {
	index int
	// unnumbered tells that the generated code of the struct has no place for the field.
	unnumbered bool
	// empty is the JSON of a list or a map without elements, and none for other fields.
	empty     string
	omitempty bool
	within    bool
}

// emptyBytes is the JSON of a []byte without elements, which protobuf knows.
const emptyBytes = `""`

// loses reports whether the value of the field itself is lost.
func (f lossyField) loses(v reflect.Value, protobuf bool) bool {
	switch {
	case protobuf && f.unnumbered && !v.IsZero():
		return true
	case f.empty == "" || protobuf && f.empty == emptyBytes || !protobuf && !f.omitempty:
		return false
	}
	return isEmpty(v)
}

// isEmpty reports whether a list or a map is empty, and not nil.
func isEmpty(v reflect.Value) bool { return !v.IsNil() && v.Len() == 0 }

// lossyFields has the fields of each struct that was met.
var lossyFields sync.Map

func lossyFieldsOf(t reflect.Type) []lossyField {
	if known, ok := lossyFields.Load(t); ok {
		return known.([]lossyField)
	}
	var fields []lossyField
	generated, ownJSON := isGenerated(t), gotype.HasOwnJSON(t)
	for i := range t.NumField() {
		of := t.Field(i)
		if !of.IsExported() && !(of.Anonymous && of.Type.Kind() == reflect.Struct) {
			continue
		}
		f := lossyField{index: i, unnumbered: generated && isUnnumbered(of)}
		if !ownJSON && !isUnwritten(of) {
			f.empty = emptyOf(of.Type)
			_, options, _ := strings.Cut(of.Tag.Get("json"), ",")
			f.omitempty = strings.Contains(options, "omitempty")
			f.within = mayLose(of.Type)
		}
		if f.unnumbered || f.empty != "" || f.within {
			fields = append(fields, f)
		}
	}
	lossyFields.Store(t, fields)
	return fields
}

// emptyOf returns the JSON of a list or a map without elements. It is empty for other types, and for
// those that write themselves.
func emptyOf(t reflect.Type) string {
	switch {
	case gotype.HasOwnJSON(t):
		return ""
	case t.Kind() == reflect.Map:
		return "{}"
	case t.Kind() != reflect.Slice:
		return ""
	case t.Elem().Kind() == reflect.Uint8:
		return emptyBytes
	}
	return "[]"
}

// mayLose reports whether values of a type have structs within that may lose something. A list of
// itself leads to none.
func mayLose(t reflect.Type) bool {
	seen := map[reflect.Type]bool{}
	for (t.Kind() == reflect.Pointer || t.Kind() == reflect.Array || emptyOf(t) != "") && !seen[t] {
		seen[t] = true
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && (!gotype.HasOwnJSON(t) || len(lossyFieldsOf(t)) > 0)
}

// isGenerated reports whether the protobuf code of a struct is generated. What is written by hand,
// such as that of metav1.Time, has no numbers, and is taken at its word.
func isGenerated(t reflect.Type) bool {
	if !gotype.HasOwnProtobuf(t) {
		return false
	}
	for i := range t.NumField() {
		if gotype.ProtobufNumber(t.Field(i)) != 0 {
			return true
		}
	}
	return false
}

// isUnnumbered reports whether a field has no place in the generated code of its struct.
func isUnnumbered(of reflect.StructField) bool {
	return gotype.ProtobufNumber(of) == 0 && !gotype.IsTypeMeta(of.Type) && !strings.HasPrefix(of.Name, "XXX_")
}

// encodeJSON returns the JSON of an object, with its empty lists and maps.
func encodeJSON(obj interface{}) ([]byte, error) {
	text, err := json.Marshal(obj)
	if v := reflect.ValueOf(obj); err == nil && loses(v, false) {
		text, err = withEmpty(v, text)
	}
	return text, err
}

// withEmpty returns the JSON of a value, in which empty lists and maps may be missing, with them.
func withEmpty(v reflect.Value, text json.RawMessage) (json.RawMessage, error) {
	if !loses(v, false) {
		return text, nil
	}
	switch v.Kind() {
	case reflect.Pointer:
		return withEmpty(v.Elem(), text)
	case reflect.Slice, reflect.Array:
		return rewritten(text, func(elements []json.RawMessage) (err error) {
			for i := 0; i < v.Len() && i < len(elements) && err == nil; i++ {
				elements[i], err = withEmpty(v.Index(i), elements[i])
			}
			return err
		})
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			return text, nil
		}
		return rewritten(text, func(members map[string]json.RawMessage) (err error) {
			for each := v.MapRange(); each.Next() && err == nil; {
				if value, ok := members[each.Key().String()]; ok {
					members[each.Key().String()], err = withEmpty(each.Value(), value)
				}
			}
			return err
		})
	default:
		return rewritten(text, func(members map[string]json.RawMessage) error { return addEmpty(v, members) })
	}
}

// rewritten returns a text of JSON that was decoded, changed and encoded.
func rewritten[T any](text json.RawMessage, change func(T) error) (json.RawMessage, error) {
	var parts T
	if err := json.Unmarshal(text, &parts); err != nil {
		return nil, err
	}
	if err := change(parts); err != nil {
		return nil, err
	}
	return json.Marshal(parts)
}

// addEmpty adds the empty lists and maps of a struct to its members.
func addEmpty(v reflect.Value, members map[string]json.RawMessage) error {
	for _, f := range lossyFieldsOf(v.Type()) {
		of := v.Field(f.index)
		name, inlined := gotype.JSONName(v.Type().Field(f.index))
		value, written := members[name]
		switch {
		case inlined && of.Kind() == reflect.Struct:
			if err := addEmpty(of, members); err != nil {
				return err
			}
		case inlined && !of.IsNil():
			if err := addEmpty(of.Elem(), members); err != nil {
				return err
			}
		case inlined:
		case written && f.within:
			var err error
			if members[name], err = withEmpty(of, value); err != nil {
				return fmt.Errorf("field %s: %w", name, err)
			}
		case !written && f.empty != "" && isEmpty(of):
			members[name] = json.RawMessage(f.empty)
		}
	}
	return nil
}
