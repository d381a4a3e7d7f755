package main

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

// demoObject is what all API objects are: something to store that has a name.
type demoObject interface {
	runtime.Object
	metav1.Object
}

// demoKind makes the objects of one resource. The same number and revision give the same object.
type demoKind struct {
	resource schema.GroupVersionResource
	percent  int // of all objects; 0 = the rest
	object   func(number, revision int) demoObject
}

func demoKinds() []demoKind {
	core, apps := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion
	return []demoKind{
		{core.WithResource("namespaces"), 1, demoNamespace},
		{core.WithResource("nodes"), 1, demoNode},
		{core.WithResource("configmaps"), 25, demoConfigMap},
		{core.WithResource("secrets"), 8, demoSecret},
		{apps.WithResource("deployments"), 8, demoDeployment},
		{schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, 7, demoWidget},
		{core.WithResource("pods"), 0, demoPod},
	}
}

// demoMeta has about the metadata of a real object, managedFields included: they are what mirror
// leaves out by default.
func demoMeta(namespace, kind string, number, revision int) metav1.ObjectMeta {
	changed := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, revision, 0, time.UTC))
	return metav1.ObjectMeta{
		Namespace: namespace,
		Name:      fmt.Sprintf("%s-%06d", kind, number),
		Labels: map[string]string{
			"app.kubernetes.io/name":     kind,
			"app.kubernetes.io/instance": fmt.Sprintf("%s-%d", kind, number%50),
		},
		Annotations: map[string]string{"example.com/revision": fmt.Sprint(revision)},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager:    "demo-controller",
			Operation:  metav1.ManagedFieldsOperationUpdate,
			APIVersion: "v1",
			Time:       &changed,
			FieldsType: "FieldsV1",
			FieldsV1:   metav1.NewFieldsV1(demoManagedFields(kind)),
		}},
	}
}

func demoManagedFields(kind string) string {
	var fields strings.Builder
	fmt.Fprintf(&fields, `{"f:metadata":{"f:annotations":{".":{},"f:example.com/revision":{}},"f:labels":{".":{},"f:app.kubernetes.io/name":{}}},"f:%s":{`, kind)
	for i := range 24 {
		fmt.Fprintf(&fields, `"f:field%02d":{".":{},"f:name":{},"f:value":{}},`, i)
	}
	fields.WriteString(`"f:status":{}}}`)
	return fields.String()
}

// demoTenant spreads objects over some namespaces.
func demoTenant(number int) string { return fmt.Sprintf("tenant-%02d", number%20) }

func demoNamespace(number, revision int) demoObject {
	return &corev1.Namespace{ObjectMeta: demoMeta("", "namespace", number, revision)}
}

func demoNode(number, revision int) demoObject {
	return &corev1.Node{
		ObjectMeta: demoMeta("", "node", number, revision),
		Spec:       corev1.NodeSpec{ProviderID: fmt.Sprintf("demo:///%06d", number)},
		Status: corev1.NodeStatus{
			Capacity: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("16"),
				corev1.ResourceMemory: resource.MustParse("64Gi"),
				corev1.ResourcePods:   resource.MustParse("110"),
			},
			NodeInfo: corev1.NodeSystemInfo{KernelVersion: "6.12.9", KubeletVersion: "v1.37.2", OSImage: "Demo Linux", Architecture: "amd64"},
		},
	}
}

func demoConfigMap(number, revision int) demoObject {
	return &corev1.ConfigMap{
		ObjectMeta: demoMeta(demoTenant(number), "settings", number, revision),
		Data: map[string]string{
			"revision":        fmt.Sprint(revision),
			"application.yml": strings.Repeat(fmt.Sprintf("setting-%d: <value & more>\n", number%10), 20),
		},
	}
}

func demoSecret(number, revision int) demoObject {
	return &corev1.Secret{
		ObjectMeta: demoMeta(demoTenant(number), "token", number, revision),
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{"token": []byte(strings.Repeat(fmt.Sprint(number), 40))},
	}
}

func demoPodSpec(number int) corev1.PodSpec {
	variables := make([]corev1.EnvVar, 8)
	for i := range variables {
		variables[i] = corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", i), Value: fmt.Sprintf("value %d of %d", i, number)}
	}
	return corev1.PodSpec{
		NodeName:           fmt.Sprintf("node-%06d", number%100),
		ServiceAccountName: "default",
		RestartPolicy:      corev1.RestartPolicyAlways,
		Containers: []corev1.Container{{
			Name:  "main",
			Image: fmt.Sprintf("registry.example.com/team/app:%d", number%30),
			Args:  []string{"--listen=:8080", "--verbose"},
			Env:   variables,
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("100m"),
				corev1.ResourceMemory: resource.MustParse("128Mi"),
			}},
		}},
	}
}

func demoPod(number, revision int) demoObject {
	started := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	status := corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.%d.%d.%d", number>>16&255, number>>8&255, number&255)}
	for _, condition := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: started})
	}
	status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Ready: true, RestartCount: int32(revision), Image: "registry.example.com/team/app"}}
	return &corev1.Pod{ObjectMeta: demoMeta(demoTenant(number), "app", number, revision), Spec: demoPodSpec(number), Status: status}
}

func demoDeployment(number, revision int) demoObject {
	replicas := int32(revision%10 + 1)
	labels := map[string]string{"app": fmt.Sprintf("app-%06d", number)}
	return &appsv1.Deployment{
		ObjectMeta: demoMeta(demoTenant(number), "deployment", number, revision),
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: demoPodSpec(number)},
		},
	}
}

func demoWidget(number, revision int) demoObject {
	widget := &unstructured.Unstructured{Object: map[string]interface{}{
		"apiVersion": "example.com/v1",
		"kind":       "Widget",
		"spec": map[string]interface{}{
			"size":   int64(number % 7),
			"ratio":  0.25 + float64(number%4),
			"colour": []interface{}{"red", "green", "blue"}[number%3],
		},
		"status": map[string]interface{}{"revision": int64(revision)},
	}}
	metadata := demoMeta(demoTenant(number), "widget", number, revision)
	widget.SetNamespace(metadata.Namespace)
	widget.SetName(metadata.Name)
	widget.SetLabels(metadata.Labels)
	widget.SetAnnotations(metadata.Annotations)
	widget.SetManagedFields(metadata.ManagedFields)
	return widget
}
