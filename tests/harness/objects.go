package harness

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// ExampleObject is an unstructured ExampleObject of a configuration.
func ExampleObject(apiVersion, kind string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	return obj
}

// Pods and Widgets are resources of every simulated server, and Kinds their kinds.
var (
	Pods    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	Widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	Kinds   = map[schema.GroupVersionResource]string{Pods: "Pod", Widgets: "Widget"}
)

// Object is an object of the simulated server, of a key ("namespace/name"), with something that
// changes.
func Object(gvr schema.GroupVersionResource, key, value string) *unstructured.Unstructured {
	name, err := cache.ParseObjectName(key)
	if err != nil {
		panic(err)
	}
	obj := &unstructured.Unstructured{Object: map[string]interface{}{"data": value}}
	obj.SetAPIVersion(gvr.GroupVersion().String())
	obj.SetKind(Kinds[gvr])
	obj.SetNamespace(name.Namespace)
	obj.SetName(name.Name)
	return obj
}

// Data is what changes in an Object.
func Data(obj interface{}) string {
	value, _ := obj.(*unstructured.Unstructured).Object["data"].(string)
	return value
}

// Keys are n keys, in order.
func Keys(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("a/%04d", i))
	}
	return all
}

// ListJSON is a list of pods in JSON.
func ListJSON(items ...string) string {
	return `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[` + strings.Join(items, ",") + `]}`
}

// PodJSON is an item of a list in JSON. Rest is its end, after a comma.
func PodJSON(name, rest string) string {
	return fmt.Sprintf(`{"metadata":{"namespace":"a","name":%q,"resourceVersion":"5","uid":"u-%s"}%s}`, name, name, rest)
}

// PartialObject is an object that has nothing but what a storage keeps.
func PartialObject(namespace, name, rv, uid string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, ResourceVersion: rv, UID: types.UID(uid),
	}}
}

// Pod is a pod of a key, as a server sends it.
func Pod(key, rv string) *unstructured.Unstructured {
	obj := Object(Pods, key, "v"+rv)
	obj.SetResourceVersion(rv)
	return obj
}

// WithUID gives an object a UID, and returns it.
func WithUID(obj *unstructured.Unstructured, uid string) *unstructured.Unstructured {
	obj.SetUID(types.UID(uid))
	return obj
}

// List is a page of a list of pods. A page follows it if next is not empty.
func List(rv, next string, objects ...*unstructured.Unstructured) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{Object: map[string]interface{}{"apiVersion": "v1", "kind": "PodList"}}
	l.SetResourceVersion(rv)
	l.SetContinue(next)
	for _, obj := range objects {
		l.Items = append(l.Items, *obj)
	}
	return l
}
