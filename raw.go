package informer

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/keytable"
	"github.com/rvinformer/informer/internal/wire"
)

// RawObject is an object as it came off the wire, not decoded. An informer whose
// ExampleObject is a *RawObject hands out nothing else; it needs a ListerWatcher
// of a DynamicListerWatcherFactory.
//
// A RawObject is lent: it and its bytes are valid until the handler returns. Who
// keeps it longer keeps what DeepCopyObject returns. A test that is built with
// -tags wirepoison finds a handler that does not: the bytes are overwritten when
// the loan ends.
//
// It is a runtime.Object and a metav1.Object. Name, namespace, UID and resource
// version are at hand; the first call of another getter of metav1.Object decodes
// all metadata, and finds nothing in an object whose metadata can not be decoded.
// It can not be changed: the setters of metav1.Object panic.
type RawObject struct {
	kind     metav1.TypeMeta
	key      string
	version  keytable.Version
	encoding []byte
	format   wire.Format
	// message is where in encoding the object itself is, within its envelope.
	message struct{ from, to int }
	// pooled tells that the memory goes back to the pool. That of a copy does not.
	pooled bool
	// place is where it was read, to report what is wrong with it.
	place place
	// decoded is the metadata, once somebody asked for it.
	decoded atomic.Pointer[metav1.ObjectMeta]
}

var (
	_ runtime.Object = &RawObject{}
	_ metav1.Object  = &RawObject{}
)

// Bytes returns the object: in JSON its text, in protobuf its message in the
// envelope of Kubernetes ("k8s\0" and runtime.Unknown), as the API machinery's
// serializers take them. It says its kind and apiVersion, also where a list had
// left that out. What was to be pruned is not in it. It must not be written to.
func (o *RawObject) Bytes() []byte { return o.encoding }

// ContentType returns what Bytes are: application/json or
// application/vnd.kubernetes.protobuf.
func (o *RawObject) ContentType() string {
	if o.format == wire.Protobuf {
		return runtime.ContentTypeProtobuf
	}
	return runtime.ContentTypeJSON
}

// Decode decodes the object into an empty object of its type, into a
// *metav1.PartialObjectMetadata, or, from JSON, into an
// *unstructured.Unstructured. Numbers and unknown fields are treated as client-go
// treats them. The error is that of the decoder, or says that into can not be
// decoded from protobuf.
func (o *RawObject) Decode(into runtime.Object) error {
	if len(o.encoding) == 0 {
		return errors.New("decode: the RawObject is empty")
	}
	if err := o.decode(into); err != nil {
		return fmt.Errorf("decode %s %q into %T: %w", o.kind.Kind, o.key, into, err)
	}
	return nil
}

// Unstructured decodes the object to a map. Only JSON can be: the error for
// protobuf says so.
func (o *RawObject) Unstructured() (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	if err := o.Decode(obj); err != nil {
		return nil, err
	}
	return obj, nil
}

// fromProtobuf is implemented by the generated API types.
type fromProtobuf interface {
	Reset()
	Unmarshal([]byte) error
}

// undecodable is why an object does not fit the type that it was to be decoded to.
type undecodable struct{ error }

func (u undecodable) Unwrap() error { return u.error }

func isUndecodable(err error) bool {
	_, ok := errors.AsType[undecodable](err)
	return ok
}

// decode decodes the object. The error is undecodable.
func (o *RawObject) decode(into runtime.Object) error {
	if err := o.decodeFormat(into); err != nil {
		return undecodable{err}
	}
	return nil
}

func (o *RawObject) decodeFormat(into runtime.Object) error {
	if o.format == wire.Protobuf {
		message, ok := into.(fromProtobuf)
		if !ok {
			return errors.New("the type has no protobuf decoder")
		}
		message.Reset()
		if err := message.Unmarshal(o.encoding[o.message.from:o.message.to]); err != nil {
			return err
		}
		into.GetObjectKind().SetGroupVersionKind(o.kind.GroupVersionKind())
		return nil
	}
	if obj, ok := into.(*unstructured.Unstructured); ok {
		obj.Object = nil
		return utiljson.Unmarshal(o.encoding, &obj.Object)
	}
	return utiljson.Unmarshal(o.encoding, into)
}

// GetObjectKind returns the kind of the object.
func (o *RawObject) GetObjectKind() schema.ObjectKind { return &o.kind }

// DeepCopyObject returns a RawObject whose bytes are its own, to keep.
func (o *RawObject) DeepCopyObject() runtime.Object {
	return &RawObject{
		kind:     o.kind,
		key:      o.key,
		version:  o.version,
		encoding: slices.Clone(o.encoding),
		format:   o.format,
		message:  o.message,
		place:    o.place,
	}
}

// objectName splits the key.
func (o *RawObject) objectName() cache.ObjectName {
	name, err := cache.ParseObjectName(o.key)
	if err != nil { // more than one slash: no server names an object so
		return cache.ObjectName{Name: o.key}
	}
	return name
}

// GetNamespace returns the namespace, empty for a cluster-scoped object.
func (o *RawObject) GetNamespace() string { return o.objectName().Namespace }

// GetName returns the name.
func (o *RawObject) GetName() string { return o.objectName().Name }

// GetUID returns the UID.
func (o *RawObject) GetUID() types.UID { return o.version.UID }

// GetResourceVersion returns the resource version.
func (o *RawObject) GetResourceVersion() string { return o.version.ResourceVersion }

// rawOverhead is what a RawObject takes beside its bytes, about.
const rawOverhead = 256

// size is what the object takes in memory, in bytes.
func (o *RawObject) size() int64 { return int64(cap(o.encoding)) + rawOverhead }
