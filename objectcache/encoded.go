package objectcache

import (
	"bytes"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer/internal/keytable"
	"github.com/rvinformer/informer/internal/known"
	"github.com/rvinformer/informer/internal/object"
)

// encoded is an object on its way into the store.
type encoded struct {
	key     string
	version keytable.Version
	form    form
	bytes   []byte
	labels  map[string]string
	// object is the decoded object, nil where nobody has decoded it yet.
	object runtime.Object
}

// encodeItem returns an object that was read from the server, encoded. The item's bytes stay its reader's. The error
// is a *report.ItemError.
func (s *Store) encodeItem(it object.Item) (encoded, error) {
	if it.Lent == nil {
		e, err := s.encodeObject(it.Object)
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
	defer object.Shared.Put(raw)
	if it.Lent.Form.PrunesLate(raw) {
		return s.encodeDecoded(it, raw)
	}
	e := encoded{key: raw.Key(), version: raw.Version(), form: form{goType: s.goType, kind: s.kind}}
	lent, protobuf := raw.Message()
	e.form.protobuf, e.bytes = protobuf, bytes.Clone(lent)
	var partial metav1.PartialObjectMetadata
	if err := raw.Decode(&partial); err != nil {
		return encoded{}, it.Unreadable(err)
	}
	e.labels = partial.Labels
	return e, nil
}

// encodeDecoded encodes a lent object anew that its decoder drops fields from.
func (s *Store) encodeDecoded(it object.Item, raw *object.Raw) (encoded, error) {
	s.decodes.Add(1)
	obj, err := it.Lent.Form.Decode(raw)
	if err != nil {
		return encoded{}, it.Unreadable(err)
	}
	e, err := s.encodeObject(obj)
	if err != nil {
		return encoded{}, it.Unreadable(err)
	}
	return e, nil
}

// encodeObject returns a decoded object, encoded: in protobuf where its type has it, else in JSON.
func (s *Store) encodeObject(obj runtime.Object) (encoded, error) {
	if obj == nil || !isStruct(reflect.TypeOf(obj)) || reflect.ValueOf(obj).IsNil() {
		return encoded{}, fmt.Errorf("objectcache: store a %T: it is not a pointer to the struct of an object", obj)
	}
	key, version, err := object.KeyAndVersion(obj)
	if err != nil {
		return encoded{}, err
	}
	if err := known.CheckLengths(key, version); err != nil {
		return encoded{}, fmt.Errorf("objectcache: store %T: %w", obj, err)
	}
	e := encoded{key: key, version: version, object: obj}
	if e.form, e.bytes, err = encode(obj); err != nil {
		return encoded{}, fmt.Errorf("objectcache: encode %T %q: %w", obj, key, err)
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return encoded{}, fmt.Errorf("objectcache: store %T %q: %w", obj, key, err)
	}
	e.labels = accessor.GetLabels()
	return e, nil
}
