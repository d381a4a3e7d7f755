package informertest

// Dialect says what a server does otherwise than a kube-apiserver over etcd in its answers to lists
// and watches. The zero value does all as that does.
//
// Aggregated API servers, servers over another store than etcd, and proxies have dialects. The
// functions that return a Dialect are such servers, each with the public threads that describe it.
// [Dialects] yields them all.
//
// A dialect holds for all resources of a [Server] but namespaces: an aggregated server stands
// behind a kube-apiserver, which answers for those itself. What the methods of Server return stays
// as it is.
type Dialect struct {
	// Lists says which version a list has. A server that makes it up, or has none, reads lists from
	// now and whole, whatever version and limit the request names.
	Lists VersionRule
	// Marks says which version the marked bookmark at the end of a watch-list has.
	Marks VersionRule
	// Bookmarks says which version any other bookmark has.
	Bookmarks VersionRule
	// NoBookmarks sends no bookmarks but the marked ones.
	NoBookmarks bool
	// NoObjectVersions leaves the version out of every object, in lists, events and answers to get.
	NoObjectVersions bool
	// NoUIDs leaves the UID out of every object.
	NoUIDs bool

	// WatchLists says how a watch that asks for initial events is answered.
	WatchLists WatchListRule
	// Resume says how a watch from a resource version is answered.
	Resume ResumeRule
	// OwnStore is that the server has an etcd of its own: [Server.Restore] and
	// [Server.SetResourceVersion] take it back, and not the kube-apiserver in front, which has all
	// versions of namespaces that it had. A watch from a version that the server does not have any more
	// gets bookmarks with the version that it has, where a kube-apiserver is silent.
	OwnStore bool
	// RefuseWatches is the status with which each watch is refused, such as 405; 0 for none. With
	// 405, discovery does not name the verb.
	RefuseWatches int

	// BareDeletions leaves all but kind, namespace and name out of the object of a DELETED event.
	BareDeletions bool
	// TwinKeys shows each second object twice in a list, the second time under another UID and an
	// older version. Each list has the two in the other order than the list before.
	TwinKeys bool
	// IgnoreSelectors shows all objects of a namespace, whatever the selectors of a request.
	IgnoreSelectors bool
	// SortedKeys writes the keys of all JSON objects in their order, as who decodes them to maps and
	// encodes them again. The kind of a list then comes after its items. Objects are never sent in
	// protobuf.
	SortedKeys bool
	// NoContentType leaves the header of that name out of the answers to lists, gets and watches.
	// Objects are never sent in protobuf.
	NoContentType bool
}

// VersionRule says which resource version a server gives to a list or a bookmark.
type VersionRule int

const (
	// VersionOfStore is the version of the state that is shown, as from a kube-apiserver.
	VersionOfStore VersionRule = iota
	// VersionLeftOut is none.
	VersionLeftOut
	// VersionZero is "0".
	VersionZero
	// VersionOfItems is the newest version of the objects in the list, or of those that the watch
	// has sent, and "0" without any.
	VersionOfItems
	// VersionCounted is the number of writes to the resource: it has nothing in common with the
	// versions of objects.
	VersionCounted
)

// WatchListRule says how a server answers a watch that asks for initial events.
type WatchListRule int

const (
	// WatchListSent sends the initial events and a marked bookmark, as a kube-apiserver.
	WatchListSent WatchListRule = iota
	// WatchListIgnored does not know the parameter: the watch is as one without it, and no bookmark
	// is marked.
	WatchListIgnored
	// WatchListEmpty sends a marked bookmark at once, without initial events.
	WatchListEmpty
	// WatchListRefused answers 400.
	WatchListRefused
)

// ResumeRule says how a server answers a watch from a resource version.
type ResumeRule int

const (
	// ResumeFromHistory sends what was written since, as a kube-apiserver.
	ResumeFromHistory ResumeRule = iota
	// ResumeReplays sends every object that there is as ADDED, and no deletion.
	ResumeReplays
	// ResumeFromNow sends what is written from now on. So does a watch without a version.
	ResumeFromNow
	// ResumeExpired ends the watch with 410.
	ResumeExpired
)
