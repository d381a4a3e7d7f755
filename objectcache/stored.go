package objectcache

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer/internal/keytable"
)

// Stored is one state of one object, still encoded. It never changes, needs no lock and stays valid when the store has
// moved on. The zero value stands for no object.
type Stored struct {
	store  *Store
	record *record
}

// record is one state of one object. It is immutable.
type record struct {
	encoded
	values map[string][]string // by index
}

// IsZero reports whether o stands for no object.
func (o Stored) IsZero() bool { return o.record == nil }

// Key returns "namespace/name", or "name".
func (o Stored) Key() string { return o.record.key }

// version returns the resource version and the UID.
func (o Stored) version() keytable.Version { return o.record.version }

// Decode returns the object, which belongs to the caller. The error names the object.
func (o Stored) Decode() (runtime.Object, error) {
	o.store.decodes.Add(1)
	obj, err := o.record.form.decode(o.record.bytes)
	if err != nil {
		return nil, o.undecodable(err)
	}
	return obj, nil
}

// DecodeInto overwrites into with the object. Into is of the object's type, a *metav1.PartialObjectMetadata, or a
// *unstructured.Unstructured. The error names the object; into is undefined then.
func (o Stored) DecodeInto(into runtime.Object) error {
	o.store.decodes.Add(1)
	if err := o.record.form.decodeInto(o.record.bytes, into); err != nil {
		return o.undecodable(err)
	}
	return nil
}

func (o Stored) undecodable(err error) error {
	return fmt.Errorf("objectcache: decode %v %q: %w", o.record.form.goType, o.Key(), err)
}
