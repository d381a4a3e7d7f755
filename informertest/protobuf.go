package informertest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

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
type protobufCodec struct{ contents }

// blank is an object that has nothing but its kind.
func (c protobufCodec) blank() (runtime.Object, error) {
	var obj runtime.Object = &metav1.PartialObjectMetadata{}
	if c.form == formWhole {
		var err error
		if obj, err = scheme.Scheme.New(c.kind()); err != nil {
			return nil, err
		}
	}
	obj.GetObjectKind().SetGroupVersionKind(c.kind())
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

// message is an object in protobuf, without the envelope that says its kind.
func (c protobufCodec) message(o *object, t taint) ([]byte, error) {
	mistyped := t.kind == effectMistyped
	switch {
	case t.kind == effectGarbage:
		return []byte(garbageProtobuf[t.n]), nil
	case !mistyped: // which an object is only once it is a message
		var err error
		if o, err = t.changed(o, c.resource); err != nil {
			return nil, err
		}
	}
	obj, err := c.typed(o)
	if err != nil {
		return nil, err
	}
	message, err := marshal(obj)
	if err != nil || !mistyped || c.form == formMetadata {
		return message, err
	}
	field, err := firstField(c.resource)
	return field.appendMistyped(message), err
}

func (c protobufCodec) object(b []byte, o *object, t taint) ([]byte, error) {
	message, err := c.message(o, t)
	if err != nil {
		return b, err
	}
	apiVersion, kind := c.kind().ToAPIVersionAndKind()
	text, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: message}).Marshal()
	return append(append(b, envelopeMark...), text...), err
}

func (c protobufCodec) bookmark(version string, initialEnd bool) ([]byte, error) {
	obj, err := c.blank()
	if err != nil {
		return nil, err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	m.SetResourceVersion(version)
	if initialEnd {
		m.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return appendEnvelope(nil, obj)
}

// list holds the whole page as messages before it writes, because the length of a message goes
// ahead of it. So no part of the page is on its way when an object turns out not to fit its type.
func (c protobufCodec) list(out *bufio.Writer, p page) error {
	metadata := p.metadata()
	message, err := metadata.Marshal()
	if err != nil {
		return err
	}
	fields := make([][]byte, 0, 1+len(p.objects))
	fields = append(fields, protobufField(listMetadataTag, message))
	size := len(fields[0])
	for _, o := range p.objects {
		message, err := c.message(o, p.taint())
		if err != nil {
			return err
		}
		field := protobufField(listItemsTag, message)
		fields = append(fields, field)
		size += len(field)
	}
	if _, err := out.WriteString(envelopeMark); err != nil {
		return err
	}
	apiVersion, kind := c.listKind().ToAPIVersionAndKind()
	_, err = (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}}).MarshalToWriter(out, size, func(out io.Writer) (int, error) {
		for _, field := range fields {
			if _, err := out.Write(field); err != nil {
				return 0, err
			}
		}
		return size, nil
	})
	return err
}

// marshal encodes an object.
func marshal(obj runtime.Object) ([]byte, error) {
	m, ok := obj.(interface{ Marshal() ([]byte, error) })
	if !ok {
		return nil, fmt.Errorf("%T has no protobuf form", obj)
	}
	return m.Marshal()
}

// protobufField is a message as a field of another: its tag, its length, itself.
func protobufField(tag byte, message []byte) []byte {
	b := make([]byte, 0, 1+binary.MaxVarintLen64+len(message))
	b = binary.AppendUvarint(append(b, tag), uint64(len(message)))
	return append(b, message...)
}
