package informer

import (
	"io"
	"iter"

	"github.com/rvinformer/informer/internal/engine/known"
	"github.com/rvinformer/informer/internal/engine/object"
)

// ResourceVersionStorage remembers, for every object that a handler has
// acknowledged, its key and its resource version, and nothing else of it. A key
// is "namespace/name", or "name" for a cluster-scoped object.
//
// Its zero value is empty and ready for use. It is safe for concurrent use. An informer that starts
// with a filled storage delivers only what differs. While an informer runs, the informer writes it;
// what others write then counts as acknowledged by its handler. Only one informer may run with it
// at a time: Run of another one reports ErrStorageInUse and returns.
//
// To fill it, Replace takes a whole map; Add takes an object at a time:
// a *metav1.PartialObjectMetadata with namespace, name, resource version and, if
// it is known, UID is enough. With the UID, an object that was deleted and
// created again meanwhile is noticed. Replace with an empty map fills it too: the handler has
// nothing, whatever a checkpoint says.
type ResourceVersionStorage struct {
	versions known.Versions
}

// NewResourceVersionStorage returns an empty storage.
func NewResourceVersionStorage() *ResourceVersionStorage {
	return &ResourceVersionStorage{}
}

var (
	_ io.WriterTo   = (*ResourceVersionStorage)(nil)
	_ io.ReaderFrom = (*ResourceVersionStorage)(nil)
)

// Add stores the resource version of obj, an object or a
// cache.DeletedFinalStateUnknown that holds one. The error is a cache.KeyError
// if obj has no key. Keys, resource versions and UIDs have 1 MiB at most.
func (c *ResourceVersionStorage) Add(obj interface{}) error { return c.versions.Add(obj) }

// Update does what Add does.
func (c *ResourceVersionStorage) Update(obj interface{}) error { return c.versions.Add(obj) }

// Delete forgets obj, an object or a cache.DeletedFinalStateUnknown. It is no
// error if it is not there. The error is a cache.KeyError if obj has no key.
func (c *ResourceVersionStorage) Delete(obj interface{}) error { return c.versions.Remove(obj) }

// Get returns the stored resource version of the key of obj, an object or a
// cache.DeletedFinalStateUnknown. The error is a cache.KeyError if obj has no key.
func (c *ResourceVersionStorage) Get(obj interface{}) (string, bool, error) {
	key, err := object.Key(obj)
	if err != nil {
		return "", false, err
	}
	version, exists := c.versions.Get(key)
	return version.ResourceVersion, exists, nil
}

// GetByKey returns the stored resource version of key, as a string. It is a
// method of cache.KeyGetter; the error is always nil.
func (c *ResourceVersionStorage) GetByKey(key string) (item interface{}, exists bool, err error) {
	version, exists := c.versions.Get(key)
	if !exists {
		return nil, false, nil
	}
	return version.ResourceVersion, true, nil
}

// ListKeys returns all keys, in no order. Like those of All, they share pieces of memory.
func (c *ResourceVersionStorage) ListKeys() []string { return c.versions.Keys() }

// Replace forgets everything and stores versions instead: a resource version,
// a string, for every key. If a key is empty, a value is not a string, or one of them has
// more than 1 MiB, there is an error and nothing changes. The UIDs of the objects are not known
// then, and are adopted when they are first seen.
func (c *ResourceVersionStorage) Replace(versions map[string]interface{}) error {
	return c.versions.Replace(versions)
}

// Len is the number of keys.
func (c *ResourceVersionStorage) Len() int { return c.versions.Len() }

// SizeBytes estimates the memory that the storage holds, in bytes.
func (c *ResourceVersionStorage) SizeBytes() int64 { return c.versions.SizeBytes() }

// All yields every key and its resource version, in no order. The storage may
// change meanwhile, also by the loop's own body: a key that is deleted before
// its turn is left out, one that is added may be. Replace during the loop makes it
// meaningless.
//
// The strings are made some dozens at a time, in one piece of memory of 2 KiB at most. A
// program that keeps only a few of them should keep copies (strings.Clone).
func (c *ResourceVersionStorage) All() iter.Seq2[string, string] {
	return c.versions.ResourceVersions()
}

// Lend is All for loops that keep nothing: both strings are valid until the next turn of the loop,
// or its end, and strings.Clone keeps one. No memory is allocated for a key, and a pass takes two
// thirds of the time.
func (c *ResourceVersionStorage) Lend() iter.Seq2[string, string] {
	return c.versions.LendResourceVersions()
}

// WriteTo writes all keys, with their resource versions and UIDs, in the format
// that docs/checkpoint-format.md describes and ReadFrom reads. It returns the number
// of bytes that w took, and the error of w.
//
// The storage may change meanwhile; it is locked for about a tenth of a millisecond
// at a time, and not while w writes. Every entry is then as it was at some moment
// during the call. A key that was there all the time is written, and one that was
// never there is not; one that came or went meanwhile may be. So a resource version
// up to which all was acknowledged before the call is not newer than the entries:
// a watch from there on repeats everything that is missing. A Replace or a ReadFrom
// meanwhile is not written: the entries that it replaces are.
func (c *ResourceVersionStorage) WriteTo(w io.Writer) (int64, error) { return c.versions.WriteTo(w) }

// ReadFrom forgets everything and stores what WriteTo wrote instead, as Replace
// does, UIDs included. It reads what this version of the library and all older ones
// have written. It returns the number of bytes read, which are those of the
// checkpoint and not one more, whatever r is: a checkpoint may be followed by
// something else. The file of an informer's checkpoint has a journal behind it, and is read to
// its end. Bytes are asked for in pieces of about 64 KiB, so r need not
// buffer.
//
// Nothing changes before the checksum was found right. Any error is a
// *CheckpointError, and leaves the storage as it was. The storage is not locked
// while r is read; what others write meanwhile is forgotten. Until it returns, the
// memory is that of both contents and of a block of the checkpoint, 64 KiB as a rule
// and 4 MiB at most.
func (c *ResourceVersionStorage) ReadFrom(r io.Reader) (int64, error) { return c.versions.ReadFrom(r) }

// ExtraStore gets every object that an informer reads, before the
// handler does, on the reflector's goroutine. Each object of a list is one Add,
// or, where the informer knew it already, one Update, also if it has not
// changed; a watch event is an Add, an Update or a Delete; a deletion that a
// list found is a Delete of a cache.DeletedFinalStateUnknown. Its errors are
// reported to the ErrorHandler and change nothing else.
type ExtraStore interface {
	// Add gets an object that is new to the informer.
	Add(obj interface{}) error
	// Update gets an object that the informer knew.
	Update(obj interface{}) error
	// Delete gets the final state of an object, or of a
	// cache.DeletedFinalStateUnknown.
	Delete(obj interface{}) error
	// Replace is not called: no list is ever held whole. It is here so that
	// stores written for other informers fit.
	Replace([]interface{}, string) error
}
