package podserver

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// templatePod is about as large as the pod of a real deployment, 4.7 KB of JSON
// and 3.1 KB of protobuf, with placeholders for what differs between pods.
func templatePod() *corev1.Pod {
	const app = "service-42"
	at := metav1.NewTime(time.Unix(1790000000, 0).UTC())
	replicaSet := placeholders[replicaSetField]
	hash := "5d9c7b8f6"
	digest := strings.Repeat("5d9c7b8f", 8)
	yes, seconds, grace := true, int64(300), int64(30)
	quantity := resource.MustParse
	var env []corev1.EnvVar
	for n := range 11 {
		env = append(env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", n), Value: fmt.Sprintf("http://backend-%d.%s.svc.cluster.local:8080/path", n, app)})
	}
	condition := func(t corev1.PodConditionType) corev1.PodCondition {
		return corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: at}
	}
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: replicaSet + "-" + placeholders[suffixField], GenerateName: replicaSet + "-", Namespace: placeholders[namespaceField],
			UID: types.UID(placeholders[uidField]), ResourceVersion: placeholders[versionField], CreationTimestamp: at,
			Labels:      map[string]string{"app.kubernetes.io/name": app, "pod-template-hash": hash, "tier": "backend"},
			Annotations: map[string]string{"prometheus.io/scrape": "true", "note": `says "hello" to C:\temp <&>`},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: replicaSet, UID: "0b8a6f52-3c1d-4e7a-9f60-1d2c3b4a5968",
				Controller: &yes, BlockOwnerDeletion: &yes}},
			ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: "kube-controller-manager", Operation: "Update", APIVersion: "v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: fieldsV1("metadata", 6)},
				{Manager: "kubelet", Operation: "Update", APIVersion: "v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: fieldsV1("status", 6), Subresource: "status"},
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
			NodeName: "node-421", SchedulerName: "default-scheduler", SecurityContext: &corev1.PodSecurityContext{},
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

func fieldsV1(top string, n int) *metav1.FieldsV1 {
	var b strings.Builder
	fmt.Fprintf(&b, `{"f:%s":{".":{}`, top)
	for k := range n {
		fmt.Fprintf(&b, `,"k:{\"type\":\"field-%d\"}":{".":{},"f:status":{},"f:lastProbeTime":{}}`, k)
	}
	b.WriteString("}}")
	return &metav1.FieldsV1{Raw: []byte(b.String())}
}

// metadataOf is the pod as a server sends it where its metadata is asked for.
func metadataOf(pod *corev1.Pod) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: *pod.ObjectMeta.DeepCopy(),
	}
}
