package recency

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// keptTombstones is how many deletions are remembered: some 10 KiB where objects come and
// go, nothing where they stay.
const keptTombstones = 128

// Tombstones remembers the objects that were deleted last, and the versions of their deletion. An
// event that a proxy repeats after the deletion of its object has nothing else to be compared with,
// and would bring the object back. The zero value remembers none.
type Tombstones struct {
	versions map[types.UID]string
	// order is that of the deletions, in a ring that begins at next once it is full.
	order []types.UID
	next  int
}

// Add remembers that an object was deleted. It keeps copies of the strings.
func (t *Tombstones) Add(last keytable.Version) {
	if last.UID == "" {
		return
	}
	uid := types.UID(strings.Clone(string(last.UID)))
	_, again := t.versions[uid]
	if t.versions == nil {
		t.versions = map[types.UID]string{}
	}
	t.versions[uid] = strings.Clone(last.ResourceVersion)
	switch {
	case again: // which no server does; it keeps its place
	case len(t.order) < keptTombstones:
		t.order = append(t.order, uid)
	default:
		delete(t.versions, t.order[t.next])
		t.order[t.next] = uid
		t.next = (t.next + 1) % keptTombstones
	}
}

// Covers reports whether an object was deleted, and its version does not say that it is newer than
// the deletion.
func (t *Tombstones) Covers(v keytable.Version) bool {
	deleted, ok := t.versions[v.UID]
	if !ok {
		return false
	}
	return rv.Compare(v.ResourceVersion, deleted) != rv.Newer
}

// Clear forgets all: a generation begins, which shows what there is.
func (t *Tombstones) Clear() { *t = Tombstones{} }
