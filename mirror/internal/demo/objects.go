package demo

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	percent  int // of all objects; 0 = the rest
	object   func(number, revision int) apiObject
}

// Kinds are those of the objects in each cluster.
func Kinds() []Kind {
	core, apps := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion
	return []Kind{
		{core.WithResource("namespaces"), 1, namespace},
		{core.WithResource("nodes"), 1, node},
		{core.WithResource("configmaps"), 25, configMap},
		{core.WithResource("secrets"), 8, secret},
		{apps.WithResource("deployments"), 8, deployment},
		{schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, 7, widget},
		{core.WithResource("pods"), 0, pod},
	}
}

// epoch is when everything began.
var epoch = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

// meta has about the metadata of a real object, managedFields included: they are what mirror leaves
// out by default.
func meta(namespace, kind string, number, revision int) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace:   namespace,
		Name:        fmt.Sprintf("%s-%06d", kind, number),
		Labels:      map[string]string{"app.kubernetes.io/name": kind, "app.kubernetes.io/instance": fmt.Sprintf("%s-%d", kind, number%50)},
		Annotations: map[string]string{"example.com/revision": fmt.Sprint(revision)},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "demo-controller", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &epoch,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(managedFields),
		}},
	}
}

var managedFields = func() string {
	var text strings.Builder
	for i := range 24 {
		fmt.Fprintf(&text, `"f:field%02d":{".":{},"f:name":{},"f:value":{}},`, i)
	}
	return `{"f:spec":{` + text.String() + `"f:status":{}}}`
}()

// tenant spreads objects over some namespaces.
func tenant(number int) string { return fmt.Sprintf("tenant-%02d", number%20) }

func namespace(number, revision int) apiObject {
	return &corev1.Namespace{ObjectMeta: meta("", "namespace", number, revision)}
}

func node(number, revision int) apiObject {
	return &corev1.Node{
		ObjectMeta: meta("", "node", number, revision),
		Spec:       corev1.NodeSpec{ProviderID: fmt.Sprintf("demo:///%06d", number)},
		Status: corev1.NodeStatus{
			Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi")},
			NodeInfo: corev1.NodeSystemInfo{KernelVersion: "6.12.9", KubeletVersion: "v1.37.2", OSImage: "Demo Linux", Architecture: "amd64"},
		},
	}
}

func configMap(number, revision int) apiObject {
	text := strings.Repeat(fmt.Sprintf("setting-%d: <value & more>\n", number%10), 20)
	return &corev1.ConfigMap{
		ObjectMeta: meta(tenant(number), "settings", number, revision),
		Data:       map[string]string{"revision": fmt.Sprint(revision), "application.yml": text},
	}
}

func secret(number, revision int) apiObject {
	return &corev1.Secret{
		ObjectMeta: meta(tenant(number), "token", number, revision),
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{"token": []byte(strings.Repeat(fmt.Sprint(number), 40))},
	}
}

func podSpec(number int) corev1.PodSpec {
	variables := make([]corev1.EnvVar, 8)
	for i := range variables {
		variables[i] = corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", i), Value: fmt.Sprintf("value %d of %d", i, number)}
	}
	return corev1.PodSpec{
		NodeName: fmt.Sprintf("node-%06d", number%100), ServiceAccountName: "default", RestartPolicy: corev1.RestartPolicyAlways,
		Containers: []corev1.Container{{
			Name: "main", Image: fmt.Sprintf("registry.example.com/team/app:%d", number%30), Args: []string{"--listen=:8080", "--verbose"}, Env: variables,
			Ports:     []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
		}},
	}
}

func pod(number, revision int) apiObject {
	status := corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.%d.%d.%d", number>>16&255, number>>8&255, number&255)}
	for _, condition := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: epoch})
	}
	status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Ready: true, RestartCount: int32(revision), Image: "registry.example.com/team/app"}}
	return &corev1.Pod{ObjectMeta: meta(tenant(number), "app", number, revision), Spec: podSpec(number), Status: status}
}

func deployment(number, revision int) apiObject {
	replicas, labels := int32(revision%10+1), map[string]string{"app": fmt.Sprintf("app-%06d", number)}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(number)}
	return &appsv1.Deployment{
		ObjectMeta: meta(tenant(number), "deployment", number, revision),
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}
}

func widget(number, revision int) apiObject {
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"spec":   map[string]any{"size": int64(number % 7), "ratio": 0.25 + float64(number%4), "colour": []any{"red", "green", "blue"}[number%3]},
		"status": map[string]any{"revision": int64(revision)},
	}}
	about := meta(tenant(number), "widget", number, revision)
	widget.SetNamespace(about.Namespace)
	widget.SetName(about.Name)
	widget.SetLabels(about.Labels)
	widget.SetAnnotations(about.Annotations)
	widget.SetManagedFields(about.ManagedFields)
	return widget
}
