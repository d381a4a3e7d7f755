// Package typed is client-go's informers.SharedInformerFactory over the registry of
// package factory: the accessors, listers and informers are client-go's, and existing
// code changes one import.
//
//	f := typed.NewSharedInformerFactoryWithOptions(client, 10*time.Minute,
//		typed.WithRESTConfig(config)) // without it, no memory is saved
//	pods := f.Core().V1().Pods()
//	pods.Informer().AddEventHandler(handler)
//	f.Start(stop)
//	f.WaitForCacheSync(stop)
//	pod, err := pods.Lister().Pods("default").Get("web")
//
// # Sharing
//
// With WithFactory, factories share informers among each other and with the users of
// that registry: requests for the same key (factory.Key) get the same informer, with
// one watch. Each factory has a share of it, with handlers and a context of its own.
// When the context of its Start ends, its handlers are removed, and the informer goes
// on for the others.
//
// In the key are the resource, the namespace of WithNamespace, the cluster of
// WithCluster and the selectors of WithTweakListOptions; a resync period that is not
// zero and a transform keep informers apart as well. The names of indexers, the store
// and the watch error handler are common to all users: AddIndexers refuses a name
// that another has used, and the newest watch error handler set before the start
// counts.
//
// # Tweaks
//
// A tweak is a function, whose effect cannot be read. So it is tried, when the
// factory is made, on several options, of lists and of watches: if it sets selectors,
// to all the same, and nothing else, these are in the key. Informers of a factory with
// WithFactory then send what the key says, and call the tweak no more, so that it is
// true for as long as it is shared. A tweak that does anything else, or not
// always the same, is called for each request, and its informers are not
// shared. Without WithFactory every tweak is called for each request, as client-go
// does.
//
// # Lists and watches
//
// With WithRESTConfig, each informer is an objectcache.Informer that keeps its objects decoded.
// Listers and handlers share these objects, as in client-go: nobody may change them. The informers
// follow their resources as all informers of this library do. They notice watches that hang and
// servers that were restored, read lists off the wire, object by object, and delete nothing that
// was not seen to be missing. See package objectcache for what handlers get.
//
// What an informer has already in the same version and with the same UID is not decoded again:
// the store keeps the very object. So a list after a lost watch takes next to no
// memory, and the first not much more than the objects. A list that shows that the
// server was restored from a backup is read once more, and compared with what the store has.
// Lists take turns in the informer.DefaultBudget, or in the Budget of WithObjectCache.
//
// An object that cannot be read is left out, reported, and read by the next list. What the store
// has in its place stays.
//
// A transform is called for each object that was decoded, in lists and watches, and never for one
// of the store. It must return a runtime.Object with metadata. Where it fails, the object is left
// out and reported. A resource version or UID that it takes away is put back.
//
// With WithInformerName, client-go publishes the resource version of the store. Its metrics of
// queues do not exist here.
//
// With WithClientLists, the same informers list and watch with the client, a fake one perhaps.
// Without both, and with a newFunc of the user's own, informers are client-go's.
//
// # Objects that are kept encoded
//
// With WithObjectCache the informers keep their objects encoded, in a twentieth of the memory.
// Client-go's listers work over them, and decode what they return. Its options also say how lists
// are read, and which fields are kept.
//
//	f := typed.New(nil, 0, typed.WithRESTConfig(config),
//		typed.WithObjectCache(objectcache.Options{Prune: []string{"metadata.managedFields"}}))
//
// # Differences from client-go
//
//   - An informer that was stopped is not given out again: the next request
//     gets a new one, which the next Start starts. Until then, its store, its
//     indexer and its listers answer from the objects that the stopped one had, and from what
//     is added to its store. Listers that were taken before the stop keep these.
//   - An informer stops a moment after its context has ended, and only when its
//     handlers have returned. A request before that gets the informer that is about to
//     stop, which Start does not start again, or keeps it running until Shutdown.
//   - newFunc is called with no lock held, and may ask the factory for others.
//   - Informers of unstructured objects, and of metadata, are told apart by their
//     kinds.
//   - Run of an informer is Start of it alone, so that two of them, or a Start
//     beside it, are no harm.
//   - Shutdown ends what was started with a nil channel.
//   - A nil client panics, with the name of the resource, when an informer needs
//     it.
//   - SetTransform of an informer that may be shared is an error: WithTransform.
//
// The accessors of groups that client-go has added after 0.36, as Lifecycle of 0.37, have client-go's
// informers, which need the client and are not shared. ForResource has those of this package.
package typed
