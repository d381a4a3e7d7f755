package main

// Notes on the tables.
var (
	storageNotes = quoted(`
Of the storages, 'ours-storage' is a 'ResourceVersionStorage': keys, resource versions
and UIDs. The maps hold keys and resource versions, with the 'sync.RWMutex' that a
shared map needs; ours locks inside. 'client-go-store' is a 'ThreadSafeStore' with no
index, of the least that an informer of client-go could store: of each object a
'*metav1.PartialObjectMetadata' with namespace, name, UID and resource version. All
are given such objects, and make the keys themselves.

"Live" is what the garbage collector leaves, once filled, and again once each object
was updated, deleted and added; "peak" is by how much the resident memory grew at
most; "collection" is a 'runtime.GC()' beside the filled store. It is filled in the
order of a list, and read and written in random order. An absent key differs from one
that is there in its last letter. A full pass reads each version, and one with keys
also a letter of each key: a map need not look at its keys in the first. Ours is 'Lend' in
both, which makes both strings each time. Ours keeps no
strings: 'GetByKey', 'All' and 'ListKeys' make new ones. In brackets: × 'map-uint64'.
Keys of pods are 'namespace/deployment-hash-xxxxx', ten to a hash; random ones share
their namespaces and nothing else.
`)
	restartNotes = quoted(`
A restart is in a new process, without what an earlier one knew, or with it: '-relist'
has a 'Storage' that 'ReadFrom' fills from a checkpoint, which the earlier process left
with 'WriteTo' before some pods changed; the time that this takes is counted. '-resume'
has the 'Checkpoint' that the earlier process kept, and watches on. client-go cannot be
told what was known. All others read watch-lists. The bytes received are counted
at the sockets.
`)
)
