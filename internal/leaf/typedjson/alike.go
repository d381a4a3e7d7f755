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
	marshalerType       = reflect.TypeFor[stdjson.Marshaler]()
	textMarshalerType   = reflect.TypeFor[encoding.TextMarshaler]()
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

// isKey reports whether a type may be the key of a map. An empty object is decoded into a map of
// keys that are neither strings nor numbers by one decoder, and refused by the other; the key "null"
// is refused for numbers by one of them. One of a key's two methods counts, and not for both the same.
func isKey(t reflect.Type) bool {
	return t.Kind() == reflect.String && !reflect.PointerTo(t).Implements(unmarshalerType) && !reflect.PointerTo(t).Implements(unmarshalerFromType)
}

// isQuotable reports whether the option "string" means the same to both decoders for a field of a
// type: it does for what has no methods and can be written as a string, and for a pointer to that.
func isQuotable(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer && t.Name() == "" {
		t = t.Elem()
	}
	p := reflect.PointerTo(t)
	for _, methods := range []reflect.Type{unmarshalerType, textUnmarshalerType, marshalerType, textMarshalerType} {
		if p.Implements(methods) {
			return false
		}
	}
	return t.Kind() == reflect.String || reflect.Bool <= t.Kind() && t.Kind() <= reflect.Float64
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
		_, with, _ := strings.Cut(tag, ",")
		if hasNewOption(with) || !isAlike(field.Type, seen) || hasOption(with, "string") && !isQuotable(field.Type) {
			return false
		}
	}
	return true
}

// hasNewOption reports whether a tag has an option that apimachinery does not know.
func hasNewOption(options string) bool {
	return hasOption(options, "embed") || hasOption(options, "case") || hasOption(options, "format")
}

// hasOption reports whether a tag has an option of a name, with a value perhaps.
func hasOption(options, name string) bool {
	for option := range strings.SplitSeq(options, ",") {
		if found, _, _ := strings.Cut(option, ":"); found == name {
			return true
		}
	}
	return false
}
