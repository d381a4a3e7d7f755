package controller_test

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/controller"
)

// A block of docs/coming-from-consul-k8s.md, with what it takes for granted.
func snippetOfAStorelessResource(factory informer.DynamicListerWatcherFactory, pods schema.GroupVersionResource,
	upsert controller.ResourceUpsertFunc, delete controller.ResourceDeleteFunc) *controller.Controller {
	c := &controller.Controller{
		Resource: controller.NewStorelessResource("pods", informer.InformerConfig{
			ListerWatcher: factory.ForResource("", pods),
			ExampleObject: &corev1.Pod{},
			Checkpoint:    informer.FileCheckpoint("/var/lib/sync/pods"),
		}, upsert, delete),
		MaxRetries: -1,
	}
	return c
}

var _ = snippetOfAStorelessResource
