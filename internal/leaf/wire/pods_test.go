package wire

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/rvinformer/informer/internal/testkit/samplepod"
)

// The ordinary codecs.
var (
	jsonCodec     = jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, jsonserializer.SerializerOptions{})
	protoCodec    = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	protoRawCodec = protobuf.NewRawSerializer(scheme.Scheme, scheme.Scheme)
)

// generatedPod is the i-th pod of a list.
func generatedPod(i int) corev1.Pod {
	r := rand.New(rand.NewPCG(uint64(i), 1))
	uid := func() types.UID {
		return types.UID(fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", r.Uint32(), r.Uint32()&0xffff, r.Uint32()&0xfff, r.Uint32()&0xfff, r.Uint64()&0xffffffffffff))
	}
	app := fmt.Sprintf("service-%d", i%97)
	hash := fmt.Sprintf("%09x", r.Uint32())
	return *samplepod.New(samplepod.Identity{
		App: app, Namespace: fmt.Sprintf("team-%d", i%31), Node: fmt.Sprintf("node-%d", i%1000),
		ReplicaSet: app + "-" + hash, Suffix: fmt.Sprintf("%05x", i&0xfffff), Hash: hash,
		UID: uid(), OwnerUID: uid(),
		ResourceVersion: fmt.Sprint(1000000 + i*3), Created: time.Unix(1790000000+int64(i), 0),
	})
}

func generatedList(n int) *corev1.PodList {
	left := int64(41)
	list := &corev1.PodList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "123456", Continue: "token", RemainingItemCount: &left},
	}
	for i := range n {
		list.Items = append(list.Items, generatedPod(i))
	}
	return list
}

// encoded is the object as a server writes it, kind and apiVersion included.
func encoded(t testing.TB, codec runtime.Encoder, object runtime.Object) []byte {
	object = object.DeepCopyObject()
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	require.NoError(t, err)
	object.GetObjectKind().SetGroupVersionKind(kinds[0])
	var b bytes.Buffer
	require.NoError(t, codec.Encode(object, &b))
	return b.Bytes()
}
