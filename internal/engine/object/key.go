package object

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// Key returns "namespace/name", or "name", of obj, an object or a cache.DeletedFinalStateUnknown.
// The error is a cache.KeyError.
func Key(obj interface{}) (string, error) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return "", cache.KeyError{Obj: obj, Err: err}
	}
	return key, nil
}

// AppendKey adds what Key returns to a buffer, so that a caller that does not keep the key
// allocates nothing.
func AppendKey(to []byte, obj interface{}) ([]byte, error) {
	switch key := obj.(type) {
	case cache.DeletedFinalStateUnknown:
		return append(to, key.Key...), nil
	case cache.ExplicitKey:
		return append(to, key...), nil
	}
	name, err := cache.ObjectToName(obj)
	if err != nil {
		return nil, cache.KeyError{Obj: obj, Err: err}
	}
	if name.Namespace != "" {
		to = append(append(to, name.Namespace...), '/')
	}
	return append(to, name.Name...), nil
}

// KeyAndVersion returns the key and the version of obj, an object or a
// cache.DeletedFinalStateUnknown that holds one. The error is a cache.KeyError.
func KeyAndVersion(obj interface{}) (string, keytable.Version, error) {
	key, err := Key(obj)
	if err != nil {
		return "", keytable.Version{}, err
	}
	version, err := Version(obj)
	if err != nil {
		return "", keytable.Version{}, err
	}
	return key, version, nil
}

// Version returns the version of obj, an object or a cache.DeletedFinalStateUnknown that holds one.
// The error is a cache.KeyError.
func Version(obj interface{}) (keytable.Version, error) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return keytable.Version{}, cache.KeyError{Obj: obj, Err: err}
	}
	return keytable.Version{ResourceVersion: accessor.GetResourceVersion(), UID: accessor.GetUID()}, nil
}
