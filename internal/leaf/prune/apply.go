package prune

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// Apply drops from obj, an unstructured object or a pointer to an API type, what does not stay,
// in place. A path that obj does not have is nothing to drop.
func (f *Fields) Apply(obj interface{}) {
	v := reflect.ValueOf(obj)
	if f.All() || v.Kind() != reflect.Pointer || v.IsNil() {
		return
	}
	if u, ok := obj.(runtime.Unstructured); ok {
		f.object(u.UnstructuredContent())
		return
	}
	if within := f.Of(v.Type()).rule.within; within != nil {
		within.apply(v)
	}
}

// apply does to v, which can be set, what the rule says.
func (r rule) apply(v reflect.Value) {
	switch {
	case r.stays() || !v.CanSet(): // within an embedded struct that is not exported, nothing can be set
	case r.goes:
		v.SetZero()
	default:
		r.within.apply(v)
	}
}

func (t *table) apply(v reflect.Value) {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch {
	case !v.IsValid(): // a nil pointer
	case t.any:
		t.applyToAny(v)
	case t.text != nil:
		t.applyToText(v.FieldByIndex(t.text))
	case v.Kind() == reflect.Struct:
		for _, field := range t.fields {
			field.apply(v.Field(field.index))
		}
	case v.Kind() == reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			t.applyToEntry(v, entries.Key(), entries.Value())
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			t.elements.apply(v.Index(i))
		}
	}
}

func (t *table) applyToEntry(m, key, value reflect.Value) {
	r := t.others
	if named, ok := t.entries[key.String()]; ok {
		r = named.value
	}
	switch {
	case r.stays():
	case r.goes:
		m.SetMapIndex(key, reflect.Value{})
	default:
		// What a map holds cannot be changed in place.
		changed := reflect.New(value.Type()).Elem()
		changed.Set(value)
		r.apply(changed)
		m.SetMapIndex(key, changed)
	}
}

// applyToAny is for a value without a type, as in an unstructured object.
func (t *table) applyToAny(v reflect.Value) {
	left, stays := t.within.value(v.Interface())
	if !stays || left == nil {
		v.SetZero()
		return
	}
	v.Set(reflect.ValueOf(left))
}

// applyToText is for JSON that was not decoded. Text that is no JSON stays as it is.
func (t *table) applyToText(v reflect.Value) {
	o := jsonObject{text: v.Bytes()}
	o.Reset(o.text)
	at := o.Space(0)
	switch o.At(at) {
	case '{', '[':
		if o.whole(at, t.within); o.OK() {
			v.SetBytes(append(o.dst, o.text[o.done:]...))
		}
	case 'n', 0: // null, or nothing
	default:
		if t.within.keep != nil {
			v.SetZero()
		}
	}
}
