package wire

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// The ordinary codecs.
var (
	jsonCodec     = jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, jsonserializer.SerializerOptions{})
	protoCodec    = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	protoRawCodec = protobuf.NewRawSerializer(scheme.Scheme, scheme.Scheme)
)

// generatedPod is about as large (4.7 KB of JSON) and as deep as the pod of a real deployment.
func generatedPod(i int) corev1.Pod {
	r := rand.New(rand.NewPCG(uint64(i), 1))
	at := metav1.NewTime(time.Unix(1790000000+int64(i), 0).UTC())
	uid := func() types.UID {
		return types.UID(fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", r.Uint32(), r.Uint32()&0xffff, r.Uint32()&0xfff, r.Uint32()&0xfff, r.Uint64()&0xffffffffffff))
	}
	app := fmt.Sprintf("service-%d", i%97)
	hash := fmt.Sprintf("%09x", r.Uint32())
	yes, seconds, grace := true, int64(300), int64(30)
	quantity := resource.MustParse
	var env []corev1.EnvVar
	for n := range 11 {
		env = append(env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", n), Value: fmt.Sprintf("http://backend-%d.%s.svc.cluster.local:8080/path", n, app)})
	}
	condition := func(t corev1.PodConditionType) corev1.PodCondition {
		return corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: at}
	}
	fieldsV1 := func(top string, n int) *metav1.FieldsV1 {
		var b strings.Builder
		fmt.Fprintf(&b, `{"f:%s":{".":{}`, top)
		for k := range n {
			fmt.Fprintf(&b, `,"k:{\"type\":\"field-%d\"}":{".":{},"f:status":{},"f:lastProbeTime":{}}`, k)
		}
		b.WriteString("}}")
		return &metav1.FieldsV1{Raw: []byte(b.String())}
	}
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%s-%05x", app, hash, i&0xfffff), GenerateName: app + "-" + hash + "-", Namespace: fmt.Sprintf("team-%d", i%31),
			UID: uid(), ResourceVersion: fmt.Sprint(1000000 + i*3), CreationTimestamp: at,
			Labels:      map[string]string{"app.kubernetes.io/name": app, "pod-template-hash": hash, "tier": "backend"},
			Annotations: map[string]string{"prometheus.io/scrape": "true", "note": `says "hello" to C:\temp <&>`},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-" + hash, UID: uid(),
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
			NodeName: fmt.Sprintf("node-%d", i%1000), SchedulerName: "default-scheduler", SecurityContext: &corev1.PodSecurityContext{},
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
				ImageID:     "registry.example.com/" + app + "@sha256:" + strings.Repeat(hash[:8], 8),
				ContainerID: "containerd://" + strings.Repeat(hash[:8], 8),
			}},
		},
	}
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
