package demo

import (
	"fmt"

	"github.com/rvinformer/informer/internal/samples"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// apiObject is what all API objects are: something to store that has a name.
type apiObject interface {
	runtime.Object
	metav1.Object
}

// Kind makes the objects of one resource. The same number and revision give the same object.
type Kind struct {
	Resource schema.GroupVersionResource
	name     string
	percent  int                             // of all objects
	from     func(pod *corev1.Pod) apiObject // its metadata and content are those of a pod
}

// Kinds are those of the objects in each cluster.
func Kinds() []Kind {
	core, apps := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion
	return []Kind{
		{core.WithResource("namespaces"), "namespace", 1, namespace},
		{core.WithResource("nodes"), "node", 1, node},
		{core.WithResource("configmaps"), "settings", 25, configMap},
		{core.WithResource("secrets"), "token", 8, secret},
		{apps.WithResource("deployments"), "deployment", 8, deployment},
		{schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, "widget", 7, widget},
		{core.WithResource("pods"), "app", 50, func(pod *corev1.Pod) apiObject { return pod }},
	}
}

// object has managedFields, as real objects do: mirror leaves them out by default.
func (k Kind) object(number, revision int) apiObject {
	pod := samples.Cluster{}.Pod(number, 0)
	pod.ObjectMeta = metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: fmt.Sprintf("%s-%06d", k.name, number), Labels: pod.Labels, ManagedFields: pod.ManagedFields,
		Annotations: map[string]string{"example.com/revision": fmt.Sprint(revision)},
	}
	pod.Status.ContainerStatuses[0].RestartCount = int32(revision)
	return k.from(pod)
}

func namespace(pod *corev1.Pod) apiObject {
	pod.Namespace = ""
	return &corev1.Namespace{ObjectMeta: pod.ObjectMeta}
}

func node(pod *corev1.Pod) apiObject {
	pod.Namespace = ""
	return &corev1.Node{
		ObjectMeta: pod.ObjectMeta,
		Spec:       corev1.NodeSpec{ProviderID: "demo:///" + pod.Spec.NodeName},
		Status:     corev1.NodeStatus{Capacity: pod.Spec.Containers[0].Resources.Limits},
	}
}

func configMap(pod *corev1.Pod) apiObject {
	settings := map[string]string{"text": "<value & more>\n"}
	for _, variable := range pod.Spec.Containers[0].Env {
		settings[variable.Name] = variable.Value
	}
	return &corev1.ConfigMap{ObjectMeta: pod.ObjectMeta, Data: settings}
}

func secret(pod *corev1.Pod) apiObject {
	token := []byte(pod.Status.ContainerStatuses[0].ContainerID)
	return &corev1.Secret{ObjectMeta: pod.ObjectMeta, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"token": token}}
}

func deployment(pod *corev1.Pod) apiObject {
	return &appsv1.Deployment{ObjectMeta: pod.ObjectMeta, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: pod.Labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec},
	}}
}

// widget is a custom resource, which has what a pod has.
func widget(pod *corev1.Pod) apiObject {
	kind := metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"}
	return &samples.Workload{TypeMeta: kind, ObjectMeta: pod.ObjectMeta, Spec: pod.Spec, Status: pod.Status}
}
