package informer_test

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// pods is what the examples follow.
var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// object is an object of the simulated server, with a key and something that changes.
func object(gvr schema.GroupVersionResource, key, value string) *unstructured.Unstructured {
	name, err := cache.ParseObjectName(key)
	if err != nil {
		panic(err)
	}
	obj := &unstructured.Unstructured{Object: map[string]interface{}{"data": value}}
	obj.SetAPIVersion(gvr.GroupVersion().String())
	obj.SetKind("Pod")
	obj.SetNamespace(name.Namespace)
	obj.SetName(name.Name)
	return obj
}

// start runs an informer until stop, which returns when it has ended.
func start(run func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// key is that of an object, "namespace/name", or of a tombstone.
func key(obj interface{}) string {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		panic(err)
	}
	return key
}

// data is what changes in an object.
func data(obj interface{}) string {
	value, _ := obj.(*unstructured.Unstructured).Object["data"].(string)
	return value
}
