package field_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/rvinformer/informer/internal/testkit/samplepod"
)

// pod is as large as a real one.
func pod() *corev1.Pod {
	pod := samplepod.New(samplepod.Identity{
		App: "shop", Namespace: "team-7", Node: "node-7", ReplicaSet: "shop-5d4f7c", Suffix: "00007", Hash: "5d4f7c9abcde",
		UID: "5f7e4c1a-2b3d-4e5f-8a9b-0c1d2e3f4a5b", OwnerUID: "6a7e4c1a-2b3d-4e5f-8a9b-0c1d2e3f4a5b",
		ResourceVersion: "1000021", Created: time.Unix(1790000000, 0),
	})
	user := int64(1000)
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: &user}
	pod.Spec.Overhead = corev1.ResourceList{"cpu": resource.MustParse("250m")}
	return pod
}
