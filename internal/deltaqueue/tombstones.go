package deltaqueue

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/internal/keytable"
	"github.com/rvinformer/informer/internal/rv"
)

// keptTombstones is how many deletions a queue remembers: some 10 KiB where objects come and
// go, nothing where they stay.
const keptTombstones = 128

// tombstones are the objects whose deletion was put last, and the versions of that. An
// event that a proxy repeats after the deletion of its object has nothing else to be
// compared with, and would bring the object back.
type tombstones struct {
	versions map[types.UID]string
	// order is that of the deletions, in a ring that begins at next once it is full.
	order []types.UID
	next  int
}

// add remembers that an object was deleted.
func (t *tombstones) add(last keytable.Version) {
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

// covers reports whether an object is of before its deletion: whether it was deleted, and
// its version does not say that it is newer than that.
func (t *tombstones) covers(v keytable.Version) bool {
	deleted, ok := t.versions[v.UID]
	if !ok {
		return false
	}
	return rv.Compare(v.ResourceVersion, deleted) != rv.Newer
}

// clear forgets all: a generation begins, which shows what there is.
func (t *tombstones) clear() { *t = tombstones{} }
