package podserver

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// encoding is how objects of a kind are sent: in JSON or in protobuf.
type encoding struct {
	kind     metav1.TypeMeta
	protobuf bool
}

var (
	jsonCodec  = jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, jsonserializer.SerializerOptions{})
	protoCodec = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
)

func (e encoding) contentType(watching bool) string {
	switch {
	case !e.protobuf:
		return runtime.ContentTypeJSON
	case watching:
		return runtime.ContentTypeProtobuf + ";stream=watch"
	default:
		return runtime.ContentTypeProtobuf
	}
}

// encodeObject is an object on its own.
func (e encoding) encodeObject(obj runtime.Object) []byte {
	var b bytes.Buffer
	if e.protobuf {
		must(protoCodec.Encode(obj, &b))
		return b.Bytes()
	}
	must(jsonCodec.Encode(obj, &b))
	return bytes.TrimSpace(b.Bytes())
}

// encodeEvent is a frame of a watch.
func (e encoding) encodeEvent(event watch.EventType, obj runtime.Object) []byte {
	object := e.encodeObject(obj)
	if !e.protobuf {
		return fmt.Appendf(nil, "{\"type\":%q,\"object\":%s}\n", event, object)
	}
	return protobufEvent(event, object)
}

// protobufEvent is a frame of a watch in protobuf.
func protobufEvent(event watch.EventType, object []byte) []byte {
	frame, err := (&metav1.WatchEvent{Type: string(event), Object: runtime.RawExtension{Raw: object}}).Marshal()
	must(err)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
}

func (e encoding) bookmark(w *counted, version string, annotations map[string]string) error {
	meta := metav1.ObjectMeta{ResourceVersion: version, Annotations: annotations}
	_, err := w.Write(e.encodeEvent(watch.Bookmark, &metav1.PartialObjectMetadata{TypeMeta: e.kind, ObjectMeta: meta}))
	w.flush()
	return err
}

// listHead is what a list says before items of so many bytes.
func (e encoding) listHead(meta metav1.ListMeta, itemBytes int) []byte {
	kind := e.kind.Kind + "List"
	if !e.protobuf {
		metadata, err := json.Marshal(meta)
		must(err)
		return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[`, kind, e.kind.APIVersion, metadata)
	}
	listMeta, err := meta.Marshal()
	must(err)
	listMeta = appendBytesField(nil, 1, listMeta)
	typeMeta := appendBytesField(appendBytesField(nil, 1, []byte(e.kind.APIVersion)), 2, []byte(kind))
	b := appendBytesField([]byte("k8s\x00"), 1, typeMeta)
	b = protowire.AppendTag(b, 2, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(len(listMeta)+itemBytes))
	return append(b, listMeta...)
}

// listEnd is what a list says after its items.
func (e encoding) listEnd() []byte {
	if e.protobuf {
		// The content encoding and the content type of the envelope, both empty.
		return appendBytesField(appendBytesField(nil, 3, nil), 4, nil)
	}
	return []byte("]}\n")
}

func appendBytesField(b []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), value)
}
