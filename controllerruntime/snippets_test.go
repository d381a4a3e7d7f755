package controllerruntime_test

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/rvinformer/informer/controllerruntime"
	"github.com/rvinformer/informer/objectcache"
)

// The blocks of docs/coming-from-controller-runtime.md.
var (
	_ = func(config *rest.Config) (manager.Manager, error) {
		mgr, err := ctrl.NewManager(config, manager.Options{NewCache: controllerruntime.NewCache})
		return mgr, err
	}

	_ = func(config *rest.Config) (manager.Manager, error) {
		newCache := controllerruntime.NewCacheWithOptions(controllerruntime.Options{
			Objects: objectcache.Options{
				Prune:    []string{"metadata.managedFields"}, // never allocated
				HotBytes: 32 << 20,                           // of decoded objects, for each informer
			},
			ByObject: map[client.Object]objectcache.Options{
				&corev1.Node{}: {Keep: []string{"metadata.labels", "status.addresses"}}, // and what identifies a node
			},
		})
		mgr, err := ctrl.NewManager(config, manager.Options{NewCache: newCache})
		return mgr, err
	}
)
