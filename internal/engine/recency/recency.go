// Package recency has the rules for what is read from a server, so that nothing goes back in time
// and nothing that lives is deleted. The delta queue and the object cache apply them.
//
// These are its words:
//
//   - A generation is one reading of the complete set. It tells of the keys that it shows.
//   - A sweep deletes, at the end of a generation that was complete, what it did not tell of.
//   - What was taken in full, up to the newest version observed, was told in order and without loss.
//   - A change or an object is stale if it is not newer than what is known: see Stale, Older and
//     Tombstones.
//   - Coverage says whether a state has everything up to a version.
//   - Trust says whether equal versions are of equal states.
//
// A server that was restored from a backup goes on from an older version, and gives versions anew,
// also to other states of the same objects. A watch does not say so. What is known of a key may then
// be newer than all that the server tells, and Stale does not count that against a change. A list
// shows it, and Trust has that list read once more. The delta queue has no Trust: it does not have
// the objects that equal versions would be compared by.
package recency

import (
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// Stale reports whether a change that a watch told, to version v, is not newer than the known
// version of its key. A deletion may carry the version of the state that it ended.
//
// A known version that is newer than observed, the newest version that was taken in full, may be of
// the state before the server went back. It does not count, unless told reports that it was taken
// since. Told is called for such a version only.
func Stale(deletion bool, v, known keytable.Version, observed string, told func() bool) bool {
	if rv.Compare(known.ResourceVersion, observed) == rv.Newer && !told() {
		return false
	}
	switch order := rv.Compare(v.ResourceVersion, known.ResourceVersion); {
	case order == rv.Unordered: // opaque versions: only equality means something
		return !deletion && v.SameState(known)
	case deletion:
		return order == rv.Older
	default:
		return order != rv.Newer
	}
}

// Older reports whether a is older than b. It is false if they have no order.
func Older(a, b keytable.Version) bool {
	return rv.Compare(a.ResourceVersion, b.ResourceVersion) == rv.Older
}
