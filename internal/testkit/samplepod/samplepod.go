// Package samplepod makes pods for tests and benchmarks that are as large as those of a real
// deployment.
package samplepod

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Identity is what differs between the pods.
type Identity struct {
	App, Namespace, Node string
	// ReplicaSet and Suffix make the name. Hash is that of the template, and has 8 characters or
	// more.
	ReplicaSet, Suffix, Hash string
	UID, OwnerUID            types.UID
	ResourceVersion          string
	Created                  time.Time
}

// New returns a pod of about 4.7 KB of JSON and 3.1 KB of protobuf. It has no kind, as in a list.
func New(id Identity) *corev1.Pod {
	app, replicaSet := id.App, id.ReplicaSet
	at := metav1.NewTime(id.Created.UTC())
	digest := strings.Repeat(id.Hash[:8], 8)
	yes, seconds, grace := true, int64(300), int64(30)
	priority, preemption := int32(0), corev1.PreemptLowerPriority
	quantity := resource.MustParse
	var env []corev1.EnvVar
	for n := range 11 {
		env = append(env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", n), Value: fmt.Sprintf("http://backend-%d.%s.svc.cluster.local:8080/path", n, app)})
	}
	condition := func(t corev1.PodConditionType) corev1.PodCondition {
		return corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: at}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: replicaSet + "-" + id.Suffix, GenerateName: replicaSet + "-", Namespace: id.Namespace,
			UID: id.UID, ResourceVersion: id.ResourceVersion, CreationTimestamp: at,
			Labels:      map[string]string{"app.kubernetes.io/name": app, "pod-template-hash": id.Hash, "tier": "backend"},
			Annotations: map[string]string{"prometheus.io/scrape": "true", "note": `says "hello" to C:\temp <&>`},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: replicaSet, UID: id.OwnerUID,
				Controller: &yes, BlockOwnerDeletion: &yes}},
			ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: "kube-controller-manager", Operation: "Update", APIVersion: "v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: FieldsV1("metadata", 6)},
				{Manager: "kubelet", Operation: "Update", APIVersion: "v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: FieldsV1("status", 6), Subresource: "status"},
			},
		},
		Spec: corev1.PodSpec{
			Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: app}}}}},
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example.com/" + app + ":v1.2.3", Env: env,
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: "TCP"}},
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": quantity("500m"), "memory": quantity("256Mi")},
					Requests: corev1.ResourceList{"cpu": quantity("100m"), "memory": quantity("128Mi")}},
				VolumeMounts:           []corev1.VolumeMount{{Name: "config", MountPath: "/etc/config", ReadOnly: true}},
				TerminationMessagePath: "/dev/termination-log", ImagePullPolicy: "IfNotPresent",
			}},
			RestartPolicy: "Always", TerminationGracePeriodSeconds: &grace, DNSPolicy: "ClusterFirst", ServiceAccountName: "default",
			NodeName: id.Node, SchedulerName: "default-scheduler", SecurityContext: &corev1.PodSecurityContext{},
			EnableServiceLinks: &yes, Priority: &priority, PreemptionPolicy: &preemption,
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: &seconds},
				{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: &seconds},
			},
		},
		Status: corev1.PodStatus{
			Phase: "Running", HostIP: "10.0.0.1", PodIP: "10.1.2.3", PodIPs: []corev1.PodIP{{IP: "10.1.2.3"}}, StartTime: &at, QOSClass: "Burstable",
			Conditions: []corev1.PodCondition{condition("Initialized"), condition("Ready"), condition("ContainersReady"), condition("PodScheduled")},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "main", Ready: true, Started: &yes, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
				Image:       "registry.example.com/" + app + ":v1.2.3",
				ImageID:     "registry.example.com/" + app + "@sha256:" + digest,
				ContainerID: "containerd://" + digest,
			}},
		},
	}
}

// FieldsV1 returns what a manager says it owns: n fields, their keys with quotes in them.
func FieldsV1(top string, n int) *metav1.FieldsV1 {
	var b strings.Builder
	fmt.Fprintf(&b, `{"f:%s":{".":{}`, top)
	for k := range n {
		fmt.Fprintf(&b, `,"k:{\"type\":\"field-%d\"}":{".":{},"f:status":{},"f:lastProbeTime":{}}`, k)
	}
	b.WriteString("}}")
	fields := &metav1.FieldsV1{}
	fields.SetRawBytes([]byte(b.String()))
	return fields
}
