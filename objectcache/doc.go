// Package objectcache keeps whole objects that can be read, encoded.
//
// A Store is a cache.Indexer: client-go's listers and whatever else takes one work over it. It keeps each object as bytes, in
// protobuf where its type has it, else in JSON, and decodes a fresh object for each reader. So a reader may change what it read.
//
//	store := objectcache.NewStore(&corev1.Pod{}, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, objectcache.StoreOptions{})
//	err := store.Add(pod)
//	obj, exists, err := store.GetByKey("default/web-0")
//
// Reading costs more than with client-go's store, which returns its own objects: an object is decoded, or copied if it
// was read by key before and is still hot. Select and ListMatching decide by namespace, labels and index values before
// anything is decoded; prefer them to a List that is filtered afterwards.
package objectcache
