package samples

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// WorkloadScheme returns a scheme for clients that decode the pods of a server as workloads, which
// come in JSON. So they are compared over the same bytes.
func WorkloadScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("Pod"), &Workload{})
	scheme.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("PodList"), &WorkloadList{})
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	return scheme
}

// Workload is the Go type of a custom resource: it has no protobuf. What it has is that of a pod,
// as many custom resources have the template of one, so that it can be compared with pods. It has
// 5.8 KB of JSON on average.
type Workload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   corev1.PodSpec   `json:"spec,omitempty"`
	Status corev1.PodStatus `json:"status,omitempty"`
}

// WorkloadList is a list of them, as typed clients have it.
type WorkloadList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Workload `json:"items"`
}

// Workload returns custom resource i after a number of updates. The caller owns it.
func (c Cluster) Workload(i, revision int) *Workload {
	pod := c.Pod(i, revision)
	return &Workload{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec, Status: pod.Status}
}

// DeepCopyObject returns a copy that shares nothing with w.
func (w *Workload) DeepCopyObject() runtime.Object {
	copied := &Workload{TypeMeta: w.TypeMeta}
	w.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	w.Spec.DeepCopyInto(&copied.Spec)
	w.Status.DeepCopyInto(&copied.Status)
	return copied
}

// DeepCopyObject returns a copy that shares nothing with l.
func (l *WorkloadList) DeepCopyObject() runtime.Object {
	copied := &WorkloadList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&copied.ListMeta)
	for i := range l.Items {
		copied.Items = append(copied.Items, *l.Items[i].DeepCopyObject().(*Workload))
	}
	return copied
}
