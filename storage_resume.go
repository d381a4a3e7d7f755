package informer

import (
	"io"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/rvinformer/informer/internal/checkpoint"
	"github.com/rvinformer/informer/internal/keytable"
)

// writeCheckpoint writes what WriteTo does, and metadata before it. A key that the
// handler may have begun to take in, and that is not known, is written without a
// version: what becomes of it is then told.
func (c *ResourceVersionStorage) writeCheckpoint(w io.Writer, metadata map[string]string) error {
	edits := c.editCount()
	cw := checkpoint.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		if err := cw.Metadata(name, metadata[name]); err != nil {
			return checkpointError(err)
		}
	}
	for _, key := range c.unsettledKeys() {
		if err := cw.Entry(key, &keytable.Binary{}); err != nil {
			return checkpointError(err)
		}
	}
	// They come later, and so count, where a key has come to be known meanwhile.
	if err := c.writeEntries(cw); err != nil {
		return checkpointError(err)
	}
	if c.editCount() != edits { // it has entries of which no watch from the version tells
		if err := cw.Metadata(metadataResourceVersion, ""); err != nil {
			return checkpointError(err)
		}
	}
	return checkpointError(cw.Close())
}

// unsettledKeys are the unsettled keys that the table does not have.
func (c *ResourceVersionStorage) unsettledKeys() (keys []string) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for key := range c.unsettled {
		if !c.reading().Compare(key, keytable.Version{}).Known {
			keys = append(keys, key)
		}
	}
	return keys
}

// readTable reads a checkpoint into a table for adopt, and its metadata.
func (c *ResourceVersionStorage) readTable(r io.Reader) (*keytable.Table, map[string]string, error) {
	cr := checkpoint.NewReader(r)
	table, err := c.read(cr)
	if err != nil {
		return nil, nil, err
	}
	return table, cr.Metadata(), nil
}

// includes reads a checkpoint and reports whether the storage can be what an
// informer had made of it later: whether it has all of its entries, in the same
// version or a newer one, and besides only what is newer than the resource version of
// the checkpoint. What is older, and not in the checkpoint, was deleted before: it has
// come back with a backup.
func (c *ResourceVersionStorage) includes(r io.Reader) (metadata map[string]string, all bool, err error) {
	cr := checkpoint.NewReader(r)
	shared, resume := 0, "" // of what is not newer than resume
	for all = true; ; {
		key, saved, err := cr.Next()
		switch {
		case err == io.EOF:
			metadata = cr.Metadata()
			all = all && resume == metadata[metadataResourceVersion]
			return metadata, all && shared == c.countOld(resume), nil
		case err != nil:
			return nil, false, checkpointError(err)
		}
		resume = cr.Metadata()[metadataResourceVersion]
		version, exists := c.version(key)
		all = all && exists && notOlder(version, saved.Version())
		if !newerThan(version.ResourceVersion, resume) {
			shared++
		}
	}
}

// countOld is the number of keys that are not newer than a resource version.
func (c *ResourceVersionStorage) countOld(resourceVersion string) (n int) {
	for _, version := range c.All() {
		if !newerThan(version, resourceVersion) {
			n++
		}
	}
	return n
}

// notOlder reports whether v is saved, or surely newer.
func notOlder(v, saved keytable.Version) bool {
	if saved.ResourceVersion == "" {
		return false
	}
	if v.ResourceVersion == saved.ResourceVersion {
		return v.SameObject(saved)
	}
	return newerThan(v.ResourceVersion, saved.ResourceVersion)
}

// newerThan reports whether a is surely newer than b.
func newerThan(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}
