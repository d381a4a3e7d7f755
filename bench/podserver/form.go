package podserver

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"mime"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// form is how pods are sent: whole or their metadata, in JSON or in protobuf.
type form struct {
	protobuf bool
	metadata bool

	item            template
	added, modified template
	// pools of *tiles, of items and of either event.
	itemTiles, addedTiles, modifiedTiles sync.Pool
	fews                                 sync.Map // of []byte by few
}

// forms are made once: they hold what all servers of the process send.
var forms = sync.OnceValue(func() map[[2]bool]*form {
	all := map[[2]bool]*form{}
	for _, protobuf := range []bool{false, true} {
		for _, metadata := range []bool{false, true} {
			all[[2]bool{protobuf, metadata}] = newForm(protobuf, metadata)
		}
	}
	return all
})

var (
	jsonCodec  = jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, jsonserializer.SerializerOptions{})
	protoCodec = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
)

func newForm(protobuf, metadata bool) *form {
	f := &form{protobuf: protobuf, metadata: metadata}
	f.item = newTemplate(f.encodeItem())
	f.added = newTemplate(f.encodeEvent(watch.Added, f.pod()))
	f.modified = newTemplate(f.encodeEvent(watch.Modified, f.pod()))
	f.itemTiles.New = func() any { return newTiles(f.item) }
	f.addedTiles.New = func() any { return newTiles(f.added) }
	f.modifiedTiles.New = func() any { return newTiles(f.modified) }
	return f
}

// pod is the template pod as it stands in an event: with its kind.
func (f *form) pod() runtime.Object {
	if f.metadata {
		return metadataOf(templatePod())
	}
	return templatePod()
}

// encodeItem is the pod in a list, with all that stands between two items. The
// items of built-in lists do not say their kind, those of metadata do.
func (f *form) encodeItem() []byte {
	if f.protobuf {
		var item interface{ Marshal() ([]byte, error) } = templatePod()
		if f.metadata {
			item = metadataOf(templatePod())
		}
		encoded, err := item.Marshal()
		must(err)
		return appendBytesField(nil, 2, encoded)
	}
	if f.metadata {
		return append(f.encodeObject(f.pod()), ',')
	}
	pod := templatePod()
	pod.TypeMeta = metav1.TypeMeta{}
	return append(f.encodeObject(pod), ',')
}

// encodeObject is an object on its own.
func (f *form) encodeObject(obj runtime.Object) []byte {
	var b bytes.Buffer
	if f.protobuf {
		must(protoCodec.Encode(obj, &b))
		return b.Bytes()
	}
	must(jsonCodec.Encode(obj, &b))
	return bytes.TrimSpace(b.Bytes())
}

// encodeEvent is a frame of a watch.
func (f *form) encodeEvent(event watch.EventType, obj runtime.Object) []byte {
	object := f.encodeObject(obj)
	if !f.protobuf {
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

// listHead is what a list says before and after its items.
type listHead struct {
	kind     metav1.TypeMeta
	protobuf bool
}

func (f *form) listHead() listHead {
	if f.metadata {
		return listHead{metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}, f.protobuf}
	}
	return listHead{metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, f.protobuf}
}

// append appends what stands before items of so many bytes.
func (h listHead) append(b []byte, meta metav1.ListMeta, itemBytes int) []byte {
	if h.protobuf {
		listMeta, err := meta.Marshal()
		must(err)
		listMeta = appendBytesField(nil, 1, listMeta)
		var typeMeta []byte
		typeMeta = appendBytesField(typeMeta, 1, []byte(h.kind.APIVersion))
		typeMeta = appendBytesField(typeMeta, 2, []byte(h.kind.Kind))
		b = appendBytesField(append(b, "k8s\x00"...), 1, typeMeta)
		b = appendLength(b, 2, len(listMeta)+itemBytes)
		return append(b, listMeta...)
	}
	metadata := fmt.Appendf(nil, `{"resourceVersion":%q`, meta.ResourceVersion)
	if meta.Continue != "" {
		metadata = fmt.Appendf(metadata, `,"continue":%q`, meta.Continue)
	}
	if meta.RemainingItemCount != nil {
		metadata = fmt.Appendf(metadata, `,"remainingItemCount":%d`, *meta.RemainingItemCount)
	}
	if meta.ShardInfo != nil {
		metadata = fmt.Appendf(metadata, `,"shardInfo":{"selector":%q}`, meta.ShardInfo.Selector)
	}
	return fmt.Appendf(b, `{"kind":%q,"apiVersion":%q,"metadata":%s},"items":[`, h.kind.Kind, h.kind.APIVersion, metadata)
}

func (h listHead) closing() []byte {
	if h.protobuf {
		// The content encoding and the content type of the envelope, both empty.
		return appendBytesField(appendBytesField(nil, 3, nil), 4, nil)
	}
	return []byte("]}\n")
}

// separator is how many bytes at the end of the last item do not belong there.
func (f *form) separator() int {
	if f.protobuf {
		return 0
	}
	return len(",")
}

func (f *form) contentType(watching bool) string {
	switch {
	case !f.protobuf:
		return runtime.ContentTypeJSON
	case watching:
		return runtime.ContentTypeProtobuf + ";stream=watch"
	default:
		return runtime.ContentTypeProtobuf
	}
}

// appendLength begins a length-delimited field of protobuf.
func appendLength(b []byte, number, length int) []byte {
	return appendVarint(append(b, byte(number<<3|2)), length)
}

func appendBytesField(b []byte, number int, value []byte) []byte {
	return append(appendLength(b, number, len(value)), value...)
}

func appendVarint(b []byte, v int) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// negotiate picks the form that a request prefers, nil if it takes none of them.
func negotiate(r *http.Request) *form {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	if accept == "" {
		accept = "*/*"
	}
	type choice struct {
		form    *form
		quality float64
	}
	var choices []choice
	for clause := range strings.SplitSeq(accept, ",") {
		mediaType, params, err := mime.ParseMediaType(strings.TrimSpace(clause))
		if err != nil {
			continue
		}
		var key [2]bool
		switch mediaType {
		case runtime.ContentTypeProtobuf:
			key[0] = true
		case runtime.ContentTypeJSON, "application/*", "*/*":
		default:
			continue
		}
		switch params["as"] {
		case "":
		case "PartialObjectMetadata", "PartialObjectMetadataList":
			if params["g"] != metav1.GroupName || params["v"] != "v1" {
				continue
			}
			key[1] = true
		default:
			continue
		}
		quality, err := strconv.ParseFloat(params["q"], 64)
		if err != nil {
			quality = 1
		}
		choices = append(choices, choice{forms()[key], quality})
	}
	if len(choices) == 0 {
		return nil
	}
	sort.SliceStable(choices, func(i, k int) bool { return choices[i].quality > choices[k].quality })
	return choices[0].form
}

// must is for what only a mistake in this package can break.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
