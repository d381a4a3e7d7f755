package object

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/internal/leaf/field"
	"github.com/rvinformer/informer/internal/leaf/wire"
)

// Typed makes r an example of objects of a type.
func (r *Raw) Typed(t *field.Type) *Raw {
	r.typed = t
	return r
}

// Field finds a field, lent by the object.
func (r *Raw) Field(path string) (field.Value, field.Reason) {
	switch {
	case len(r.encoding) == 0:
		return field.Value{}, field.Missing
	case path == "kind":
		return field.Text(r.kind.Kind)
	case path == "apiVersion":
		return field.Text(r.kind.APIVersion)
	case r.format != wire.Protobuf:
		return field.InJSON(r.encoding, path)
	}
	message := r.encoding[r.message.from:r.message.to]
	if r.typed != nil && r.typed.Name() == r.kind.Kind {
		return r.typed.InProtobuf(message, path)
	}
	value, why := field.Metadata.InProtobuf(message, path)
	if why == field.UnknownField && !field.InMetadata(path) {
		why = field.UnknownType
	}
	return value, why
}

// FieldError returns an error that says why a field was not found, nil if the object does not have
// it.
func (r *Raw) FieldError(path string, why field.Reason) error {
	var detail string
	switch why {
	case field.Found, field.Missing:
		return nil
	case field.BadPath:
		return fmt.Errorf("field %q: a name in the path is empty", path)
	case field.UnknownType:
		detail = "the Go type, which has the numbers of fields in protobuf, is not known there"
	case field.UnknownField:
		detail = "its Go type has no such field"
	default:
		detail = "the object cannot be read there"
	}
	return fmt.Errorf("field %q of %s %q: %s", path, r.kind.Kind, r.key, detail)
}

// Labels returns the labels, with memory of their own; nil if there are none, or if they cannot be
// read.
func (r *Raw) Labels() map[string]string {
	message, protobuf := r.Message()
	return field.Labels(message, protobuf)
}

// Owners returns the owner references, with memory of their own; nil if there are none, or if they
// cannot be read.
func (r *Raw) Owners() []metav1.OwnerReference {
	message, protobuf := r.Message()
	return field.Owners(message, protobuf)
}
