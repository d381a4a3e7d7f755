package prune_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/internal/prune"
)

// What users drop most.
const (
	managedFields = "metadata.managedFields"
	lastApplied   = `metadata.annotations.kubectl\.kubernetes\.io/last-applied-configuration`
)

func parsed(t testing.TB, paths ...string) prune.Paths {
	p, err := prune.Parse(paths)
	require.NoError(t, err)
	return p
}

// fieldsV1 is what a manager says it owns: keys with quotes in them.
func fieldsV1(top string, n int) *metav1.FieldsV1 {
	var b strings.Builder
	fmt.Fprintf(&b, `{"f:%s":{".":{}`, top)
	for k := range n {
		fmt.Fprintf(&b, `,"k:{\"type\":\"field-%d\"}":{".":{},"f:status":{},"f:lastProbeTime":{}}`, k)
	}
	b.WriteString("}}")
	return &metav1.FieldsV1{Raw: []byte(b.String())}
}

// bigPod is about as large and as deep as the pod of a real deployment, and was
// applied by kubectl. Each i is another one, with strings of other lengths.
func bigPod(i int) *corev1.Pod {
	r := rand.New(rand.NewPCG(uint64(i), 1))
	app := fmt.Sprintf("service-%d", r.IntN(1<<(1+r.IntN(20))))
	hash := fmt.Sprintf("%08x", r.Uint32())
	at := metav1.NewTime(time.Unix(1790000000, 0).UTC())
	yes, seconds, grace := true, int64(300), int64(30)
	var env []corev1.EnvVar
	for n := range 6 + r.IntN(10) {
		env = append(env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", r.IntN(1<<(1+r.IntN(20)))), Value: fmt.Sprintf("http://backend-%d.%s.svc.cluster.local:8080/path", n, app)})
	}
	var conditions []corev1.PodCondition
	for _, t := range []corev1.PodConditionType{"Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		conditions = append(conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: at})
	}
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: app + "-" + hash + "-00007", GenerateName: app + "-" + hash + "-", Namespace: "team-7", UID: "5f7e4c1a-2b3d-4e5f-8a9b-0c1d2e3f4a5b",
			ResourceVersion: "1000021", CreationTimestamp: at,
			Labels:      map[string]string{"app.kubernetes.io/name": app, "pod-template-hash": hash, "tier": "backend"},
			Annotations: map[string]string{"prometheus.io/scrape": "true", "note": `says "hello" to C:\temp <&>`},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-" + hash, UID: "6a7e4c1a-2b3d-4e5f-8a9b-0c1d2e3f4a5b",
				Controller: &yes, BlockOwnerDeletion: &yes}},
		},
		Spec: corev1.PodSpec{
			Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example.com/" + app + ":v1.2.3", Env: env,
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: "TCP"}},
				Resources: corev1.ResourceRequirements{
					Limits:   corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("256Mi")},
					Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("128Mi")}},
				VolumeMounts:           []corev1.VolumeMount{{Name: "config", MountPath: "/etc/config", ReadOnly: true}},
				TerminationMessagePath: "/dev/termination-log", ImagePullPolicy: "IfNotPresent",
			}},
			RestartPolicy: "Always", TerminationGracePeriodSeconds: &grace, DNSPolicy: "ClusterFirst", ServiceAccountName: "default",
			NodeName: "node-7", SchedulerName: "default-scheduler", SecurityContext: &corev1.PodSecurityContext{},
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: &seconds},
				{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: &seconds},
			},
		},
		Status: corev1.PodStatus{
			Phase: "Running", HostIP: "10.0.0.1", PodIP: "10.1.2.3", PodIPs: []corev1.PodIP{{IP: "10.1.2.3"}}, StartTime: &at, QOSClass: "Burstable",
			Conditions: conditions,
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "main", Ready: true, Started: &yes, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
				Image:       "registry.example.com/" + app + ":v1.2.3",
				ImageID:     "registry.example.com/" + app + "@sha256:" + strings.Repeat(hash, 8),
				ContainerID: "containerd://" + strings.Repeat(hash, 8),
			}},
		},
	}
	applied, _ := json.Marshal(corev1.Pod{TypeMeta: pod.TypeMeta, Spec: pod.Spec})
	pod.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = string(applied)
	pod.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "kube-controller-manager", Operation: "Update", APIVersion: "v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: fieldsV1("metadata", 3+r.IntN(6))},
		{Manager: "kubelet", Operation: "Update", APIVersion: "v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: fieldsV1("status", 3+r.IntN(6)), Subresource: "status"},
	}
	return pod
}
