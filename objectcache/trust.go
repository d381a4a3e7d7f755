package objectcache

import (
	"errors"

	"github.com/rvinformer/informer/internal/rv"
)

// trust tells whether an object of a known version is the known object. A server that was restored
// from a backup gives its versions anew, also to other states of the same objects. So a list that
// shows a restored server is read once more, and what is kept is then compared with what was read.
type trust struct {
	// told is the resource version up to which the server had told everything when the list began,
	// empty if that is not certain.
	told string
	// restored tells that the list shows something that is not newer, and that the server has not
	// told of.
	restored bool
	// lost tells that versions say nothing, until a list was read to its end.
	lost bool
	// replaced is how often the follower has found another cluster.
	replaced int
}

var errRestored = errors.New("the list shows that the server was restored from a backup: it is read once more, because the same version may be of another state")

// begin begins a list.
func (t *trust) begin(told string, replaced int) {
	t.told, t.restored = told, false
	t.lost = t.lost || replaced != t.replaced
	t.replaced = replaced
}

// note notes an object of the list in a version that is not the known one.
func (t *trust) note(resourceVersion string) {
	t.restored = t.restored || rv.NotNewer(resourceVersion, t.told)
}

// end reports whether the list, which was read to its end, can be trusted. If not, it has to be
// read once more.
func (t *trust) end(resourceVersion string) bool {
	trusted := t.lost || !t.restored && rv.Compare(resourceVersion, t.told) != rv.Older
	t.lost = !trusted
	return trusted
}
