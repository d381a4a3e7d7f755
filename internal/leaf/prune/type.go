package prune

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer/internal/leaf/fieldpath"
	"github.com/rvinformer/informer/internal/leaf/gotype"
)

// Type says which fields of the objects of one Go type stay. It has a table of the fields that
// the paths lead to, by their numbers in protobuf.
type Type struct {
	rule rule
	// errs say which paths of Keep lead nowhere.
	errs []string
	// strayed tells that a path leads to no field of the type.
	strayed bool
	// textual tells that a path leads into what has no table for its protobuf.
	textual bool
}

// newType reads the type of objects.
func newType(t reflect.Type, f *Fields) *Type {
	if t.Implements(reflect.TypeFor[runtime.Unstructured]()) {
		return &Type{textual: true}
	}
	typed := &Type{}
	typed.rule = (&typeReader{Type: typed}).read(t, f.selection, nil)
	for _, names := range f.beyond {
		alone := &tree{}
		alone.add(names)
		checked := &Type{}
		(&typeReader{Type: checked}).read(t, selection{keep: alone}, nil)
		typed.errs = append(typed.errs, checked.errs...)
	}
	return typed
}

// Err names the paths of Keep that lead to no field of the type.
func (t *Type) Err() error {
	if len(t.errs) == 0 {
		return nil
	}
	return errors.New(strings.Join(t.errs, "; "))
}

// Knows reports whether every path leads to a field of the type.
func (t *Type) Knows() bool { return !t.strayed }

// InProtobuf reports whether AppendProtobuf does for the type what AppendJSON does.
func (t *Type) InProtobuf() bool { return !t.textual }

// rule is what becomes of a value. The zero value lets it stay as it is.
type rule struct {
	goes   bool
	within *table // what becomes of its parts; nil: they stay
}

func (r rule) stays() bool { return !r.goes && r.within == nil }

// table is what becomes of the parts of a value of a Go type.
type table struct {
	// fields are those of a struct that do not stay as they are.
	fields []fieldRule
	// numbers are the fields of a struct by their number in protobuf.
	numbers []rule
	// entries are those of a map by their key.
	entries map[string]entryRule
	// elements are those of a slice.
	elements rule
	// others are the fields of a struct without a number here, and the entries of a map
	// without a key here.
	others rule
	// text is where a struct has its own JSON, and any what has no type; for these, within is what
	// is selected.
	text   []int
	any    bool
	within selection
	// some tells that some field of a struct stays.
	some bool
}

type fieldRule struct {
	index int
	rule
}

// entryRule is the rule for the value of an entry of a map, and for the entry's message.
type entryRule struct{ value, message rule }

// byNumber is the rule for a field of a message.
func (t *table) byNumber(number int32) rule {
	if int(number) < len(t.numbers) {
		return t.numbers[number]
	}
	return t.others
}

// byKey is the rule for an entry of a map.
func (t *table) byKey(key []byte) rule {
	if r, ok := t.entries[string(key)]; ok {
		return r.message
	}
	return t.others
}

// typeReader reads Go types into tables.
type typeReader struct {
	*Type
	// inlining are the structs under way whose fields are those of the struct around them.
	inlining []reflect.Type
}

// stray notes that the paths selected by s lead nowhere at a value of a type, and returns what
// becomes of that.
func (r *typeReader) stray(s selection, at []string, why string) rule {
	r.strayed = true
	if s.keep != nil {
		r.errs = append(r.errs, fmt.Sprintf("keep %q: %s", fieldpath.Join(s.keep.first(at)), why))
	}
	return rule{goes: s.keep != nil}
}

// read returns what becomes of a value of type t, to which the names in at lead.
func (r *typeReader) read(t reflect.Type, s selection, at []string) rule {
	t = gotype.Pointed(t)
	switch {
	case s.all():
		return rule{}
	case gotype.HasOwnJSON(t):
		return r.ownJSON(t, s, at)
	case t == reflect.TypeFor[map[string]interface{}](), t == reflect.TypeFor[[]interface{}](), t.Kind() == reflect.Interface:
		r.textual = true
		return rule{within: &table{any: true, within: s}}
	case t.Kind() == reflect.Struct:
		return r.structure(t, s, at)
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
		return r.mapping(t, s, at)
	case t.Kind() == reflect.Slice:
		return r.slice(t, s, at)
	default:
		return r.stray(s, at, fmt.Sprintf("a %v has no fields", t))
	}
}

// ownJSON is read for a type that writes its JSON itself. Some keep the text: a
// runtime.RawExtension for instance.
func (r *typeReader) ownJSON(t reflect.Type, s selection, at []string) rule {
	r.textual = true
	if raw, ok := gotype.RawJSON(t); ok {
		return rule{within: &table{text: raw.Index, within: s}}
	}
	return r.stray(s, at, fmt.Sprintf("the fields of a %v are not known", t))
}

