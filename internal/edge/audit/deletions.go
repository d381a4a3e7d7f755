package audit

import (
	"hash/maphash"
	"strings"
	"sync"

	"github.com/rvinformer/informer/internal/leaf/rv"
)

// maxDeletions is how many deletions are remembered, in about 6 MiB at most. Beyond that, any key may
// be deleted.
const maxDeletions = 1 << 15

// deletions remembers the deletions that an informer acknowledges while it is audited. It is safe
// for concurrent use.
type deletions struct {
	seed maphash.Seed

	mu       sync.Mutex
	versions map[uint64]string
	// others tells that there were deletions that are not remembered.
	others bool
}

func newDeletions() *deletions {
	return &deletions{seed: maphash.MakeSeed(), versions: map[uint64]string{}}
}

// add notes a deletion, with the resource version that came with it. An empty key is any.
func (d *deletions) add(key, resourceVersion string) {
	hash := maphash.String(d.seed, key)
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, again := d.versions[hash]; key != "" && (again || len(d.versions) < maxDeletions) {
		d.versions[hash] = strings.Clone(resourceVersion)
	} else {
		d.others = true
	}
}

// may reports whether key may have been deleted.
func (d *deletions) may(key string) bool {
	hash := maphash.String(d.seed, key)
	d.mu.Lock()
	defer d.mu.Unlock()
	_, was := d.versions[hash]
	return was || d.others
}

// after reports whether a deletion of key is known that is newer than a resource version.
func (d *deletions) after(key, resourceVersion string) bool {
	hash := maphash.String(d.seed, key)
	d.mu.Lock()
	defer d.mu.Unlock()
	return rv.Compare(d.versions[hash], resourceVersion) == rv.Newer
}
