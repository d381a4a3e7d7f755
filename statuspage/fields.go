package statuspage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/rvinformer/informer"
)

// fields are the exported fields of a struct, in their order. In JSON they are an object whose
// members have the names of the fields, but for a small letter at the beginning.
type fields []field

type field struct {
	Name string
	// Value is what JSON has: a bool, a number, a string, a time.Time, fields, or a slice of these.
	// It is nil where there is nothing.
	Value any
}

var stringerType = reflect.TypeFor[fmt.Stringer]()

// fieldsOf returns the fields of a struct. Texts in it are masked.
func fieldsOf(s any) fields {
	v := reflect.ValueOf(s)
	all := make(fields, 0, v.NumField())
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() {
			all = append(all, field{Name: f.Name, Value: valueOf(v.Field(i))})
		}
	}
	return all
}

func valueOf(v reflect.Value) any {
	switch x := v.Interface().(type) {
	case time.Time:
		if x.IsZero() {
			return nil
		}
		return utc(x)
	case time.Duration:
		return x.String()
	case error:
		return shown(x.Error())
	case *informer.Histogram:
		return histogramOf(x)
	}
	if v.Type().Implements(stringerType) && v.Kind() != reflect.Pointer {
		return shown(v.Interface().(fmt.Stringer).String())
	}
	switch v.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return v.Interface()
	case reflect.String:
		if v.String() == "" {
			return nil
		}
		return shown(v.String())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return valueOf(v.Elem())
	case reflect.Struct:
		return fieldsOf(v.Interface())
	case reflect.Slice, reflect.Array:
		if v.Len() == 0 {
			return nil
		}
		items := make([]any, v.Len())
		for i := range items {
			items[i] = valueOf(v.Index(i))
		}
		return items
	case reflect.Map:
		return fieldsOfMap(v)
	}
	return shown(fmt.Sprint(v.Interface()))
}

// fieldsOfMap returns the entries of a map in the order of their keys.
func fieldsOfMap(v reflect.Value) any {
	if v.Len() == 0 {
		return nil
	}
	all := make(fields, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		all = append(all, field{Name: fmt.Sprint(it.Key().Interface()), Value: valueOf(it.Value())})
	}
	slices.SortFunc(all, func(a, b field) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// without returns the fields but for some.
func (f fields) without(names ...string) fields {
	return slices.DeleteFunc(f, func(one field) bool { return slices.Contains(names, one.Name) })
}

// histogram is an informer.Histogram. Each bucket has the values that are not greater than its
// bound.
type histogram struct {
	Count   uint64   `json:"count"`
	Sum     float64  `json:"sum"`
	Buckets []bucket `json:"buckets"`
}

type bucket struct {
	Most  float64 `json:"most"`
	Count uint64  `json:"count"`
}

func histogramOf(h *informer.Histogram) any {
	if h == nil {
		return nil
	}
	all := histogram{Count: h.Count(), Sum: h.Sum()}
	for most, n := range h.Buckets() {
		all.Buckets = append(all.Buckets, bucket{most, n})
	}
	return all
}

// String is for people: "120 values, 0.004 on average, 99 % of them at most 0.01".
func (h histogram) String() string {
	if h.Count == 0 {
		return "no values"
	}
	text := fmt.Sprintf("%d values, %.3g on average", h.Count, h.Sum/float64(h.Count))
	for _, b := range h.Buckets {
		if b.Count*100 >= h.Count*99 {
			return text + fmt.Sprintf(", 99 %% of them at most %g", b.Most)
		}
	}
	return text
}

// MarshalJSON leaves out what is not there.
func (f fields) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, one := range f {
		if one.Value == nil {
			continue
		}
		value, err := json.Marshal(one.Value)
		if err != nil {
			return nil, err
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:", memberName(one.Name))
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// memberName is the name of a field in JSON.
func memberName(name string) string {
	return strings.ToLower(name[:min(1, len(name))]) + name[min(1, len(name)):]
}

// words are the name of a field for people: "Queued bytes".
func words(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte(' ')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}
