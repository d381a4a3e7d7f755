package fleet_test

import (
	"errors"
	"log"
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/fleet"
)

// The recipe of docs/fleet.md for kubeconfigs in Secrets.
func followSecrets(f *fleet.Fleet, secrets cache.SharedIndexInformer) {
	secrets.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if err := apply(f, obj.(*corev1.Secret)); err != nil {
				log.Print(err)
			}
		},
		UpdateFunc: func(_, obj any) {
			if err := apply(f, obj.(*corev1.Secret)); err != nil {
				log.Print(err)
			}
		},
		DeleteFunc: func(obj any) {
			if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				f.Remove(path.Base(key))
			}
		},
	})
}

var _ = followSecrets

var kubeconfig func(text []byte) (*rest.Config, error)

// apply adds the cluster of a Secret, or updates it. Here kubeconfig is clientcmd.RESTConfigFromKubeConfig.
func apply(f *fleet.Fleet, secret *corev1.Secret) error {
	config, err := kubeconfig(secret.Data["value"])
	if err != nil {
		return err
	}
	err = f.Update(secret.Name, config)
	if errors.Is(err, fleet.ErrNoCluster) {
		err = f.Add(secret.Name, config)
	}
	return err
}
