package truth

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
)

// object is what is remembered of one object.
type object struct {
	key      string // "namespace/name", or "name"
	uid      types.UID
	revision int64
}

// version is what a client sees: an API server takes it from etcd.
func (o object) version() string { return versionOf(o.revision) }

// protobufMagic begins what an API server stores in protobuf: built-in resources.
// Custom resources are stored in JSON.
var protobufMagic = []byte("k8s\x00")

// decode reads what an API server has stored.
func decode(kv *mvccpb.KeyValue) (object, error) {
	metadata, err := metadataOf(kv.Value)
	if err != nil {
		return object{}, fmt.Errorf("%s at revision %d: %w", kv.Key, kv.ModRevision, err)
	}
	if metadata.GetName() == "" || metadata.GetUID() == "" {
		return object{}, fmt.Errorf("%s at revision %d: an object with the name %q and the UID %q", kv.Key, kv.ModRevision, metadata.GetName(), metadata.GetUID())
	}
	return object{
		key:      cache.MetaObjectToName(metadata).String(),
		uid:      metadata.GetUID(),
		revision: kv.ModRevision,
	}, nil
}

func metadataOf(value []byte) (metav1.Object, error) {
	if bytes.HasPrefix(value, protobufMagic) {
		decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(value, nil, nil)
		if err != nil {
			return nil, err
		}
		return meta.Accessor(decoded)
	}
	metadata := &metav1.PartialObjectMetadata{}
	return metadata, json.Unmarshal(value, metadata)
}
