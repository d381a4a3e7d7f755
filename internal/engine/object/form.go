package object

import (
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer/internal/leaf/field"
	"github.com/rvinformer/informer/internal/leaf/jsonmap"
	"github.com/rvinformer/informer/internal/leaf/protoobject"
	"github.com/rvinformer/informer/internal/leaf/prune"
	"github.com/rvinformer/informer/internal/leaf/wire"
)

// Form is how objects are asked for on the wire, and how they are decoded for their consumer. The
// zero value is for objects that a ListerWatcher of others decodes.
type Form struct {
	public Public
	// decode makes the object; nil where the Raw is the object.
	decode func(*Raw) (runtime.Object, error)
	// protobuf tells that objects may come in protobuf, partial that of each no more
	// than its metadata is asked for.
	protobuf, partial bool
	// fields are those that stay of each object, and message are the same by their numbers in
	// protobuf, nil where that has none.
	fields  *prune.Fields
	message *prune.Type
	// typed is given to each Raw.
	typed *field.Type
	// decoders are of unstructured objects; nil where there may be none.
	decoders *jsonmap.Pool
}

// Public says how the users of the library see a Raw, whose public type is theirs. The zero value
// is for a consumer that sees none.
type Public struct {
	// HandOver returns the object that the user sees.
	HandOver func(*Raw) runtime.Object
	// TakeBack returns the Raw of an object that the user has seen, and whether it is one.
	TakeBack func(obj interface{}) (*Raw, bool)
}

// Form returns how objects like e's example are read. A raw object may come in protobuf if the
// client's configuration asks for it, and fields name nothing but metadata, or its Go type is
// known. Fields are those that stay.
func (e Expected) Form(clientAsksProtobuf bool, fields *prune.Fields) Form {
	f := Form{public: e.public, fields: fields}
	switch {
	case e.typed != nil:
		f.typed, f.decoders = e.typed, &jsonmap.Pool{}
		f.fromMessages(clientAsksProtobuf, fields.Of(e.apiType))
	case e.raw:
		f.decoders = &jsonmap.Pool{}
		metadata := fields.Of(partialType)
		f.fromMessages(clientAsksProtobuf && metadata.Knows(), metadata)
	case e.Partial():
		f.partial = true
		siblings := &protoobject.Pool{}
		f.decode = func(raw *Raw) (runtime.Object, error) {
			obj := &metav1.PartialObjectMetadata{}
			return obj, raw.decodeSharing(siblings, obj)
		}
		f.fromMessages(true, fields.Of(partialType))
	case e.apiType != nil:
		f.fromMessages(e.goType.Implements(reflect.TypeFor[protoobject.Message]()), fields.Of(e.goType))
		siblings := &protoobject.Pool{}
		f.decode = func(raw *Raw) (runtime.Object, error) {
			return decodeTyped(raw, siblings, reflect.New(e.goType.Elem()).Interface().(runtime.Object))
		}
	default:
		f.decode, f.decoders = decodeUnstructured, &jsonmap.Pool{}
	}
	return f
}

// fromMessages has objects come in protobuf, if that is wanted and their messages can lose what
// does not stay.
func (f *Form) fromMessages(wanted bool, message *prune.Type) {
	if wanted && message.InProtobuf() {
		f.protobuf, f.message = true, message
	}
}

// CheckFields returns an error that names fields to keep that the expected objects cannot have.
func (e Expected) CheckFields(fields *prune.Fields) error {
	if e.apiType != nil {
		return fields.Of(e.apiType).Err()
	}
	return nil
}

// Given returns the Form of objects that a ListerWatcher of others decodes.
func (e Expected) Given() Form { return Form{public: e.public} }

func decodeUnstructured(raw *Raw) (runtime.Object, error) {
	if raw.format == wire.Protobuf {
		return nil, raw.Decode(&unstructured.Unstructured{}) // which says that it cannot be
	}
	obj, err := raw.decoders.Object(raw.encoding)
	if err != nil {
		return nil, undecodable{err}
	}
	return obj, nil
}

// decodeTyped leaves the kind out, as typed clients do: the Go type says it.
func decodeTyped(raw *Raw, siblings *protoobject.Pool, obj runtime.Object) (runtime.Object, error) {
	err := raw.decodeSharing(siblings, obj)
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return obj, err
}

// OnlyJSON has objects come in no other encoding.
func (f *Form) OnlyJSON() { f.protobuf = false }

// Decodes reports whether the consumer takes something else than the Raw.
func (f *Form) Decodes() bool { return f.decode != nil }

// Decode returns what the consumer takes of raw: the decoded object, or raw itself as users see it.
func (f *Form) Decode(raw *Raw) (runtime.Object, error) {
	if f.decode == nil {
		return f.public.HandOver(raw), nil
	}
	return f.decode(raw)
}

// Raw returns the Raw that obj is, which a consumer may have seen, and whether it is one.
func (f *Form) Raw(obj interface{}) (*Raw, bool) {
	if raw, ok := obj.(*Raw); ok || f.public.TakeBack == nil {
		return raw, ok
	}
	return f.public.TakeBack(obj)
}

// Accept is the Accept header of a list or a watch, the best first.
func (f *Form) Accept(list bool) string {
	media := []string{runtime.ContentTypeJSON}
	if f.protobuf {
		media = []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON}
	}
	if !f.partial {
		return strings.Join(media, ",")
	}
	kind := "PartialObjectMetadata"
	if list {
		kind += "List"
	}
	for i := range media {
		media[i] += fmt.Sprintf(";as=%s;g=%s;v=v1", kind, metav1.GroupName)
	}
	// A server that knows no such form sends whole objects.
	return strings.Join(append(media, runtime.ContentTypeJSON), ",")
}
