// Package recency says what is older than what is known already, so that nothing goes back in time.
// The delta queue and the object cache apply its rules to what they read.
package recency

import (
	"github.com/rvinformer/informer/internal/keytable"
	"github.com/rvinformer/informer/internal/rv"
)

// Stale reports whether a change that a watch told, to version v, is not newer than the known
// version of its key. A deletion may carry the version of the state that it ended.
func Stale(deletion bool, v, known keytable.Version) bool {
	switch order := rv.Compare(v.ResourceVersion, known.ResourceVersion); {
	case order == rv.Unordered: // opaque versions: only equality means something
		same := known.ResourceVersion == v.ResourceVersion && known.SameObject(v)
		return !deletion && same && known.ResourceVersion != ""
	case deletion:
		return order == rv.Older
	default:
		return order != rv.Newer
	}
}

// Ahead reports whether the known version of a key is newer than observed, the newest version that
// was taken in full. Then the server may have gone back, and has not told of the key since, unless
// a generation under way has.
func Ahead(known keytable.Version, observed string) bool {
	return rv.Compare(known.ResourceVersion, observed) == rv.Newer
}

// Older reports whether a is older than b. It is false if they have no order.
func Older(a, b keytable.Version) bool {
	return rv.Compare(a.ResourceVersion, b.ResourceVersion) == rv.Older
}
