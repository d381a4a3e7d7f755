package informertest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
)

// envelope writes and reads what protobuf of the API is wrapped in: four bytes that say so, then a
// runtime.Unknown that names the kind and holds the message.
var envelope = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

// envelopeMark begins every envelope.
const envelopeMark = "k8s\x00"

// The fields of every List message, as tags on the wire.
const (
	listMetadataTag = 1<<3 | 2
	listItemsTag    = 2<<3 | 2
)

// appendEnvelope appends an object that knows its kind, in its envelope.
func appendEnvelope(b []byte, obj runtime.Object) ([]byte, error) {
	out := bytes.NewBuffer(b)
	err := envelope.Encode(obj, out)
	return out.Bytes(), err
}

// protobufCodec writes protobuf. What is stored is JSON, so every object passes through its Go type
// and loses the fields that this does not have.
type protobufCodec struct {
	resource Resource
	form     form
}

// blank is an object that has nothing but its kind.
func (c protobufCodec) blank() (runtime.Object, error) {
	gvk := metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
	var obj runtime.Object = &metav1.PartialObjectMetadata{}
	if c.form == formWhole {
		gvk = c.resource.gvk()
		var err error
		if obj, err = scheme.Scheme.New(gvk); err != nil {
			return nil, err
		}
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj, nil
}

// typed is an object as its Go type.
func (c protobufCodec) typed(o *object) (runtime.Object, error) {
	obj, err := c.blank()
	if err != nil {
		return nil, err
	}
	into := any(obj)
	if partial, ok := obj.(*metav1.PartialObjectMetadata); ok {
		into = &struct {
			Metadata *metav1.ObjectMeta `json:"metadata"`
		}{&partial.ObjectMeta}
	}
	if err := utiljson.Unmarshal(o.appendJSON(nil), into); err != nil {
		return nil, fmt.Errorf("the stored %s %s/%s cannot be written in protobuf: it is no %T: %w", c.resource.Kind, o.namespace, o.name, obj, err)
	}
	return obj, nil
}

func (c protobufCodec) object(b []byte, o *object) ([]byte, error) {
	obj, err := c.typed(o)
	if err != nil {
		return b, err
	}
	return appendEnvelope(b, obj)
}

func (c protobufCodec) bookmark(rv uint64, initialEnd bool) ([]byte, error) {
	obj, err := c.blank()
	if err != nil {
		return nil, err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	m.SetResourceVersion(c.resource.versions.format(rv))
	if initialEnd {
		m.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return appendEnvelope(nil, obj)
}

// list holds the whole page as messages before it writes, because the length of a message goes
// ahead of it. So no part of the page is on its way when an object turns out not to fit its type.
func (c protobufCodec) list(out *bufio.Writer, p page) error {
	kind := runtime.TypeMeta{Kind: c.resource.ListKind, APIVersion: c.resource.apiVersion()}
	if c.form == formMetadata {
		kind = runtime.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: metav1.SchemeGroupVersion.String()}
	}
	metadata := p.metadata()
	fields := make([][]byte, 1, 1+len(p.objects))
	var err error
	if fields[0], err = protobufField(nil, listMetadataTag, &metadata); err != nil {
		return err
	}
	size := len(fields[0])
	as := shapes{whole: c.item, mistyped: c.mistypedItem, garbage: c.garbageItem}
	for _, o := range p.objects {
		field, err := p.taint().spoiled(nil, c.resource, o, as)
		if err != nil {
			return err
		}
		fields = append(fields, field)
		size += len(field)
	}
	if _, err := out.WriteString(envelopeMark); err != nil {
		return err
	}
	_, err = (&runtime.Unknown{TypeMeta: kind}).MarshalToWriter(out, size, func(out io.Writer) (int, error) {
		for _, field := range fields {
			if _, err := out.Write(field); err != nil {
				return 0, err
			}
		}
		return size, nil
	})
	return err
}

// item appends an object that stands in a list.
func (c protobufCodec) item(b []byte, o *object) ([]byte, error) {
	obj, err := c.typed(o)
	if err != nil {
		return b, err
	}
	return protobufField(b, listItemsTag, obj)
}

// protobufField appends a message as a field of another: its tag, its length, itself.
func protobufField(b []byte, tag byte, message any) ([]byte, error) {
	m, ok := message.(runtime.ProtobufMarshaller)
	if !ok {
		return b, fmt.Errorf("%T has no protobuf form", message)
	}
	size := m.Size()
	b = slices.Grow(b, 1+binary.MaxVarintLen64+size)
	b = binary.AppendUvarint(append(b, tag), uint64(size))
	n, err := m.MarshalTo(b[len(b) : len(b)+size])
	return b[:len(b)+n], err
}
