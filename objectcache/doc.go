// Package objectcache keeps whole objects that can be read, in a twentieth of the memory that they
// take decoded.
//
// A Store is a cache.Indexer: client-go's listers and whatever else takes one work over it. It
// keeps each object as bytes, in protobuf where its type has it, else in JSON, compressed against
// objects that are like it. Each reader gets a freshly decoded object, and may change it.
//
//	store := objectcache.NewStore(&corev1.Pod{}, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, objectcache.StoreOptions{})
//	err := store.Add(pod)
//	obj, exists, err := store.GetByKey("default/web-0")
//
// # When to use it
//
// Use it where memory counts, and objects are read less often than they change hands: most
// controllers read one object for each change. Memory, in live bytes of each object, with its key,
// version, labels and namespace index:
//
//	                         Store    after 10 updates    client-go
//	pod of 3.4 KB protobuf     433                 650       11,136
//	release of 2.1 KB JSON     373                 413        9,550
//
// Time, on a core that takes 10 µs for a DeepCopy of such a pod:
//
//	GetByKey, of an object read lately       11 µs
//	GetByKey, of another                     42 µs
//	List, for each object                    36 µs
//	a first list, read off the wire, each    11 µs
//
// client-go's store hands out its own objects, which no reader may change: a Get is a map lookup.
// So a program that lists all its objects again and again is better off with ListMatching or
// Select, which decide by namespace, labels and index values before anything is decoded; or with
// objects that are kept decoded.
//
// # Objects that are kept decoded
//
// With Options.Decoded, an Informer keeps its objects in client-go's own indexer, in the memory
// that they take there. A read is a lookup in a map, and returns the object itself. Readers and
// handlers share it, and must not change it. All else is the same Informer: how it follows its
// resource, what it calls handlers with, and that an object which a list shows unchanged is not
// decoded again. A Change has objects that Decode copies, and Shared returns as they are. There is
// no Store, and so no Select and no ListMatching: client-go's listers are for that.
//
// # Indexes
//
// The namespace index and labels are answered without decoding an object. Any other index function
// is called with the decoded object when it is written, which decodes each object off the wire
// once. The values are kept, so that no old object is decoded to undo them.
//
// # Restarts
//
// Options.Snapshot keeps the objects of an Informer across restarts, in a file for instance:
//
//	opts := objectcache.Options{Snapshot: informer.FileCheckpoint("/var/cache/pods")}
//
// The next process reads the file, serves reads, and watches on from where it was saved. With
// 100,000 pods, where 1 in 100 had changed meanwhile, they could be read after 0.16 s and were
// current after 0.30 s. The file took 35 MB.
//
// # What differs from client-go's store
//
// A float64 without a fraction in an unstructured object comes back as an int64, as it does from a
// server. Objects have to be pointers to structs of the API. Keys are always those of
// cache.MetaNamespaceKeyFunc. GetIndexers returns a copy.
//
// A typed object comes back with times in seconds. What protobuf has no place for is kept: an
// object with an empty list or map that is not nil, with a value in a field without a protobuf tag,
// or with the Object of a runtime.RawExtension, which comes back as its Raw, is kept as JSON, in more
// memory. So are all objects of types without protobuf. One with a value in a field that JSON leaves
// out (`json:"-"`) is refused.
//
// A typed object off the wire has no kind, whether it was listed or watched. An object of client-go
// that was listed in JSON has one if the server says it, until it changes. Reads into another type,
// such as unstructured, do have the kind.
package objectcache
