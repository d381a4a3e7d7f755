package typedjson

import (
	"encoding"
	stdjson "encoding/json"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
)

var (
	unmarshalerType     = reflect.TypeFor[stdjson.Unmarshaler]()
	unmarshalerFromType = reflect.TypeFor[json.UnmarshalerFrom]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	numberType          = reflect.TypeFor[stdjson.Number]()
)

// isAlike reports whether both decoders do the same with a type and all that it holds. Those in seen
// are being looked at.
func isAlike(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return true
	}
	seen[t] = true
	switch p := reflect.PointerTo(t); {
	case p.Implements(unmarshalerFromType), t == numberType:
		return false
	case p.Implements(unmarshalerType), p.Implements(textUnmarshalerType):
		return true
	}
	switch t.Kind() {
	case reflect.Interface: // which gets an int64 from apimachinery
		return false
	case reflect.Map:
		return isKey(t.Key()) && isAlike(t.Elem(), seen)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return isAlike(t.Elem(), seen)
	case reflect.Struct:
		return isAlikeStruct(t, seen)
	default:
		return true
	}
}

// isKey reports whether a type may be the key of a map. An empty object is decoded into a map of any
// other key by one decoder, and refused by the other.
func isKey(t reflect.Type) bool {
	return t.Kind() == reflect.String || reflect.Int <= t.Kind() && t.Kind() <= reflect.Uintptr
}

func isAlikeStruct(t reflect.Type, seen map[reflect.Type]bool) bool {
	// A type with tags that do not fit is refused whatever the text is.
	if json.Unmarshal([]byte("{}"), reflect.New(t).Interface(), options) != nil {
		return false
	}
	for i := range t.NumField() {
		field := t.Field(i)
		tag := field.Tag.Get("json")
		if tag == "-" || !field.IsExported() && !field.Anonymous {
			continue
		}
		if _, with, _ := strings.Cut(tag, ","); hasNewOption(with) || !isAlike(field.Type, seen) {
			return false
		}
	}
	return true
}

// hasNewOption reports whether a tag has an option that apimachinery does not know.
func hasNewOption(options string) bool {
	for option := range strings.SplitSeq(options, ",") {
		if name, _, _ := strings.Cut(option, ":"); name == "embed" || name == "case" || name == "format" {
			return true
		}
	}
	return false
}
