package deltaqueue

import "k8s.io/apimachinery/pkg/util/resourceversion"

// keptTombstones is how many deletions a queue remembers: some 10 KiB where objects come and
// go, nothing where they stay.
const keptTombstones = 128

// tombstones are the newest deletions that the watch under way told, with their versions: an
// event that a proxy repeats after the deletion of its object has nothing else to be
// compared with, and would bring the object back.
type tombstones struct {
	versions map[string]string
	// keys are in the order in which they were deleted, in a ring that begins at next once
	// it is full.
	keys []string
	next int
}

// add remembers that key was deleted in version.
func (t *tombstones) add(key, version string) {
	if version == "" {
		return
	}
	if _, ok := t.versions[key]; ok { // it keeps its place
		t.versions[key] = version
		return
	}
	if t.versions == nil {
		t.versions = map[string]string{}
	}
	t.versions[key] = version
	if len(t.keys) < keptTombstones {
		t.keys = append(t.keys, key)
		return
	}
	delete(t.versions, t.keys[t.next])
	t.keys[t.next] = key
	t.next = (t.next + 1) % keptTombstones
}

// covers reports whether key was deleted in version, or in a newer one.
func (t *tombstones) covers(key, version string) bool {
	deleted, ok := t.versions[key]
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, deleted)
	return err == nil && order <= 0 || version == deleted
}

// clear forgets all: a generation begins, which shows what there is.
func (t *tombstones) clear() { *t = tombstones{} }
