package field

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/internal/leaf/fieldpath"
	"github.com/rvinformer/informer/internal/leaf/typedjson"
)

// InMetadata reports whether a path leads into the metadata.
func InMetadata(path string) bool {
	name, _, _ := fieldpath.Cut(path)
	return name == "metadata"
}

// in finds a field of the metadata.
func in(object []byte, protobuf bool, path string) (Value, Reason) {
	if protobuf {
		return Metadata.InProtobuf(object, path)
	}
	return InJSON(object, path)
}

// Labels returns the labels of an object, with memory of their own. It returns nil if there are
// none, or if they cannot be read. As in a decoded object, null is an empty string.
func Labels(object []byte, protobuf bool) map[string]string {
	labels, why := in(object, protobuf, "metadata.labels")
	if why != Found || labels.kind != Object {
		return nil
	}
	var meta metav1.ObjectMeta
	var err error
	if protobuf {
		err = meta.Unmarshal(labels.bytes) // the metadata with this field alone
	} else {
		err = typedjson.Decode(labels.bytes, &meta.Labels)
	}
	if err != nil || len(meta.Labels) == 0 {
		return nil
	}
	return meta.Labels
}

// Owners returns the owner references of an object, with memory of their own. It returns nil if
// there are none, or if they cannot be read.
func Owners(object []byte, protobuf bool) []metav1.OwnerReference {
	owners, why := in(object, protobuf, "metadata.ownerReferences")
	if why != Found || owners.kind != Array {
		return nil
	}
	var meta metav1.ObjectMeta
	var err error
	if protobuf {
		err = meta.Unmarshal(owners.bytes)
	} else {
		err = typedjson.Decode(owners.bytes, &meta.OwnerReferences)
	}
	if err != nil || len(meta.OwnerReferences) == 0 {
		return nil
	}
	return meta.OwnerReferences
}
