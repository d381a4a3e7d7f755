package informertest

import (
	"bufio"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// codec writes the objects of one resource as one client wants to see them.
type codec interface {
	// object appends an object that stands on its own, as faults have it: answered to a get, or
	// inside a watch event.
	object(b []byte, o *object, t taint) ([]byte, error)
	// list writes a page. An object that this codec cannot write is its error.
	list(out *bufio.Writer, p page) error
	// bookmark is the object of a BOOKMARK event, of a version or of none; initialEnd marks the one
	// that ends the initial events of a watch-list.
	bookmark(version string, initialEnd bool) ([]byte, error)
}

func newCodec(r Resource, as representation) codec {
	c := contents{resource: r, form: as.form}
	if as.media == mediaProtobuf {
		return protobufCodec{c}
	}
	return jsonCodec{c}
}

// contents are what a codec writes.
type contents struct {
	resource Resource
	form     form
}

// kind is that of the objects, and listKind that of their lists.
func (c contents) kind() schema.GroupVersionKind {
	if c.form == formMetadata {
		return metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
	}
	return c.resource.gvk()
}

func (c contents) listKind() schema.GroupVersionKind {
	if c.form == formMetadata {
		return metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList")
	}
	return c.resource.GroupVersionResource.GroupVersion().WithKind(c.resource.ListKind)
}
