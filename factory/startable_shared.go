package factory

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer"
)

// ResourceVersionInformerFor returns the shared resource-version informer of resource and
// opts: the one that there is, whoever asked for it first, or else a new one of config. Where
// the one that there is has been stopped, it is a new one. The InformerType of opts is
// SharedResourceVersionInformer, whatever it says.
//
// All users add their handlers to it, before or after it was started: there is one watch
// for all of them. Config is what it has in common, and so without handlers; that of a
// later request has no effect, but that its Shard tells informers apart as that of opts does. As of
// every informer of a factory, a selector or a namespace of opts is up to the ListerWatcher of
// config; its ObjectTransform is the Transform, unless config has one.
//
// If the informer that there is has another ObjectTransform, it is returned all the same.
// AcquireSharedResourceVersion has an error for it.
//
// It panics with a *RequestError, which names the resource, if config has no ListerWatcher,
// or has a handler, and if there can be no such informer (NewKey), and as
// informer.NewSharedResourceVersionInformer does if config cannot work.
func (f *Factory) ResourceVersionInformerFor(resource schema.GroupVersionResource, opts InformerOptions, config informer.InformerConfig) StartableResourceVersionInformer {
	a, err := askForSharedResourceVersion(resource, opts, config)
	if err != nil {
		panic(err)
	}
	a.take = func(l *life) { l.pinned = true }
	l, i, err := f.answer(a)
	if err != nil {
		panic(err)
	}
	return StartableResourceVersionInformer{Informer: i.(*informer.SharedResourceVersionInformer), factory: f, life: l}
}

// StartableResourceVersionInformer is an informer that can be started on its own.
type StartableResourceVersionInformer struct {
	// Informer is the informer.
	Informer *informer.SharedResourceVersionInformer

	factory *Factory
	life    *life
}

// Start starts the informer as StartableInformer.Start does.
func (s StartableResourceVersionInformer) Start(stopCh <-chan struct{}) {
	if s.factory != nil {
		_ = s.factory.startLife(s.life, channelScope(stopCh)) // as there
	}
}
