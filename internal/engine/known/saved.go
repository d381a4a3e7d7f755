package known

import (
	"io"
	"iter"
	"strings"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// Saved is what a checkpoint and its journal say.
type Saved struct {
	// Metadata says what the checkpoint is of, and its resource version.
	Metadata map[string]string
	// Journal is how much of the checkpoint is a journal, and Base the size of the rest.
	Journal, Base int64
	// Appendable tells that a journal can go on where this one ends. Torn is why one cannot, nil
	// also for a checkpoint without a journal.
	Appendable bool
	Torn       error

	table *keytable.Table
	// begun are the keys that the handler may have begun to take in since.
	begun *unsettled
}

// ReadSaved reads a checkpoint that nothing follows, for Adopt.
func (v *Versions) ReadSaved(r io.Reader) (s Saved, err error) {
	cr := checkpoint.NewReader(r)
	if s.table, err = v.readTable(cr); err != nil {
		return s, err
	}
	size := cr.Read()
	if err := s.replay(cr); err != nil {
		return s, err
	}
	s.Base, s.Journal = size, cr.Whole()-size
	s.Torn = cr.Torn()
	s.Appendable = cr.Journaled() && s.Torn == nil
	return s, nil
}

// replay applies the journal behind a checkpoint to what the checkpoint says.
func (s *Saved) replay(r *checkpoint.Reader) error {
	s.Metadata = r.Metadata()
	for {
		record, key, version, err := r.NextRecord()
		if err == io.EOF {
			s.endLetters()
			return nil
		}
		if err != nil {
			return err
		}
		switch record {
		case checkpoint.Acknowledged:
			s.table.SetBinary(key, version, 0)
			s.begun.remove(key)
		case checkpoint.Gone:
			s.table.Delete(key)
			s.begun.remove(key)
		case checkpoint.Begun:
			s.doubt(strings.Clone(key))
		case checkpoint.Dead:
			letter, err := r.DeadLetter(key, version)
			if err != nil {
				return err
			}
			s.begun = s.begun.set(letter.Key, doubt{letter: &letter})
		case checkpoint.Resume:
			v := version.Version()
			s.Metadata[checkpoint.MetadataResourceVersion] = strings.Clone(v.ResourceVersion)
			s.Metadata[checkpoint.MetadataRedelivery] = strings.Clone(string(v.UID))
			if key != "" {
				s.Metadata[checkpoint.MetadataWriter] = strings.Clone(key)
			}
		}
	}
}

// endLetters leaves out the dead letters whose change the handler has taken in while they were saved.
// The states that the other letters stand for are not handed over again.
func (s *Saved) endLetters() {
	for letter := range s.begun.letters() {
		if known, exists := s.table.Get(letter.Key); exists && isTaken(letter, known) {
			s.begun.remove(letter.Key)
			continue
		}
		s.begun.doubts[letter.Key] = doubt{letter: letter, refused: letter.Newest}
	}
}

// isTaken reports whether a handler that knows a version of an object has taken in the change of a
// dead letter.
func isTaken(letter *api.DeadLetter, known keytable.Version) bool {
	return letter.Type != api.Deleted && notOlder(known, keytable.Version{ResourceVersion: letter.ResourceVersion, UID: letter.UID})
}

// Len is the number of keys.
func (s *Saved) Len() int { return s.table.Len() }

// Begun yields the keys that the handler may have begun to take in.
func (s *Saved) Begun() iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range s.begun.all() {
			if !yield(key) {
				return
			}
		}
	}
}

// Lookup returns the version of a key, and whether there is one. Of a key that the handler may have
// begun to take in, and of one with a dead letter, no more than the UID is known.
func (s *Saved) Lookup(key string) (v keytable.Version, isKnown bool) {
	v, isKnown = s.table.Get(key)
	d, doubtful := s.begun.of(key)
	switch {
	case !doubtful:
		return v, isKnown
	case d.letter != nil && d.letter.UID != "":
		v.UID = d.letter.UID
	}
	v.ResourceVersion = ""
	return v, true
}

// IsDead reports whether a key has a dead letter.
func (s *Saved) IsDead(key string) bool { return s.begun.letterOf(key) != nil }

