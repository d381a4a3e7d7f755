package object

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/leaf/field"
	"github.com/rvinformer/informer/internal/leaf/jsonmap"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/protoobject"
	"github.com/rvinformer/informer/internal/leaf/typedjson"
	"github.com/rvinformer/informer/internal/leaf/wire"
)

// Raw is an object as it came off the wire, with memory of its own and not decoded. Users know it
// as a RawObject.
type Raw struct {
	kind     metav1.TypeMeta
	key      string
	version  keytable.Version
	encoding []byte
	format   wire.Format
	// message is where in encoding the object itself is, within its envelope.
	message struct{ from, to int }
	// decoders decode it to a map; nil for new ones.
	decoders *jsonmap.Pool
	// pooled tells that the memory goes back to the pool. That of a copy does not.
	pooled bool
	// typed has the numbers of the fields in protobuf; nil where the Go type is not known.
	typed *field.Type
	// place is where it was read, to report what is wrong with it.
	place Place
	// decoded is the metadata, once a getter needed it.
	decoded atomic.Pointer[metav1.ObjectMeta]
}

// Kind returns the kind of the object, which belongs to r.
func (r *Raw) Kind() *metav1.TypeMeta { return &r.kind }

// Key returns "namespace/name", or "name".
func (r *Raw) Key() string { return r.key }

// Version returns the resource version and the UID.
func (r *Raw) Version() keytable.Version { return r.version }

// Place returns where the object was read.
func (r *Raw) Place() Place { return r.place }

// Bytes returns the object in its encoding. It must not be written to.
func (r *Raw) Bytes() []byte { return r.encoding }

// Message returns the bytes of the object alone, without the envelope that protobuf has, and
// whether they are protobuf. They must not be written to.
func (r *Raw) Message() (message []byte, protobuf bool) {
	if r.format == wire.Protobuf {
		return r.encoding[r.message.from:r.message.to], true
	}
	return r.encoding, false
}

// ContentType returns what Bytes are.
func (r *Raw) ContentType() string {
	if r.format == wire.Protobuf {
		return runtime.ContentTypeProtobuf
	}
	return runtime.ContentTypeJSON
}

// Copy returns an equal object whose bytes are its own and no pool's.
func (r *Raw) Copy() *Raw {
	return &Raw{
		kind:     r.kind,
		key:      r.key,
		version:  r.version,
		encoding: slices.Clone(r.encoding),
		format:   r.format,
		message:  r.message,
		typed:    r.typed,
		decoders: r.decoders,
		place:    r.place,
	}
}

// Name splits the key.
func (r *Raw) Name() cache.ObjectName {
	name, err := cache.ParseObjectName(r.key)
	if err != nil { // more than one slash: no server names an object so
		return cache.ObjectName{Name: r.key}
	}
	return name
}

// rawOverhead is about what a Raw takes beside its bytes.
const rawOverhead = 256

// Size returns what the object takes in memory, in bytes.
func (r *Raw) Size() int64 { return int64(cap(r.encoding)) + rawOverhead }

// Metadata returns all metadata, decoded. It is empty where it cannot be decoded.
func (r *Raw) Metadata() *metav1.ObjectMeta {
	if m := r.decoded.Load(); m != nil {
		return m
	}
	var obj metav1.PartialObjectMetadata
	if len(r.encoding) > 0 && r.Decode(&obj) != nil {
		obj = metav1.PartialObjectMetadata{}
	}
	r.decoded.Store(&obj.ObjectMeta)
	return &obj.ObjectMeta
}

// undecodable is why an object does not fit the type that it was to be decoded to.
type undecodable struct{ error }

func (u undecodable) Unwrap() error { return u.error }

// IsUndecodable reports whether err says that an object does not fit the type that it was to be
// decoded to.
func IsUndecodable(err error) bool {
	_, ok := errors.AsType[undecodable](err)
	return ok
}

// Decode decodes the object into an empty object of its type, into metadata or, from JSON, into a
// map. IsUndecodable is true of the error.
func (r *Raw) Decode(into runtime.Object) error { return r.decodeSharing(nil, into) }

// decodeSharing is Decode with strings that other objects of the kind have too, if it decodes
// protobuf. With siblings, the object must be a new one.
func (r *Raw) decodeSharing(siblings *protoobject.Pool, into runtime.Object) error {
	if err := r.decode(into, siblings); err != nil {
		return undecodable{err}
	}
	return nil
}

func (r *Raw) decode(into runtime.Object, siblings *protoobject.Pool) error {
	if r.format == wire.Protobuf {
		message, ok := into.(protoobject.Message)
		if !ok {
			return errors.New("the type has no protobuf decoder")
		}
		if siblings == nil {
			message.Reset()
		}
		known := protoobject.Known{Name: r.key[strings.LastIndexByte(r.key, '/')+1:], UID: string(r.version.UID), ResourceVersion: r.version.ResourceVersion}
		if err := siblings.Unmarshal(r.encoding[r.message.from:r.message.to], known, message); err != nil {
			return err
		}
		setKind(into.GetObjectKind(), r.kind)
		return nil
	}
	if obj, ok := into.(*unstructured.Unstructured); ok {
		var err error
		obj.Object, err = r.decoders.Decode(r.encoding)
		return err
	}
	return typedjson.Decode(r.encoding, into)
}

// setKind sets the kind of an object, without allocation where its version is one that a server
// says.
func setKind(of schema.ObjectKind, kind metav1.TypeMeta) {
	slash := strings.IndexByte(kind.APIVersion, '/')
	if own, ok := of.(*metav1.TypeMeta); ok && (slash < 0 || slash > 0 && strings.IndexByte(kind.APIVersion[slash+1:], '/') < 0) {
		*own = kind
		return
	}
	of.SetGroupVersionKind(kind.GroupVersionKind())
}

// DecodeFor is Decode for a user, to whom the error names the object.
func (r *Raw) DecodeFor(into runtime.Object) error {
	if len(r.encoding) == 0 {
		return errors.New("decode: the RawObject is empty")
	}
	if err := r.Decode(into); err != nil {
		return fmt.Errorf("decode %s %q into %T: %w", r.kind.Kind, r.key, into, err)
	}
	return nil
}
