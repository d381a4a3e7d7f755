package object

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/keytable"
)

// Key returns "namespace/name", or "name", of obj, an object or a cache.DeletedFinalStateUnknown. The error is a
// cache.KeyError.
func Key(obj interface{}) (string, error) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return "", cache.KeyError{Obj: obj, Err: err}
	}
	return key, nil
}

// KeyAndVersion returns the key and the version of obj, an object or a cache.DeletedFinalStateUnknown that holds
// one. The error is a cache.KeyError.
func KeyAndVersion(obj interface{}) (string, keytable.Version, error) {
	key, err := Key(obj)
	if err != nil {
		return "", keytable.Version{}, err
	}
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return "", keytable.Version{}, cache.KeyError{Obj: obj, Err: err}
	}
	return key, keytable.Version{ResourceVersion: accessor.GetResourceVersion(), UID: accessor.GetUID()}, nil
}