// HasDeadLetters reports whether there are dead letters.
func (s *Saved) HasDeadLetters() bool { return s.begun.deadCount() > 0 }

// Sample returns some objects of the checkpoint, as Versions.Sample does.
func (s *Saved) Sample() []object.Known { return Oldest(s.begun.witnesses(someOf(s.table))) }

// Adopt makes what was read the known versions. It is an edit.
func (v *Versions) Adopt(s Saved) {
	table := s.table
	v.mu.Lock()
	defer v.mu.Unlock()
	for table.Generation() < v.reading().Generation() { // others began meanwhile
		table.Begin()
	}
	v.edits++
	v.changes.Add(1)
	v.table, v.unsettled, v.shard = table, s.begun, shardOf(s.Metadata)
}

// AdoptBeside is Adopt for an informer of a shard, and forgets no key of it. A key that the checkpoint
// lacks stays, and counts as unsettled. The unsettled keys stay unsettled.
func (v *Versions) AdoptBeside(s Saved, shard api.Shard) {
	missing, unsettled := v.missing(s)
	v.Adopt(s)
	v.Confine(shard) // first: the keys without a version may be of another shard, and these are not
	for _, key := range missing {
		v.Settle(key, false)
	}
	for _, key := range unsettled {
		if _, exists := v.Get(key); exists {
			v.Settle(key, false)
		}
	}
}

// missing returns the keys that a checkpoint lacks, and those of Unsettled that it has.
func (v *Versions) missing(s Saved) (missing, unsettled []string) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	lacks := func(key string) bool { return !s.table.Compare(key, keytable.Version{}).Known }
	for key := range v.reading().All() {
		if lacks(key) {
			missing = append(missing, strings.Clone(key))
		}
	}
	for key := range v.unsettled.all() {
		if lacks(key) {
			missing = append(missing, key)
		} else {
			unsettled = append(unsettled, key)
		}
	}
	return missing, unsettled
}

func (s *Saved) doubt(key string) {
	if _, begun := s.begun.of(key); !begun {
		s.begun = s.begun.set(key, doubt{})
	}
}

// AdoptDeadLetters makes the dead letters of a checkpoint the informer's, beside versions that are
// not those of the checkpoint: a watch from its resource version does not tell of them again. Those
// are left out whose change the handler has taken in, as the versions say.
func (v *Versions) AdoptDeadLetters(s Saved) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for letter := range s.begun.letters() {
		if known, exists := v.reading().Get(letter.Key); !exists || !isTaken(letter, known) {
			d, _ := s.begun.of(letter.Key)
			d.shown = v.reading().Generation()
			v.unsettled = v.unsettled.set(letter.Key, d)
		}
	}
}

// Includes reports whether the versions can be what an informer had made of a checkpoint
// later: whether it has all of its entries, in the same version or a newer one, and besides
// only what is newer than the resource version of the checkpoint. What is older, and not in
// the checkpoint, was deleted before: it has come back with a backup.
func (v *Versions) Includes(s Saved) bool {
	shared, resume := 0, s.Metadata[checkpoint.MetadataResourceVersion] // of versions that are not newer than resume
	for key, saved := range s.table.All() {
		version, exists := v.Get(key)
		if !exists || !notOlder(version, saved) {
			return false
		}
		if rv.Compare(version.ResourceVersion, resume) != rv.Newer {
			shared++
		}
	}
	return shared == v.countOld(resume)
}

// countOld is the number of keys that are not newer than a resource version.
func (v *Versions) countOld(resourceVersion string) (n int) {
	for _, version := range v.All() {
		if rv.Compare(version.ResourceVersion, resourceVersion) != rv.Newer {
			n++
		}
	}
	return n
}

// notOlder reports whether now is saved, or surely newer.
func notOlder(now, saved keytable.Version) bool {
	if saved.ResourceVersion == "" {
		return false
	}
	if now.ResourceVersion == saved.ResourceVersion {
		return now.SameObject(saved)
	}
	return rv.Compare(now.ResourceVersion, saved.ResourceVersion) == rv.Newer
}
