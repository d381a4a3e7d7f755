package informer

import (
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/rvinformer/informer/internal/checkpoint"
	"github.com/rvinformer/informer/internal/keytable"
	"github.com/rvinformer/informer/internal/rv"
)

// writeCheckpoint writes what WriteTo does, and metadata before it. Begun are keys that the
// handler may have begun to take in. They are written without a version: their deletion is
// then delivered.
func (c *ResourceVersionStorage) writeCheckpoint(cw *checkpoint.Writer, metadata map[string]string, begun []string) error {
	edits := c.editCount()
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		if err := cw.Metadata(name, metadata[name]); err != nil {
			return err
		}
	}
	for _, key := range begun {
		if err := cw.Entry(key, &keytable.Binary{}); err != nil {
			return err
		}
	}
	// They come later, and so count, where a key has come to be known meanwhile.
	if err := c.writeEntries(cw); err != nil {
		return err
	}
	if c.editCount() != edits { // it has entries of which no watch from the version tells
		if err := cw.Metadata(checkpoint.MetadataResourceVersion, ""); err != nil {
			return err
		}
	}
	return cw.Close()
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

// allUnsettled are all unsettled keys.
func (c *ResourceVersionStorage) allUnsettled() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Collect(maps.Keys(c.unsettled))
}

// savedState is what a checkpoint and its journal say.
type savedState struct {
	table    *keytable.Table
	metadata map[string]string
	// begun are the keys that the handler may have begun to take in since.
	begun map[string]uint64
	// journal is how much of the checkpoint is a journal, and whole the size of all.
	journal, whole int64
	// appendable tells that a journal can go on where this one ends. Torn is why one cannot, nil
	// also for a checkpoint without a journal.
	appendable bool
	torn       error
}

// readState reads a checkpoint that nothing follows.
func (c *ResourceVersionStorage) readState(r io.Reader) (s savedState, err error) {
	cr := checkpoint.NewReader(r)
	if s.table, err = c.read(cr); err != nil {
		return s, err
	}
	size := cr.Read()
	if err := s.replay(cr); err != nil {
		return s, err
	}
	s.whole, s.journal = cr.Whole(), cr.Whole()-size
	s.torn = cr.Torn()
	s.appendable = cr.Journaled() && s.torn == nil
	return s, nil
}

// replay applies the journal behind a checkpoint to what the checkpoint says.
func (s *savedState) replay(r *checkpoint.Reader) error {
	s.metadata = r.Metadata()
	for {
		record, key, version, err := r.NextRecord()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch record {
		case checkpoint.Acknowledged:
			s.table.SetBinary(key, version, 0)
			delete(s.begun, key)
		case checkpoint.Gone:
			s.table.Delete(key)
			delete(s.begun, key)
		case checkpoint.Begun:
			if s.begun == nil {
				s.begun = map[string]uint64{}
			}
			s.begun[strings.Clone(key)] = 0
		case checkpoint.Resume:
			s.metadata[checkpoint.MetadataResourceVersion] = strings.Clone(version.Version().ResourceVersion)
		}
	}
}

// includes reports whether the storage can be what an informer had made of a checkpoint
// later: whether it has all of its entries, in the same version or a newer one, and besides
// only what is newer than the resource version of the checkpoint. What is older, and not in
// the checkpoint, was deleted before: it has come back with a backup.
func (c *ResourceVersionStorage) includes(s savedState) bool {
	shared, resume := 0, s.metadata[checkpoint.MetadataResourceVersion] // of what is not newer than resume
	for key, saved := range s.table.All() {
		version, exists := c.version(key)
		if !exists || !notOlder(version, saved) {
			return false
		}
		if rv.Compare(version.ResourceVersion, resume) != rv.Newer {
			shared++
		}
	}
	return shared == c.countOld(resume)
}

// countOld is the number of keys that are not newer than a resource version.
func (c *ResourceVersionStorage) countOld(resourceVersion string) (n int) {
	for _, version := range c.All() {
		if rv.Compare(version, resourceVersion) != rv.Newer {
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
	return rv.Compare(v.ResourceVersion, saved.ResourceVersion) == rv.Newer
}
