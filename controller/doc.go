// Package controller calls a Resource for what happens to Kubernetes objects: Upsert
// where one is there, Delete where it is gone, again where that failed. It is for
// programs that bring something else in line with a cluster, and for those that were
// written for the controller package of consul-k8s, whose names it has.
//
//	c := &controller.Controller{
//		Log:      slog.Default(), // or an hclog.Logger
//		Resource: controller.NewResource(informer, upsert, delete),
//	}
//	go c.Run(stop)
//
// # Which one do I want?
//
//   - [NewStorelessResource]: nothing is kept, a call that fails is tried again, and the
//     next process goes on from a Checkpoint. For large sets.
//   - [NewHandlerResource]: the same, over an informer that others use as well.
//   - [NewResource]: over a cache.SharedIndexInformer, with a store to ask.
//
// # Words
//
// A source says what happens: the SharedIndexInformer of a Resource, which has a store, or the
// ResourceVersionInformer of a StorelessResource or a HandlerResource, which has none. An item is a
// key for which something is to be done. An item is given up when it has failed too often.
//
// # With a store
//
// Events of the source put their key into a work queue, where a key is once, however many
// events it had. What is to be done is decided when its turn comes: Upsert with the object
// that the store has then, or Delete with the last state that was told, once for each time
// that the object was found to be gone. An object that came and went while its key waited
// is a Delete as well: an earlier process may have known the name. No item is touched
// before everything that the source has listed is in the store: Delete may trust that what
// it does not find there is gone.
//
// # Without a store
//
// A StorelessResource is for sets too large to be kept. Upsert is given the object of the
// event. What waits, waits in the informer: the newest state of each key, within its
// Budget. It is acknowledged when Upsert or Delete has returned nil, or was given up; only
// then do the informer's Storage and Checkpoint move, so that the next Run, or the next
// process, is told what this one did not get done. Upsert is called while the first list
// is read: there is nowhere to keep the objects until its end. Delete is called only for
// what the server has said to be deleted, or what a complete list did not show, and not
// before the first list was read to its end.
//
// # What is different from consul-k8s
//
// An item is a key there too, but with the object of the event: n events of an object are
// n calls, and an object that is added and deleted at once is deleted twice. A failure is
// forgotten when the object has changed since. Workers can be several. Run returns after
// what it started, takes its handler off a shared informer, and says why where it cannot
// run at all: see docs/coming-from-consul-k8s.md.
package controller
