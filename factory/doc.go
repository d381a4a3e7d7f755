// Package factory shares informers.
//
// Several parts of a program that want the same informer ask a factory for it, and
// get the same one, with one watch. It is for programs that follow many resources in many
// ways, in one cluster or in hundreds: typed, dynamic, metadata-only and
// resource-version informers, with selectors or without, are all in one registry,
// and come and go while the program runs.
//
// # Which one do I want?
//
//   - [Factory.AcquireSharedResourceVersion]: an informer that keeps no objects, with any
//     number of handlers on one watch. It ends with its last lease.
//   - [Factory.Acquire]: a cache.SharedIndexInformer, with a store to ask. It ends with its
//     last lease, too.
//   - [Factory.ResourceVersionInformerFor] and [Factory.InformerFor]: the same without
//     leases. They run until their stop channel is closed, or the factory stops them.
//   - Package factory/typed: client-go's SharedInformerFactory over the same registry.
//
// # Words
//
// The key of an informer is its resource, its selectors, its namespace, its
// cluster, its variant and its type. A lease is one user's share of an informer. To stop an
// informer ends its goroutines. After it is forgotten, the next request for its key
// creates a new informer.
//
// # Leases
//
//	f := factory.New()
//	lease, err := f.Acquire(deployments, factory.InformerOptions{Cluster: "east"}, newFunc)
//	...
//	registration, err := lease.Informer.AddEventHandler(handler)
//	lease.Start()
//	...
//	lease.Informer.RemoveEventHandler(registration)
//	<-lease.Release() // the last one waits until the goroutines have ended
//
// Nothing here waits for a server: Acquire, Start, Stop and Release return at
// once, however dead it is. Where an end can be waited for, that is a channel.
//
// An informer runs once. Stop, StopCluster, the last Release and a closed stop channel
// end it for good, and the next request for its key gets another one, by its own
// newFunc. It may be asked for at once. What should survive, the Storage of a
// resource-version informer for instance, newFunc brings along, or returns the very
// informer again: resource-version informers of one key run one after the other.
//
// ResourceVersionInformerFor gives out informers that keep no objects and have any number
// of handlers, which all users add and remove as they like.
//
// A resource that the server does not have, or not any more, is no error: the informer
// asks again, after a minute at most, until the resource is there, and its Status says
// meanwhile that it is not found. When a custom resource definition is deleted, the
// handlers are told that its objects are, at once, or, if no watch was there to tell,
// when the resource is there again.
//
// # Istio's informerfactory
//
// The names and what they do are those of istio.io/istio/pkg/kube/informerfactory, and
// of the options in its kubetypes; an import changes. These differ:
//
//   - Cluster is part of the key, so that one factory is enough.
//   - Selectors are compared by what they say. One that does not parse is refused.
//   - newFunc is called with no lock held, and may ask the factory for others.
//   - An informer whose stop channel was closed is not given out again.
//   - Transforms are compared by InformerOptions.TransformName, since functions have
//     no identity that could be relied on: two closures of one place in the source
//     look alike. InformerFor returns the informer of the first, as ever;
//     TryInformerFor and Acquire return a *TransformConflictError.
//   - WaitForCacheSync does not poll. WaitForCacheSyncWithContext says which informers
//     have not synced, and why.
//   - Shutdown ends what has no stop channel, as informers of leases.
//   - A nil newFunc, and one that returns nil, panic at once and name the resource. A
//     zero StartableInformer starts nothing.
package factory
