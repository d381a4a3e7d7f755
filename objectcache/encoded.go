package objectcache

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer/internal/engine/known"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/wire"
)

// encoded is an object on its way into the store, which takes it once.
type encoded struct {
	key     string
	version keytable.Version
	form    uint8
	bytes   []byte
	// sum is the checksum of what was read, see checksum; 0 if it is not known.
	sum uint32
	// labels are the text of the labels. Like are objects that this one is probably like: those of
	// one owner.
	labels []byte
	like   string
	// object is the decoded object, nil where it was not decoded yet.
	object runtime.Object
	// raw has the bytes. Its memory goes back to the pool when the store has them.
	raw *object.Raw
}

// describe fills in labels and like.
func (e *encoded) describe(labels []byte, controller string) {
	e.labels, e.like = labels, controller
	if controller == "" {
		e.like = unsafe.String(unsafe.SliceData(labels), len(labels))
	}
}

// release gives back the memory of the bytes.
func (e *encoded) release() {
	if e.raw != nil {
		object.Shared.Put(e.raw)
		e.raw, e.bytes = nil, nil
	}
}

// encodeItem returns an object that was read from the server, encoded. The item's bytes stay its
// reader's. The error is an *informer.ItemError.
func (s *Store) encodeItem(it object.Item) (encoded, error) {
	if it.Lent == nil {
		e, err := s.encodeObject(it.Object, metav1.TypeMeta{})
		if err != nil {
			return encoded{}, it.Unreadable(err)
		}
		return e, nil
	}
	if err := known.CheckLengths(it.Key, it.Version); err != nil {
		return encoded{}, it.Unreadable(err)
	}
	raw, err := it.Copy(&object.Shared)
	if err != nil {
		return encoded{}, it.Unreadable(err)
	}
	e, err := s.encodeRaw(it.Lent.Form, raw)
	if err != nil {
		e.release()
		return encoded{}, it.Unreadable(err)
	}
	return e, nil
}

// encodeRaw takes over raw.
func (s *Store) encodeRaw(form *object.Form, raw *object.Raw) (encoded, error) {
	e := encoded{key: raw.Key(), version: raw.Version(), raw: raw}
	var protobuf bool
	e.bytes, protobuf = raw.Message()
	if protobuf && !isMessage(s.goType) {
		return e, fmt.Errorf("a %v has no protobuf decoder", s.goType)
	}
	var err error
	if e.form, err = s.forms.number(s.formOffTheWire(protobuf, *raw.Kind())); err != nil {
		return e, err
	}
	switch {
	case protobuf && !s.shape.fits(e.bytes): // Decode says what is wrong
		if _, err = form.Decode(raw); err != nil {
			return e, err
		}
	case !protobuf && s.goType != unstructuredType:
		// The text is JSON, but only its type knows whether it is an object.
		if e.object, err = form.Decode(raw); err != nil {
			return e, err
		}
		s.decodes.Add(1)
	}
	m, _ := s.metadata.Get().(*wire.Metadata)
	if m == nil {
		m = &wire.Metadata{}
	}
	defer s.metadata.Put(m)
	if err := readMetadata(m, e.bytes, protobuf); err != nil {
		return e, err
	}
	e.describe(appendLabels(nil, m.Labels), string(m.Controller))
	return e, nil
}

// formOffTheWire returns the form of an object that the server says is of a kind.
func (s *Store) formOffTheWire(protobuf bool, kind metav1.TypeMeta) form {
	f := form{goType: s.goType, protobuf: protobuf, kind: s.kind}
	if s.goType != unstructuredType && s.goType != partialType {
		f.kind, f.implied = kind, kind != metav1.TypeMeta{}
	}
	return f
}

func readMetadata(m *wire.Metadata, bytes []byte, protobuf bool) error {
	if protobuf {
		return m.ReadProtobuf(bytes)
	}
	return m.ReadJSON(bytes)
}

// errNoObject is the error for what cannot be stored at all.
var errNoObject = errors.New("it is not a pointer to the struct of an object")

// encodeObject returns a decoded object, encoded: in protobuf where its type has it, else in JSON.
// The object must not change until the store has it. An object of the store's type that says no kind is of the
// kind that it was read as.
func (s *Store) encodeObject(obj runtime.Object, read metav1.TypeMeta) (encoded, error) {
	if obj == nil || !isStruct(reflect.TypeOf(obj)) || reflect.ValueOf(obj).IsNil() {
		return encoded{}, fmt.Errorf("objectcache: store a %T: %w", obj, errNoObject)
	}
	key, version, err := object.KeyAndVersion(obj)
	if err != nil {
		return encoded{}, err
	}
	s.noteKind(obj)
	e := encoded{key: key, version: version, object: obj}
	if err := s.encode(&e, read); err != nil {
		return encoded{}, fmt.Errorf("objectcache: store %T %q: %w", obj, key, err)
	}
	return e, nil
}

// encode fills in what is missing but the key, the version and the object.
func (s *Store) encode(e *encoded, read metav1.TypeMeta) error {
	if err := known.CheckLengths(e.key, e.version); err != nil {
		return err
	}
	f, bytes, err := encode(e.object)
	if err != nil {
		return err
	}
	if !f.protobuf {
		if err := checkUnwritten(e.object); err != nil {
			return err
		}
	}
	if f.goType == s.goType && f.kind == (metav1.TypeMeta{}) {
		f = s.formOffTheWire(f.protobuf, read)
	}
	if e.form, err = s.forms.number(f); err != nil {
		return err
	}
	e.bytes = bytes
	m, err := meta.Accessor(e.object)
	if err != nil {
		return err
	}
	owner := ""
	if controller := metav1.GetControllerOfNoCopy(m); controller != nil {
		owner = string(controller.UID)
	}
	e.describe(textOfLabels(m.GetLabels()), owner)
	return nil
}
