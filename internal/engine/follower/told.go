package follower

import (
	"hash/maphash"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/internal/engine/source"
)

// told identifies an event among those of its version, in 4 bytes, because each follower has one. The
// zero value is none.
type told uint32

var toldSeed = maphash.MakeSeed()

// event is what identifies an event of a version.
type event struct {
	kind watch.EventType
	key  string
}

func toldOf(c *source.Change) told {
	e := event{kind: c.Event}
	if !c.Outside { // else the key does not count
		e.key = c.Item.Key
	}
	return told(maphash.Comparable(toldSeed, e) | 1)
}

// note notes an event. A bookmark is none.
func (t *told) note(c *source.Change) {
	if c.Event != watch.Bookmark {
		*t = toldOf(c)
	}
}

// is reports whether an event of the same version is the one that was noted.
func (t *told) is(c *source.Change) bool { return *t == toldOf(c) }
