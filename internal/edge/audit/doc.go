// Package audit compares what an informer has acknowledged with what its server has, while both
// change.
//
// An audit is one pass over a list of the server's metadata at one version, L. Each key is looked
// at as its page arrives. What is equal, or newer than L, is right. The rest are suspects: the
// informer may not have come to L yet. So the audit waits until the informer has acknowledged L,
// and looks at the suspects again. These are the rules then, for an object that the list shows in
// version V and that the informer has in version W:
//
//   - W is V, of the same object, or W is newer than L: right.
//   - W is not newer than L: stale. The informer has taken everything up to L, and not this.
//   - The informer has no such key: right if it has acknowledged a deletion newer than L. If that
//     is not known, the server is asked for the key. It is missing if the server still has it in
//     version V. When so many are missing that the others are only counted, the server is not asked
//     for those that the informer has deleted none of.
//   - The informer has a key that the list does not show, in a version that is not newer than L:
//     superfluous.
//
// An informer whose server sends no bookmarks cannot say that it has acknowledged L while nothing
// changes. After listPatience, a second list is read then. What both lists show alike, and the informer
// has otherwise, differs.
//
// Nothing is kept of an object that is right but the hash of its key, so that an audit takes about
// ten bytes for each. A difference beyond the first 100 takes 16 more.
package audit
