package prune_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/internal/leaf/prune"
	"github.com/rvinformer/informer/internal/testkit/samplepod"
)

// What users drop most.
const (
	managedFields = "metadata.managedFields"
	lastApplied   = `metadata.annotations.kubectl\.kubernetes\.io/last-applied-configuration`
)

// pruned and kept are what stays with paths of Prune, and of Keep.
func pruned(t testing.TB, paths ...string) *prune.Fields { return stay(t, nil, paths) }
func kept(t testing.TB, paths ...string) *prune.Fields   { return stay(t, paths, nil) }

func stay(t require.TestingT, keep, drop []string) *prune.Fields {
	f, err := prune.Parse(keep, drop)
	require.NoError(t, err)
	return f
}

// fewFields are what a scheduler of pods might need.
var fewFields = []string{"metadata.labels", "spec.nodeName", "spec.containers.resources", "status.phase"}

// podPaths lead to every kind of field: behind pointers, inlined structs, in arrays, maps and types
// with a JSON of their own.
var podPaths = []string{"metadata", "metadata.labels", "metadata.labels.tier", "metadata.ownerReferences.name", "metadata.ownerReferences.controller", "metadata.managedFields.fieldsV1",
	"metadata.creationTimestamp", "metadata.deletionTimestamp.x", "metadata.finalizers", "spec", "spec.nodeName", "spec.containers", "spec.containers.image", "spec.containers.env",
	"spec.containers.env.name", "spec.containers.resources.requests", "spec.containers.resources.requests.cpu", "spec.containers.livenessProbe.httpGet.port",
	"spec.containers.livenessProbe.periodSeconds", "spec.containers.ports.containerPort", "spec.volumes.name", "spec.volumes.projected.sources.serviceAccountToken.path",
	"spec.securityContext.runAsUser", "spec.securityContext.seccompProfile", "spec.terminationGracePeriodSeconds", "spec.nodeSelector.disk", "spec.tolerations.key",
	"spec.affinity.nodeAffinity", "spec.overhead.cpu", "status", "status.phase", "status.conditions.type", "status.conditions.lastTransitionTime", "status.podIPs.ip",
	"status.containerStatuses.state.running.startedAt", "status.containerStatuses.state.running", "status.startTime"}

// bigPod is a pod that was applied by kubectl. Each i is another one, with strings of other
// lengths.
func bigPod(i int) *corev1.Pod {
	r := rand.New(rand.NewPCG(uint64(i), 1))
	app := fmt.Sprintf("service-%d", r.IntN(1<<(1+r.IntN(20))))
	hash := fmt.Sprintf("%08x", r.Uint32())
	created := time.Unix(1790000000, 0)
	pod := samplepod.New(samplepod.Identity{
		App: app, Namespace: "team-7", Node: "node-7", ReplicaSet: app + "-" + hash, Suffix: "00007", Hash: hash,
		UID: "5f7e4c1a-2b3d-4e5f-8a9b-0c1d2e3f4a5b", OwnerUID: "6a7e4c1a-2b3d-4e5f-8a9b-0c1d2e3f4a5b",
		ResourceVersion: "1000021", Created: created,
	})
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	var env []corev1.EnvVar
	for n := range 6 + r.IntN(10) {
		env = append(env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", r.IntN(1<<(1+r.IntN(20)))), Value: fmt.Sprintf("http://backend-%d.%s.svc.cluster.local:8080/path", n, app)})
	}
	pod.Spec.Containers[0].Env = env
	applied, _ := json.Marshal(corev1.Pod{TypeMeta: pod.TypeMeta, Spec: pod.Spec})
	pod.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = string(applied)
	at := metav1.NewTime(created.UTC())
	pod.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "kube-controller-manager", Operation: "Update", APIVersion: "v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: samplepod.FieldsV1("metadata", 3+r.IntN(6))},
		{Manager: "kubelet", Operation: "Update", APIVersion: "v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: samplepod.FieldsV1("status", 3+r.IntN(6)), Subresource: "status"},
	}
	return pod
}
