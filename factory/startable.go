package factory

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// InformerFor returns the informer of resource and opts: the one that there is,
// whoever asked for it first, or else that of newFunc. Where the one that there is
// has been stopped, or its stop channel closed, it is another one, of newFunc again.
//
// Until it is asked for again, one that ended by its stop channel stays in Statuses, and
// WaitForCacheSync is false if it had not synced; Stop and StopCluster forget it.
//
// If the informer that there is has another ObjectTransform, it is returned all the
// same; that is logged, unless it is only possible. TryInformerFor has an error for it.
//
// It panics with a *RequestError, which names the resource, if newFunc is nil or
// returns nil, and if there can be no such informer (NewKey).
func (f *Factory) InformerFor(resource schema.GroupVersionResource, opts InformerOptions, newFunc NewInformerFunc) StartableInformer {
	s, err := f.informerFor(resource, opts, newFunc, func(conflict *TransformConflictError) error {
		if conflict.certain() {
			klog.Background().Info("The informer has another transform than asked for", "informer", conflict.Key.String(), "has", conflict.Have.String(), "asked", conflict.Asked.String())
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	return s
}

// TryInformerFor is InformerFor with an error, instead of a panic or a log. A
// *TransformConflictError says that the informer that there is has another
// ObjectTransform, or may have; the informer is not returned then.
func (f *Factory) TryInformerFor(resource schema.GroupVersionResource, opts InformerOptions, newFunc NewInformerFunc) (StartableInformer, error) {
	return f.informerFor(resource, opts, newFunc, func(conflict *TransformConflictError) error { return conflict })
}

func (f *Factory) informerFor(resource schema.GroupVersionResource, opts InformerOptions, newFunc NewInformerFunc, settle func(*TransformConflictError) error) (StartableInformer, error) {
	a, err := askForShared(resource, opts, newFunc)
	if err != nil {
		return StartableInformer{}, err
	}
	a.settle = settle
	a.take = func(l *life) { l.pinned = true }
	l, i, err := f.answer(a)
	if err != nil {
		return StartableInformer{}, err
	}
	return StartableInformer{Informer: i.(cache.SharedIndexInformer), factory: f, life: l}, nil
}

// StartableInformer is an informer that can be started on its own.
type StartableInformer struct {
	// Informer is the informer.
	Informer cache.SharedIndexInformer

	factory *Factory
	life    *life
}

// Start starts the informer, and no other, until stopCh is closed; nil: until
// the factory is told to stop it, or shut down. It does nothing if the informer was
// started before, by whomever, or if the factory is shut down. A StartableInformer
// that is not a factory's has nothing to start.
func (s StartableInformer) Start(stopCh <-chan struct{}) {
	if s.factory != nil {
		_ = s.factory.startLife(s.life, channelScope(stopCh)) // why it is not started, the caller cannot be told
	}
}
