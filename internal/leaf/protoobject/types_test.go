package protoobject_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/rvinformer/informer/internal/leaf/protoobject"
)

// filler fills objects with random values.
type filler struct{ *rand.Rand }

// fill sets all fields of v, some of them to their zero values, down to a depth.
func (f filler) fill(v reflect.Value, depth int) {
	switch of := v.Addr().Interface().(type) {
	case *metav1.Time:
		of.Time = time.Unix(f.Int64N(4e9)-1e9, 0)
		return
	case *metav1.MicroTime:
		of.Time = time.Unix(f.Int64N(4e9), f.Int64N(1e6)*1e3)
		return
	case *resource.Quantity:
		*of = resource.MustParse([]string{"0", "1", "250m", "64Mi", "1e3", "123456789012345678901234567890", "0.000000001"}[f.IntN(7)])
		return
	case *metav1.FieldsV1:
		of.SetRawBytes([]byte(`{"f:x":{}}`))
		return
	case *runtime.RawExtension:
		of.Raw = []byte(`{"a":1}`)
		return
	case *metav1.TypeMeta:
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() && f.IntN(8) > 0 {
				f.fill(v.Field(i), depth)
			}
		}
	case reflect.Pointer:
		if depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), depth-1)
		}
	case reflect.Slice:
		if depth > 0 {
			v.Set(reflect.MakeSlice(v.Type(), f.IntN(4), 4))
			for i := range v.Len() {
				f.fill(v.Index(i), depth-1)
			}
		}
	case reflect.Map:
		f.fillMap(v, depth)
	case reflect.String:
		v.SetString([]string{"", "x", "IfNotPresent", "kube-api-access", strings.Repeat("long", 70), fmt.Sprint(f.Uint32())}[f.IntN(6)])
	case reflect.Bool:
		v.SetBool(f.IntN(2) > 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt([]int64{0, 1, -1, 8080, 1 << 31, -1 << 63}[f.IntN(6)])
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(f.IntN(256)))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(f.Float64())
	}
}

func (f filler) fillMap(v reflect.Value, depth int) {
	if depth == 0 {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for range f.IntN(4) {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key, depth-1)
		f.fill(value, depth-1)
		v.SetMapIndex(key, value)
	}
}

// damaged returns a message in which something is wrong, or not as the generated code writes it.
func (f filler) damaged(message []byte) []byte {
	b := slices.Clone(message)
	switch at := f.IntN(len(b)); f.IntN(5) {
	case 0:
		return b[:at]
	case 1:
		b[at] ^= 1 << f.IntN(8)
		return b
	case 2: // all twice, which merges them
		return append(b, b...)
	case 3: // a field that nobody knows
		return append(append(b, 0xfa, 0x7f, 2, 'x', 'y'), message...)
	default:
		b[at] = byte(f.Uint32())
		b[f.IntN(len(b))] = byte(f.Uint32())
		return b
	}
}

// All types of the API are decoded as by their generated code, whole and damaged.
func TestTypesDecodeAsGenerated(t *testing.T) {
	objects := 0
	for kind, of := range scheme.Scheme.AllKnownTypes() {
		example, ok := reflect.New(of).Interface().(interface {
			protoobject.Message
			Marshal() ([]byte, error)
		})
		if _, has := any(example).(metav1.ObjectMetaAccessor); !ok || !has {
			continue
		}
		objects++
		random := filler{rand.New(rand.NewPCG(1, uint64(len(kind.Kind))))}
		var pool protoobject.Pool
		var last []byte
		for range 4 {
			example.Reset()
			random.fill(reflect.ValueOf(example).Elem(), 7)
			message, err := example.Marshal()
			require.NoError(t, err)
			requireSame(t, &pool, message, of)
			requireSame(t, &pool, slices.Concat(last, message), of) // merges them: what was set may be empty then
			last = message
			for range 6 {
				if len(message) > 0 {
					requireSame(t, &pool, random.damaged(message), of)
				}
			}
		}
	}
	require.Greater(t, objects, 100)
}

