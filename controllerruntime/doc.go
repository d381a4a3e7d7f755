// Package controllerruntime is a cache for controller-runtime that keeps its objects encoded, in a
// fraction of the memory.
//
//	mgr, err := ctrl.NewManager(config, manager.Options{NewCache: controllerruntime.NewCache})
//
// Everything else of an operator stays as it is. Each kind is read with an [objectcache.Informer]:
// lists come off the wire object by object, and an object that has not changed is not decoded
// again.
//
// # Reads
//
// Get and List select by key, namespace, labels and indexed fields before they decode, and decode
// straight into what the caller passes, with its GroupVersionKind. Each caller has an object of its
// own. With UnsafeDisableDeepCopy, readers share the object that the store keeps for fast reads,
// and must not change it. With Decoded of objectcache.Options, all objects are kept decoded, and a
// read copies.
//
// # Options
//
// All of cache.Options works as in controller-runtime, or is refused by NewCache with an error that
// names the field:
//
//   - HTTPClient: lists and watches use its Transport and its Timeout. One with a Jar or a
//     CheckRedirect is refused.
//   - NewInformer: the informers keep what they keep, so the cache is controller-runtime's own,
//     cache.New. Together with options of this package it is refused.
//   - EnableWatchBookmarks: without bookmarks there are no watch-lists either, so lists are read in
//     pages.
//   - Transform: each object is decoded, transformed and encoded again. To drop fields, Prune and
//     Keep of Options.Objects cost less.
//   - ByObject: two entries of the same GroupVersionKind are refused.
//
// # Differences from controller-runtime
//
//   - Objects read with UnsafeDisableDeepCopy have their GroupVersionKind too.
//   - A wait for an informer that is removed meanwhile fails at once.
package controllerruntime
