package informertest

import (
	"iter"
	"mime"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// form is what a client wants to see of the objects.
type form int

const (
	formWhole    form = iota
	formMetadata      // PartialObjectMetadata
)

// representation is what was negotiated: the form of the objects, and how it is written.
type representation struct {
	form  form
	media media
}

// clause is one alternative of an Accept header.
type clause struct {
	media  media
	target schema.GroupVersionKind // what the objects are to become; empty: they stay what they are
}

// clauses yields the alternatives whose media type is spoken here, in the client's order.
func clauses(accept string) iter.Seq[clause] {
	return func(yield func(clause) bool) {
		if strings.TrimSpace(accept) == "" {
			yield(clause{})
			return
		}
		for text := range strings.SplitSeq(accept, ",") {
			mediaType, params, err := mime.ParseMediaType(text)
			if err != nil {
				continue
			}
			c := clause{target: schema.GroupVersionKind{Group: params["g"], Version: params["v"], Kind: params["as"]}}
			switch mediaType {
			case runtime.ContentTypeJSON, "application/*", "*/*":
			case runtime.ContentTypeProtobuf:
				c.media = mediaProtobuf
			default:
				continue
			}
			if !yield(c) {
				return
			}
		}
	}
}

// negotiate picks how a request for a resource is answered: by the first alternative of its Accept
// header that the resource has. Of a custom resource there is no protobuf, but of its metadata
// there is.
func negotiate(accept string, r Resource, isList bool) (representation, error) {
	metadata := metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
	if isList {
		metadata.Kind = "PartialObjectMetadataList"
	}
	for c := range clauses(accept) {
		switch {
		case c.target == metadata:
			return representation{form: formMetadata, media: c.media}, nil
		case c.target.Empty() && (c.media != mediaProtobuf || r.hasProtobuf()):
			return representation{media: c.media}, nil
		}
	}
	return representation{}, notAcceptable(accept)
}

// negotiateStatus picks how a Status is written. There is protobuf of it even where there is none
// of the resource, and where nothing is acceptable it is JSON.
func negotiateStatus(accept string) media {
	for c := range clauses(accept) {
		if c.target.Empty() {
			return c.media
		}
	}
	return mediaJSON
}
