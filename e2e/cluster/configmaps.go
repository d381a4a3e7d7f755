package cluster

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ConfigMapResource names the built-in resource whose objects cost the server least.
var ConfigMapResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// ConfigMaps returns the configmaps of a namespace that exists.
func (c *Cluster) ConfigMaps(namespace string) (*Objects, error) {
	return c.objects(namespace, ConfigMapResource, newConfigMap)
}

func newConfigMap(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata": map[string]any{
			"name":   name,
			"labels": map[string]any{"app": "e2e", "step": "created"},
		},
		"data": map[string]any{"name": name},
	}}
}
