package audit

import (
	"hash/maphash"
	"strings"
	"sync"

	"github.com/rvinformer/informer/internal/rv"
)

// maxDeletions is how many deletions are remembered, in about 6 MiB at most. The server is asked
// for keys beyond that.
const maxDeletions = 1 << 15

// deletions remembers the deletions that an informer acknowledges while it is audited. It is safe
// for concurrent use.
type deletions struct {
	seed maphash.Seed

	mu       sync.Mutex
	versions map[uint64]string
}

func newDeletions() *deletions {
	return &deletions{seed: maphash.MakeSeed(), versions: map[uint64]string{}}
}

// add notes that a deletion was acknowledged, with the resource version that came with it.
func (d *deletions) add(key, resourceVersion string) {
	hash := maphash.String(d.seed, key)
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, again := d.versions[hash]; again || len(d.versions) < maxDeletions {
		d.versions[hash] = strings.Clone(resourceVersion)
	}
}

// after reports whether a deletion of key is known that is newer than a resource version.
func (d *deletions) after(key, resourceVersion string) bool {
	hash := maphash.String(d.seed, key)
	d.mu.Lock()
	defer d.mu.Unlock()
	return rv.Compare(d.versions[hash], resourceVersion) == rv.Newer
}
