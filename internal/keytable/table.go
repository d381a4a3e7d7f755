// Package keytable remembers, for every key, which version of its object the
// consumer has acknowledged.
//
// A key is "namespace/name", or "name" for a cluster-scoped object. A version
// is the resource version and the UID that the object had. A generation is one
// complete pass over the server's set: the keys that it shows are marked with
// its number, and those left unmarked at its end are gone from the server
// (mark, then sweep, in place).
package keytable

import (
	"iter"
	"unsafe"

	"k8s.io/apimachinery/pkg/types"
)

// Version tells one state of one object from every other state of that name.
type Version struct {
	// ResourceVersion is the server's opaque version string.
	ResourceVersion string
	// UID tells an object from a later one of the same name. It is empty where
	// it is not known, as for versions that were loaded from elsewhere.
	UID types.UID
}

// SameObject reports whether v and other may be states of one object: their
// UIDs are equal, or one of them is not known.
func (v Version) SameObject(other Version) bool {
	return v.UID == "" || other.UID == "" || v.UID == other.UID
}

type entry struct {
	version Version
	// mark is the newest generation that showed the key.
	mark uint64
}

// Table maps keys to versions. It is not safe for concurrent use: its owner
// guards it.
type Table struct {
	entries map[string]*entry
	// generation is the number of the newest generation. Invariant: no mark is
	// greater, so that one table serves several runs.
	generation uint64
	// stringBytes is the size of all keys, resource versions and UIDs held.
	stringBytes int64
}

// New returns an empty table.
func New() *Table {
	return &Table{entries: map[string]*entry{}}
}

// Generation is the number of the newest generation, 0 before the first.
func (t *Table) Generation() uint64 { return t.generation }

// NewAfter returns an empty table whose generations follow those of t, for use
// in the place of t.
func (t *Table) NewAfter() *Table {
	next := New()
	next.generation = t.generation
	return next
}

// Begin starts a generation and returns its number, the greatest so far.
func (t *Table) Begin() uint64 {
	t.generation++
	return t.generation
}

// Len is the number of keys.
func (t *Table) Len() int { return len(t.entries) }

// entryBytes is what Go's map spends on a key beside the bytes of its strings:
// the headers of key and entry and a control byte, at its mean load of 21/32.
const entryBytes = int64(unsafe.Sizeof("")+unsafe.Sizeof((*entry)(nil))+1)*32/21 + int64(unsafe.Sizeof(entry{}))

// SizeBytes estimates the memory that the table holds, in bytes.
func (t *Table) SizeBytes() int64 {
	return t.stringBytes + int64(len(t.entries))*entryBytes
}

// Get returns the version stored under key.
func (t *Table) Get(key string) (Version, bool) {
	if e, ok := t.entries[key]; ok {
		return e.version, true
	}
	return Version{}, false
}

// Set stores version under key, marked with generation; a newer mark stays.
func (t *Table) Set(key string, version Version, generation uint64) {
	e, ok := t.entries[key]
	if !ok {
		e = &entry{}
		t.entries[key] = e
		t.stringBytes += int64(len(key))
	}
	t.stringBytes += versionBytes(version) - versionBytes(e.version)
	e.version, e.mark = version, max(e.mark, generation)
}

// Delete forgets key, and reports whether it was there.
func (t *Table) Delete(key string) bool {
	old, ok := t.entries[key]
	if ok {
		t.stringBytes -= int64(len(key)) + versionBytes(old.version)
		delete(t.entries, key)
	}
	return ok
}

// Mark notes that generation showed key, where the table has it, and reports
// whether that was noted before. It does not keep key.
func (t *Table) Mark(key string, generation uint64) (again bool) {
	e, ok := t.entries[key]
	if !ok || e.mark >= generation {
		return ok
	}
	e.mark = generation
	return false
}

// Unmarked returns the keys that generation did not show.
func (t *Table) Unmarked(generation uint64) []string {
	var keys []string
	for key, e := range t.entries {
		if e.mark < generation {
			keys = append(keys, key)
		}
	}
	return keys
}

// All yields every key and its version, in no order. The table must not change
// meanwhile.
func (t *Table) All() iter.Seq2[string, Version] {
	return func(yield func(string, Version) bool) {
		for key, e := range t.entries {
			if !yield(key, e.version) {
				return
			}
		}
	}
}

func versionBytes(v Version) int64 {
	return int64(len(v.ResourceVersion) + len(v.UID))
}