func requireSame(t *testing.T, pool *protoobject.Pool, message []byte, of reflect.Type) {
	t.Helper()
	want := reflect.New(of).Interface().(protoobject.Message)
	wrong := want.Unmarshal(message)
	// The decoder remembers strings and slices that come twice. Later rounds use them.
	var last protoobject.Message
	for range 4 {
		got := reflect.New(of).Interface().(protoobject.Message)
		err := pool.Unmarshal(message, protoobject.Known{}, got)
		if wrong != nil {
			require.EqualError(t, err, wrong.Error())
			continue
		}
		require.NoError(t, err)
		if !reflect.DeepEqual(want, got) {
			require.Equal(t, want, got, "%v: %x", of, message)
		}
		if last != nil {
			requireApart(t, reflect.ValueOf(last), reflect.ValueOf(got))
		}
		last = got
	}
}

// requireApart fails if equal values share memory that can be changed.
func requireApart(t *testing.T, a, b reflect.Value) {
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() || a.Type() == reflect.TypeFor[*time.Location]() {
			return
		}
		requireElsewhere(t, a, b, a.Type().Elem().Size())
		requireApart(t, a.Elem(), b.Elem())
	case reflect.Slice:
		requireElsewhere(t, a, b, uintptr(a.Cap())*a.Type().Elem().Size())
		for i := range a.Len() {
			requireApart(t, a.Index(i), b.Index(i))
		}
	case reflect.Map:
		requireElsewhere(t, a, b, uintptr(a.Len()))
		for _, key := range a.MapKeys() {
			requireApart(t, a.MapIndex(key), b.MapIndex(key))
		}
	case reflect.Struct:
		switch {
		case a.Type().PkgPath() == "unique": // a Handle, whose value cannot be changed: that of a FieldsV1 from client-go 0.38 on
			return
		case a.Type() == reflect.TypeFor[resource.Quantity]() && quantitiesShare:
			return
		}
		for i := range a.NumField() {
			requireApart(t, a.Field(i), b.Field(i))
		}
	}
}

// quantitiesShare tells that copies of a Quantity share what it refers to, which does not change, as
// they do from client-go 0.38 on.
var quantitiesShare = func() bool {
	q := resource.MustParse("123456789012345678901234567890")
	dec := func(q resource.Quantity) uintptr {
		return reflect.ValueOf(q).FieldByName("d").FieldByName("Dec").Pointer()
	}
	return dec(q) == dec(q.DeepCopy())
}()

// requireElsewhere fails if two references are to the same memory, and there is any.
func requireElsewhere(t *testing.T, a, b reflect.Value, size uintptr) {
	if size > 0 && a.Pointer() == b.Pointer() {
		t.Fatalf("%v is shared", a.Type())
	}
}

// A type of others has its own code, and shares the strings of the metadata.
func TestForeignTypeDecodesItself(t *testing.T) {
	var pool protoobject.Pool
	message := encoded(t, pod())
	for range 3 {
		var own foreign
		require.NoError(t, pool.Unmarshal(message, known, &own))
		require.Equal(t, pod().ObjectMeta.Labels, own.Labels)
		require.Equal(t, known.Name, own.Name)
		require.Equal(t, encoded(t, &metav1.PartialObjectMetadata{ObjectMeta: pod().ObjectMeta}), message[:len(message)-len(own.rest)])
	}
	for range 3 {
		own := foreign{clears: true}
		require.NoError(t, pool.Unmarshal(message, known, &own))
		require.Equal(t, message, own.rest, "all of it, because nothing was kept of the metadata")
	}
	own := foreign{refuses: true}
	require.EqualError(t, pool.Unmarshal(message, known, &own), "refused")
}

type foreign struct {
	metav1.ObjectMeta
	rest            []byte
	refuses, clears bool
}

func (f *foreign) Reset() { *f = foreign{refuses: f.refuses, clears: f.clears} }

func (f *foreign) Unmarshal(b []byte) error {
	if f.refuses {
		return errors.New("refused")
	}
	if f.clears {
		f.Reset()
	}
	f.rest = b
	return nil
}
