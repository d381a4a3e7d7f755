package objectcache

import (
	"bytes"
	"fmt"
	"reflect"
	"sync"
	"unsafe"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/pack"
	"github.com/rvinformer/informer/internal/leaf/wire"
)

// Stored is one state of one object, still encoded, or decoded with Options.Decoded. It never
// changes, needs no lock and stays valid when the store has moved on. The zero value stands for no
// object.
type Stored struct {
	// object is the object if it is kept decoded. Then nothing else is set but uid.
	object    runtime.Object
	store     *Store
	record    pack.Record
	plain     []byte // instead of the record, for an object that is not in the store
	form      *form
	namespace string // of the record
	key       string // of plain
	// slot and born say where the store had the object.
	slot, born uint32
	hasNumber  bool
	// uid is a hash of the UID, 0 if that is not known.
	uid uint32
}

// handle returns the state of a slot, none for 0. The caller holds the store's lock.
func (s *Store) handle(n uint32) Stored { return s.handleIn(s.table, n) }

func (s *Store) handleIn(t *table, n uint32) Stored {
	if n == 0 {
		return Stored{}
	}
	of := t.pick(n)
	return s.stored(&of, t.pack.Record(of.ref))
}

// storedObject returns a handle of an object that is kept decoded, none for nil.
func storedObject(obj runtime.Object) Stored {
	if obj == nil {
		return Stored{}
	}
	return Stored{object: obj, uid: hashUID(string(versionOf(obj).UID))}
}

// IsZero reports whether o stands for no object.
func (o Stored) IsZero() bool { return o.store == nil && o.object == nil }

// Key returns "namespace/name", or "name".
func (o Stored) Key() string {
	switch {
	case o.object != nil:
		key, _ := object.Key(o.object) // it has one
		return key
	case o.plain != nil:
		return o.key
	}
	name, _ := splitHead(o.record.Head(), o.hasNumber)
	return joinKey(o.namespace, name)
}

// detached returns a handle of an object that is not in the store. It takes e.
func (s *Store) detached(e encoded) Stored {
	o := Stored{store: s, plain: bytes.Clone(e.bytes), key: e.key, form: s.forms.get(e.form), uid: hashUID(string(e.version.UID))}
	if o.plain == nil {
		o.plain = []byte{}
	}
	e.release()
	return o
}

// buffers are for the bytes of objects while they are decoded.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxPooled is how large a buffer may be that is kept.
const maxPooled = 64 << 10

func (o Stored) append(dst []byte) ([]byte, error) {
	if o.plain != nil {
		return append(dst, o.plain...), nil
	}
	return o.record.Append(dst)
}

// read calls f with the object's bytes, which are lent.
func (o Stored) read(f func(encoded []byte) error) error {
	buffer := buffers.Get().(*[]byte)
	encoded, err := o.append((*buffer)[:0])
	if err == nil {
		err = f(encoded)
	}
	if cap(encoded) <= maxPooled {
		*buffer = encoded
	}
	buffers.Put(buffer)
	if err != nil {
		return fmt.Errorf("objectcache: decode %v %q: %w", o.form.goType, o.Key(), err)
	}
	return nil
}

// sizeBytes is what a handle takes in memory, without its record.
func (o *Stored) sizeBytes() int64 { return int64(unsafe.Sizeof(*o)) + int64(cap(o.plain)+len(o.key)) }

// Decode returns the object, which belongs to the caller. The error names the object.
func (o Stored) Decode() (runtime.Object, error) {
	obj, _, err := o.decode()
	return obj, err
}

// decode returns how many bytes the object was decoded from, too.
func (o Stored) decode() (obj runtime.Object, length int, err error) {
	if o.object != nil {
		return o.object.DeepCopyObject(), 0, nil
	}
	o.store.decodes.Add(1)
	err = o.read(func(encoded []byte) error {
		length = len(encoded)
		obj, err = o.form.decode(encoded)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return obj, length, nil
}

// DecodeInto overwrites into with the object. Into is of the object's type, a
// *metav1.PartialObjectMetadata, or a *unstructured.Unstructured. The error names the object; into
// is undefined then.
func (o Stored) DecodeInto(into runtime.Object) error {
	if o.object != nil {
		return o.copyInto(into)
	}
	_, err := o.decodeInto(into)
	return err
}

// decodeInto returns how many bytes the object was decoded from, too.
func (o Stored) decodeInto(into runtime.Object) (length int, err error) {
	o.store.decodes.Add(1)
	err = o.read(func(encoded []byte) error {
		length = len(encoded)
		return o.form.decodeInto(encoded, into)
	})
	return length, err
}

// copyInto is DecodeInto of an object that is decoded.
func (o Stored) copyInto(into runtime.Object) error {
	if t := reflect.TypeOf(into); t == reflect.TypeOf(o.object) && !reflect.ValueOf(into).IsNil() {
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(o.object.DeepCopyObject()).Elem())
		return nil
	}
	f, bytes, err := encode(o.object)
	if err == nil {
		err = f.decodeInto(bytes, into)
	}
	if err != nil {
		return fmt.Errorf("objectcache: copy %T %q: %w", o.object, o.Key(), err)
	}
	return nil
}

// Shared returns the object without a copy. It may be one that others have got as well: no reader
// may change it.
func (o Stored) Shared() (runtime.Object, error) {
	if o.object != nil {
		return o.object, nil
	}
	s := o.store
	if obj := s.hot.get(o.slot, o.born); obj != nil {
		return obj, nil
	}
	obj, length, err := o.decode()
	if err != nil {
		return nil, err
	}
	return o.share(obj, length), nil
}

// share makes an object that was decoded from so many bytes the one that readers share. It returns
// that one, which may be another.
func (o Stored) share(obj runtime.Object, length int) runtime.Object {
	s := o.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.isLive(o.slot, o.born) {
		return obj
	}
	return s.hot.add(o.slot, o.born, obj, length)
}

// version returns the resource version and the UID, which are read without decoding the object.
func (o Stored) version() (v keytable.Version, err error) {
	if o.object != nil {
		return versionOf(o.object), nil
	}
	err = o.read(func(encoded []byte) error {
		var m wire.Metadata
		err := readMetadata(&m, encoded, o.form.protobuf)
		v = keytable.Version{ResourceVersion: string(m.ResourceVersion), UID: types.UID(m.UID)}
		return err
	})
	return v, err
}
