package cluster

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PodResource names the built-in resource that tests fill the server with.
var PodResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// Pods returns the pods of a namespace that exists.
func (c *Cluster) Pods(namespace string) (*Objects, error) {
	return c.objects(namespace, PodResource, newPod)
}

func newPod(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Pod",
		"metadata": map[string]any{
			"name":   name,
			"labels": map[string]any{"app": "e2e", "step": "created"},
		},
		"spec": map[string]any{
			"containers": []any{map[string]any{
				"name":  "main",
				"image": "registry.example.com/app:v1",
				"env":   []any{map[string]any{"name": "NAME", "value": name}},
			}},
		},
	}}
}
