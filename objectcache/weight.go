package objectcache

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// weight estimates what decoded objects of one type take in memory from the length of their bytes.
// The first ones are measured, and then one in weighEvery, because that takes about as long as a
// copy.
type weight struct {
	objects           int
	measured, encoded float64
}

const (
	weighFirst = 16
	weighEvery = 16
	// decodedPerEncoded is used before an object was measured.
	decodedPerEncoded = 4
)

// of returns what an object takes.
func (w *weight) of(obj runtime.Object, encoded int) int64 {
	if w.objects++; w.objects <= weighFirst || w.objects%weighEvery == 0 {
		w.note(weighValue(reflect.ValueOf(obj).Elem()), encoded)
	}
	return w.estimate(reflect.TypeOf(obj), encoded)
}

// estimate returns what an object takes that was decoded from so many bytes: its struct, and the
// rest in proportion.
func (w *weight) estimate(t reflect.Type, encoded int) int64 {
	fixed := allocated(int64(t.Elem().Size()))
	if w.objects == 0 {
		return max(fixed, int64(encoded)*decodedPerEncoded)
	}
	return fixed + int64(float64(encoded)*w.measured/max(1, w.encoded))
}

// note notes that an object takes so many bytes. Those before it count for less and less.
func (w *weight) note(measured int64, encoded int) {
	const fade = 31.0 / 32
	w.measured, w.encoded = w.measured*fade+float64(measured), w.encoded*fade+float64(encoded)
}

// allocated returns the memory for an allocation of so many bytes, about: the allocator has classes
// of sizes.
func allocated(n int64) int64 {
	switch {
	case n <= 16: // small ones share a block
		return n
	case n <= 32:
		return up(n, 8)
	case n <= 256:
		return up(n, 16)
	case n <= 512:
		return up(n, 32)
	case n <= 2048:
		return up(n, 128)
	default:
		return n + n/16
	}
}

func up(n, to int64) int64 { return (n + to - 1) / to * to }

// mapBytes returns the memory of a map, about: groups of eight entries, at most 7 of 8 in use.
func mapBytes(entries int, entry int64) int64 {
	const header, table, group = 48, 48, 8
	if entries == 0 {
		return header
	}
	slots := int64(8)
	for entries > 8 && slots*7/8 < int64(entries) {
		slots *= 2
	}
	size := header + allocated(slots/8*(group+8*entry))
	if slots > 8 {
		size += table
	}
	return size
}

var timeType = reflect.TypeFor[time.Time]()

// weighValue returns what a value refers to.
func weighValue(v reflect.Value) (size int64) {
	switch v.Kind() {
	case reflect.String:
		return allocated(int64(v.Len()))
	case reflect.Pointer:
		if !v.IsNil() {
			size = allocated(int64(v.Type().Elem().Size())) + weighValue(v.Elem())
		}
	case reflect.Struct:
		if v.Type() == timeType || v.Type().PkgPath() == "unique" { // its location, or the text of a FieldsV1, is shared by all
			return 0
		}
		for i := range v.NumField() {
			size += weighValue(v.Field(i))
		}
	case reflect.Slice:
		size = allocated(int64(v.Cap()) * int64(v.Type().Elem().Size()))
		if !isFlat(v.Type().Elem().Kind()) {
			for i := range v.Len() {
				size += weighValue(v.Index(i))
			}
		}
	case reflect.Map:
		if !v.IsNil() {
			size = mapBytes(v.Len(), int64(v.Type().Key().Size()+v.Type().Elem().Size()))
			shared := v.Type().Elem().Kind() == reflect.Interface // the keys of unstructured objects are
			for of := v.MapRange(); of.Next(); {
				size += weighValue(of.Value())
				if !shared {
					size += weighValue(of.Key())
				}
			}
		}
	case reflect.Interface:
		if !v.IsNil() {
			size = allocated(int64(v.Elem().Type().Size())) + weighValue(v.Elem())
		}
	}
	return size
}

// isFlat reports whether values of a kind refer to nothing.
func isFlat(k reflect.Kind) bool { return reflect.Bool <= k && k <= reflect.Complex128 }
