package typed

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/factory"
)

// ErrNoInformer is within the error of ForResource for a resource that is not one of
// those that client-go has types of.
var ErrNoInformer = errors.New("no informer found")

// ForResource returns the informer of a built-in resource, the one that the typed
// accessors have, and a lister of any objects. The error, by errors.Is ErrNoInformer,
// names the resource: those of custom resource definitions are InformerFor's, or those
// of factory.Factory.
func (f *Factory) ForResource(resource schema.GroupVersionResource) (GenericInformer, error) {
	example, err := builtIn(resource)
	if err != nil {
		return nil, err
	}
	return genericInformer{informer: f.informerOf(f.accessed(example, f.generated(resource))), resource: resource.GroupResource()}, nil
}

// builtIn returns an example of a resource that client-go has informers of.
func builtIn(resource schema.GroupVersionResource) (runtime.Object, error) {
	example := exampleOf(resource)
	if example != nil {
		// The scheme has kinds as well that cannot be listed.
		if _, err := informers.NewSharedInformerFactory(nil, 0).ForResource(resource); err == nil {
			return example, nil
		}
	}
	return nil, fmt.Errorf("%w for %v", ErrNoInformer, resource)
}

// generated makes the informers of a resource that client-go makes.
func (f *Factory) generated(resource schema.GroupVersionResource) func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
	return func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		generic, err := informers.NewSharedInformerFactoryWithOptions(client, resync, informers.WithNamespace(f.namespace),
			informers.WithTweakListOptions(f.requests), informers.WithInformerName(f.informerName)).ForResource(resource)
		if err != nil {
			return nil // not possible: builtIn has asked
		}
		return generic.Informer()
	}
}

// genericInformer is a GenericInformer.
type genericInformer struct {
	informer cache.SharedIndexInformer
	resource schema.GroupResource
}

func (g genericInformer) Informer() cache.SharedIndexInformer { return g.informer }

func (g genericInformer) Lister() cache.GenericLister {
	return cache.NewGenericLister(g.informer.GetIndexer(), g.resource)
}

// KeyFor returns the key under which the registry has the informer that ForResource
// returns: for the Status, StartOne and Stop of factory.Factory. Before it was asked for, it
// cannot be known whether it has to be another variant, since the registry has it with
// another transform. The error is that of ForResource, or says that a selector does not parse.
func (f *Factory) KeyFor(resource schema.GroupVersionResource) (factory.Key, error) {
	example, err := builtIn(resource)
	if err != nil {
		return factory.Key{}, err
	}
	a := f.firstFor(f.accessed(example, f.generated(resource)))
	return factory.NewKey(a.resource, a.opts)
}

// Acquire returns a lease of the informer that ForResource returns, for users that come and
// go while the factory stays: it is started by its own Start, or by any other, and
// runs until the last lease is released, the factory's included, which it has from
// ForResource until the context of its Start ends. The error is that of ForResource,
// or that of factory.Factory.Acquire.
func (f *Factory) Acquire(resource schema.GroupVersionResource) (*factory.Lease[cache.SharedIndexInformer], error) {
	example, err := builtIn(resource)
	if err != nil {
		return nil, err
	}
	return f.acquire(f.firstFor(f.accessed(example, f.generated(resource))))
}
