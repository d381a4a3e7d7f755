package demo

import (
	"fmt"

	"github.com/rvinformer/informer/internal/testkit/samples"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind makes the objects of one resource. The same number and revision give the same object.
type Kind struct {
	Resource schema.GroupVersionResource
	name     string
	percent  int                                  // of all objects
	from     func(pod *corev1.Pod) runtime.Object // its metadata and content are those of a pod
}

// Kinds are those of the objects in each cluster.
func Kinds() []Kind {
	core, apps, custom := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, schema.GroupVersion{Group: "example.com", Version: "v1"}
	return []Kind{
		{core.WithResource("namespaces"), "namespace", 1, func(pod *corev1.Pod) runtime.Object {
			pod.Namespace = ""
			return &corev1.Namespace{ObjectMeta: pod.ObjectMeta}
		}},
		{core.WithResource("nodes"), "node", 1, func(pod *corev1.Pod) runtime.Object {
			pod.Namespace = ""
			return &corev1.Node{ObjectMeta: pod.ObjectMeta, Status: corev1.NodeStatus{Capacity: pod.Spec.Containers[0].Resources.Limits}}
		}},
		{core.WithResource("configmaps"), "settings", 25, func(pod *corev1.Pod) runtime.Object {
			settings := map[string]string{"text": "<value & more>\n"}
			for _, variable := range pod.Spec.Containers[0].Env {
				settings[variable.Name] = variable.Value
			}
			return &corev1.ConfigMap{ObjectMeta: pod.ObjectMeta, Data: settings}
		}},
		{core.WithResource("secrets"), "token", 8, func(pod *corev1.Pod) runtime.Object {
			token := []byte(pod.Status.ContainerStatuses[0].ContainerID)
			return &corev1.Secret{ObjectMeta: pod.ObjectMeta, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"token": token}}
		}},
		{apps.WithResource("deployments"), "deployment", 8, func(pod *corev1.Pod) runtime.Object {
			return &appsv1.Deployment{ObjectMeta: pod.ObjectMeta, Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: pod.Labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec},
			}}
		}},
		{custom.WithResource("widgets"), "widget", 7, func(pod *corev1.Pod) runtime.Object { // has what a pod has
			kind := metav1.TypeMeta{APIVersion: custom.String(), Kind: "Widget"}
			return &samples.Workload{TypeMeta: kind, ObjectMeta: pod.ObjectMeta, Spec: pod.Spec, Status: pod.Status}
		}},
		{core.WithResource("pods"), "app", 50, func(pod *corev1.Pod) runtime.Object { return pod }},
	}
}

// object has managedFields, as real objects do: mirror leaves them out by default. A pod has one
// container.
func (k Kind) object(number, revision int) runtime.Object {
	pod := samples.Cluster{}.Pod(number, 0)
	pod.ObjectMeta = metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: fmt.Sprintf("%s-%06d", k.name, number), Labels: pod.Labels, ManagedFields: pod.ManagedFields,
		Annotations: map[string]string{"example.com/revision": fmt.Sprint(revision)},
	}
	pod.Spec.Containers, pod.Status.ContainerStatuses = pod.Spec.Containers[:1], pod.Status.ContainerStatuses[:1]
	pod.Status.ContainerStatuses[0].RestartCount = int32(revision)
	return k.from(pod)
}
