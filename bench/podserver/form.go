package podserver

import (
	"mime"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// part is what a form sends of a set: the items of lists, or the events of watches.
type part int

const (
	listed part = iota
	added
	modified
	parts
)

// form is how pods are sent: whole or their metadata.
type form struct {
	encoding
	metadata bool

	templateOf [parts]template
	tilesOf    [parts]sync.Pool // of *tiles
	fews       sync.Map         // of []byte by few
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

func newForm(protobuf, metadata bool) *form {
	f := &form{encoding: encoding{podKind, protobuf}, metadata: metadata}
	if metadata {
		f.kind = metadataKind
	}
	encoded := [parts][]byte{listed: f.encodeItem(), added: f.encodeEvent(watch.Added, f.pod()), modified: f.encodeEvent(watch.Modified, f.pod())}
	for p := range encoded {
		t := newTemplate(encoded[p])
		f.templateOf[p], f.tilesOf[p].New = t, func() any { return newTiles(t) }
	}
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

// separator is how many bytes at the end of the last item do not belong there.
func (f *form) separator() int {
	if f.protobuf {
		return 0
	}
	return len(",")
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
