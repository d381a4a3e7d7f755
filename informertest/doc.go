// Package informertest simulates a Kubernetes API server for tests and demonstrations.
//
// The words of this package:
//
//   - The sequence is the one row of resource versions that all writes of a [Server] share,
//     whatever their resource, as in etcd. A resource version is a number in decimal, or with
//     [Options].OpaqueVersions a text without order; the server's own is that of the newest write.
//   - The history is every state of every object since the last compaction. It is what a list at an
//     exact resource version, the later pages of a list and a watch from a resource version are
//     read from.
//   - A compaction forgets the history. It happens only when [Server.Compact] is called, or the
//     sequence set back or the server restored.
//
// The server speaks real HTTP, on a loopback port or over connections inside the process, with TLS
// also HTTP/2. What it says about resource versions is what a kube-apiserver says: lists in pages
// with continue tokens, exact and not-older-than reads, watches with bookmarks and timeouts,
// watch-lists, label and field selectors, metadata only, discovery. So any client works with it,
// through its [Server.Config]:
//
//	server := informertest.NewServer(informertest.Options{})
//	defer server.Close()
//	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
//	server.Create(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})
//	client, err := dynamic.NewForConfig(server.Config())
//
// It reads and writes JSON, and with clients that ask for it protobuf: of the kinds that
// client-go/kubernetes/scheme knows, and of the metadata of all, custom resources included. A list
// or object of more than 128 KiB (see [Options].GzipAbove) is compressed for clients that accept
// gzip, as Go's do on their own. With [Options].GzipWatches, watches are compressed too. Objects
// are stored as JSON, and nothing holds them against a schema; in protobuf an object of a built-in
// kind loses the fields that its Go type does not have, and one that does not fit the type at all
// makes the request fail with 500, a watch with an ERROR event.
//
// Left out is what an informer cannot see: authentication, admission, defaulting and validation
// beyond names, YAML and CBOR, protobuf and compression of discovery, weights in Accept headers
// (their alternatives are tried in the order written), tables, patches, subresources, finalizers,
// and that a namespace must exist.
//
// # The future
//
// A list, a get or a watch-list that asks for a resource version which the server has not reached
// waits for it, up to three seconds, and is then told that it is too large: with 504 and a
// Retry-After of one second, which client-go's REST client obeys ten times before its caller sees
// the error; a watch-list with an ERROR event. A watch from such a version is accepted and silent.
// It gets no event and no bookmark until the sequence has passed that version, and then what is
// newer than it: so does a kube-apiserver 1.36, and so a client of a server whose etcd was restored
// may wait for long. In a testing/synctest bubble, with [Options].InMemory, none of this waiting
// takes real time.
//
// # Faults
//
// [Server.Inject] makes things go wrong: a [Fault] says which requests it meets, how many of them,
// and what happens to them. It has a text form, of one line, for test scripts:
//
//	fault, err := informertest.ParseFault("list page=later 410 times=1")
//	heal := server.Inject(fault)
//	defer heal()
//
// Connections are refused, cut, given up by a GOAWAY or hang, bodies are broken off, slow or
// compressed wrongly, items take their time or are garbage, of another type or huge, answers are
// errors, watches lose their bookmarks or their order, a replica lags behind: the functions that
// return an [Effect] say how. Dice decide where a fault gives odds; they begin with [Options].Seed.
// Close is never held up by a fault, and the log of [Server.Requests] has the requests that faults
// answered.
//
// Some servers of today, as faults:
//
//	list page=first without=resourceVersion 429 retry-after=1
//	                          its watch cache is behind etcd, and lists have to wait for it
//	without=limit 429 retry-after=1
//	                          its watch cache is not ready: only pages are read from etcd
//	watch-list delay=5ms      a conversion webhook takes 8 minutes for 100,000 objects
//	with=shardSelector 422    it checks parameters, and does not know this one
//	goaway odds=50            it balances its connections: --goaway-chance=0.02, with Options.TLS
//
// Other things go wrong at once and for good: [Server.Compact], [Server.CloseClientConnections],
// [Server.SetResourceVersion], [Server.Backup] with [Server.Restore], [Server.RemoveResource].
// [Server.Observe] tells what really was written, so that what a client believes can be held
// against it.
//
// # Dialects
//
// Not every server behind the API is a kube-apiserver over etcd. [Options].Dialect has the answers of
// another one: lists, marks or objects without versions, watches that are refused or that replay all
// there is, no bookmarks. [OpenShiftProjects], [Antrea], [Porch] and others are ready. A [Fault] comes
// and goes, a dialect stays.
package informertest