func (r *typeReader) structure(t reflect.Type, s selection, at []string) rule {
	result := &table{}
	seen := map[string]bool{}
	r.fields(result, t, s, at, seen)
	for _, named := range s.named() {
		if kind := len(at) == 0 && (named.name == "kind" || named.name == "apiVersion"); !kind && !seen[named.name] {
			var stray selection
			if s.keep != nil {
				stray.keep = named
			}
			r.stray(stray, append(at[:len(at):len(at)], named.name), fmt.Sprintf("%v has no field %q", t, named.name))
		}
	}
	return rule{within: result}
}

// fields adds the fields of a struct to its table, and their names to seen.
func (r *typeReader) fields(to *table, t reflect.Type, s selection, at []string, seen map[string]bool) {
	to.others = rule{goes: s.keep != nil}
	for i := range t.NumField() {
		field := t.Field(i)
		name, inlined := gotype.JSONName(field)
		var result rule
		switch {
		case inlined:
			result = r.inlined(gotype.Pointed(field.Type), s, at, seen)
		case !field.IsExported():
			continue
		case name == "-":
			result.goes = s.keep != nil
		default:
			seen[name] = true
			within, stays := s.member(name)
			if result.goes = !stays; stays {
				result = r.read(field.Type, within, append(at[:len(at):len(at)], name))
			}
		}
		if !result.stays() {
			to.fields = append(to.fields, fieldRule{i, result})
		}
		to.some = to.some || !result.goes
		r.number(to, field, result)
	}
}

// inlined is read for a struct whose fields are those of the struct around it in JSON. In
// protobuf it is a message of its own.
func (r *typeReader) inlined(t reflect.Type, s selection, at []string, seen map[string]bool) rule {
	if slices.Contains(r.inlining, t) { // it is inlined in itself, and has no other fields
		return rule{}
	}
	r.inlining = append(r.inlining, t)
	defer func() { r.inlining = r.inlining[:len(r.inlining)-1] }()
	within := &table{}
	r.fields(within, t, s, at, seen)
	switch {
	case !within.some:
		return rule{goes: true}
	case len(within.fields) == 0:
		return rule{}
	default:
		return rule{within: within}
	}
}

// number adds a field to the table of its struct by its number.
func (r *typeReader) number(to *table, field reflect.StructField, result rule) {
	number := gotype.ProtobufNumber(field)
	if number > 0 {
		for len(to.numbers) <= number {
			to.numbers = append(to.numbers, to.others)
		}
		to.numbers[number] = r.inMessage(field.Type, result)
		return
	}
	// The kind is not in the message. Any other field may be there in a way that its tag does not
	// say.
	if matters := result.within != nil || result.stays() && to.others.goes; matters && !gotype.IsTypeMeta(field.Type) {
		r.textual = true
	}
}

// inMessage is the rule for a value in its message.
func (r *typeReader) inMessage(t reflect.Type, result rule) rule {
	if result.within == nil {
		return result
	}
	t = gotype.Pointed(t)
	switch t.Kind() {
	case reflect.Slice:
		if gotype.HasOwnProtobuf(t) {
			r.textual = true
		}
		return result.within.elements // each is a field of its own
	case reflect.Map:
		if gotype.HasOwnProtobuf(t) {
			r.textual = true
		}
	}
	return result
}

func (r *typeReader) mapping(t reflect.Type, s selection, at []string) rule {
	result := &table{entries: map[string]entryRule{}, others: rule{goes: s.keep != nil}}
	for _, named := range s.named() {
		within, stays := s.member(named.name)
		value := rule{goes: true}
		if stays {
			value = r.read(t.Elem(), within, append(at[:len(at):len(at)], named.name))
		}
		message := r.inMessage(t.Elem(), value)
		if message.within != nil {
			message.within = &table{numbers: []rule{entryValue: message}}
		}
		result.entries[named.name] = entryRule{value, message}
	}
	return rule{within: result}
}

func (r *typeReader) slice(t reflect.Type, s selection, at []string) rule {
	element := s.element()
	if element.all() {
		r.strayed = true // a path of Prune does not lead into arrays
		return rule{}
	}
	if gotype.Pointed(t.Elem()).Kind() == reflect.Slice {
		return r.stray(s, at, fmt.Sprintf("a %v has no fields", t))
	}
	elements := r.read(t.Elem(), element, at)
	if elements.goes {
		return elements
	}
	return rule{within: &table{elements: elements}}
}
