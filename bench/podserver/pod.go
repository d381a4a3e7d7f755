package podserver

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/internal/testkit/samplepod"
)

var (
	podKind      = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	metadataKind = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
)

// templatePod is a pod with placeholders for what differs between pods.
func templatePod() *corev1.Pod {
	pod := samplepod.New(samplepod.Identity{
		App: "service-42", Namespace: placeholders[namespaceField], Node: "node-421",
		ReplicaSet: placeholders[replicaSetField], Suffix: placeholders[suffixField], Hash: "5d9c7b8f6",
		UID: types.UID(placeholders[uidField]), OwnerUID: "0b8a6f52-3c1d-4e7a-9f60-1d2c3b4a5968",
		ResourceVersion: placeholders[versionField], Created: time.Unix(1790000000, 0),
	})
	pod.TypeMeta = podKind
	return pod
}

// Pod returns pod i of n as a server of n pods has it.
func Pod(i, n int) *corev1.Pod {
	id := newIdentity()
	id.set(i, n)
	pod := templatePod()
	pod.Namespace = string(id[namespaceField])
	pod.GenerateName = string(id[replicaSetField]) + "-"
	pod.Name = pod.GenerateName + string(id[suffixField])
	pod.OwnerReferences[0].Name = string(id[replicaSetField])
	pod.UID = types.UID(id[uidField])
	pod.ResourceVersion = string(id[versionField])
	return pod
}

// metadataOf is the pod as a server sends it where its metadata is asked for.
func metadataOf(pod *corev1.Pod) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metadataKind, ObjectMeta: *pod.ObjectMeta.DeepCopy()}
}
