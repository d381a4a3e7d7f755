package known

import (
	"fmt"
	"iter"
	"math"
	"sync"
	"sync/atomic"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/journal"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// Versions has the key and the version of each object that the handler has acknowledged. The zero
// value is empty and ready for use. It is safe for concurrent use.
type Versions struct {
	mu sync.RWMutex
	// table is nil in one that is empty from the beginning: see reading and writing.
	table     *keytable.Table
	unsettled *unsettled
	// edits counts the changes that were made by others than an informer, and changes all changes
	// of a key or a version. It is read without the lock.
	edits   int64
	changes atomic.Int64
	// user is the informer that runs with it, nil if there is none, and reached is the newest
	// version that one has read. It may be of a deletion, which is not in the table.
	user    User
	reached string
	// shard is that of the newest informer, nil for versions that a program has filled.
	shard *api.Shard
	// journal, if set, writes down each change of the queue, and changed is called after it.
	journal *journal.Journal
	changed func()
}

// User is an informer that runs with Versions.
type User interface {
	Name() string
	LastSyncResourceVersion() string
}

// noKeys is the table of all Versions that have none of their own. It is read only.
var noKeys = keytable.New()

// reading is the table for a caller that holds the lock.
func (v *Versions) reading() *keytable.Table {
	if v.table == nil {
		return noKeys
	}
	return v.table
}

// writing is the table for a caller that holds the lock for writing.
func (v *Versions) writing() *keytable.Table {
	if v.table == nil {
		v.table = keytable.New()
	}
	return v.table
}

// CheckLengths returns an error for a key, a resource version or a UID that no checkpoint can
// hold. Those of Kubernetes are far shorter.
func CheckLengths(key string, version keytable.Version) error {
	if most := max(len(key), len(version.ResourceVersion), len(version.UID)); most > checkpoint.MaxString {
		return fmt.Errorf("key, resource version or UID of %d bytes, %d is the most", most, checkpoint.MaxString)
	}
	return nil
}

// Claim makes an informer the only one that runs with the versions, until release.
func (v *Versions) Claim(user User) (release func(), err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.user != nil {
		return nil, fmt.Errorf("%w by the informer %q", api.ErrStorageInUse, v.user.Name())
	}
	v.user = user
	return v.release, nil
}

func (v *Versions) release() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reached = rv.Newest(v.reached, v.user.LastSyncResourceVersion())
	v.user = nil
}

// keyBuffer is the room on the stack for the key of an object. A longer one is allocated.
const keyBuffer = 128

// Add stores the version of obj, an object or a cache.DeletedFinalStateUnknown that holds one. It
// is an edit. The error is a cache.KeyError if obj has no key.
func (v *Versions) Add(obj interface{}) error {
	var buffer [keyBuffer]byte
	key, err := object.AppendKey(buffer[:0], obj)
	if err != nil {
		return err
	}
	version, err := object.Version(obj)
	if err != nil {
		return err
	}
	if err := CheckLengths(keytable.Borrowed(key), version); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.edits++
	v.changes.Add(1)
	v.writing().Set(keytable.Borrowed(key), version, 0)
	return nil
}

// Remove forgets obj, an object or a cache.DeletedFinalStateUnknown. It is an edit. The error is
// a cache.KeyError if obj has no key.
func (v *Versions) Remove(obj interface{}) error {
	var buffer [keyBuffer]byte
	key, err := object.AppendKey(buffer[:0], obj)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.edits++
	v.changes.Add(1)
	v.writing().Delete(keytable.Borrowed(key))
	return nil
}

// Replace forgets everything and stores versions instead: a resource version,
// a string, for every key. It is an edit. After an error nothing has changed.
func (v *Versions) Replace(versions map[string]interface{}) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	table := v.reading().NewAfter()
	for key, value := range versions {
		resourceVersion, ok := value.(string)
		if !ok {
			return fmt.Errorf("resource version of %q is a %T, not a string", key, value)
		}
		if key == "" {
			return fmt.Errorf("resource version %q has an empty key", resourceVersion)
		}
		version := keytable.Version{ResourceVersion: resourceVersion}
		if err := CheckLengths(key, version); err != nil {
			return err
		}
		table.Set(key, version, 0)
	}
	v.edits++
	v.changes.Add(1)
	v.table, v.reached, v.shard = table, "", nil
	v.unsettled = nil
	return nil
}

// Edits is the number of changes that were made by others than an informer.
func (v *Versions) Edits() int64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.edits
}

// Changes is the number of changes of a key or a version so far.
func (v *Versions) Changes() int64 { return v.changes.Load() }

// IsFilled reports whether a program or an informer has filled them. They may be empty all the same: the
// handler has nothing then.
func (v *Versions) IsFilled() bool { return v.Changes() > 0 }

// Get returns the version of a key.
func (v *Versions) Get(key string) (keytable.Version, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.reading().Get(key)
}

// Keys returns all keys, in no order.
func (v *Versions) Keys() []string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	texts := keytable.Texts{Keys: make([]string, 0, v.reading().Len())}
	v.reading().TextsFrom(0, math.MaxInt, &texts)
	return texts.Keys
}

// Len is the number of keys.
func (v *Versions) Len() int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.reading().Len()
}

// SizeBytes estimates the memory that the versions hold, in bytes.
func (v *Versions) SizeBytes() int64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.reading().SizeBytes()
}

// All yields every key and its version, in no order. The versions may change meanwhile: a key
// that is deleted before its turn is left out, one that is added may be. Replace during the loop
// makes it meaningless.
func (v *Versions) All() iter.Seq2[string, keytable.Version] {
	return func(yield func(string, keytable.Version) bool) {
		for cursor := keytable.Cursor(0); ; {
			keys, next := v.keysFrom(cursor)
			for _, key := range keys {
				if version, ok := v.Get(key); ok && !yield(key, version) {
					return
				}
			}
			if cursor = next; cursor == 0 {
				return
			}
		}
	}
}

// ResourceVersions yields every key and its resource version, as All does. Some of the strings
// share their memory, 2 KiB at most.
func (v *Versions) ResourceVersions() iter.Seq2[string, string] { return v.resourceVersions(false) }

// LendResourceVersions is ResourceVersions, but the strings are valid for their turn only.
func (v *Versions) LendResourceVersions() iter.Seq2[string, string] { return v.resourceVersions(true) }

func (v *Versions) resourceVersions(lent bool) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		texts := keytable.Texts{Lent: lent}
		for cursor := keytable.Cursor(0); ; {
			next, at := v.textsFrom(cursor, &texts)
			for i, key := range texts.Keys {
				resourceVersion := texts.ResourceVersions[i]
				if v.changes.Load() != at {
					version, ok := v.Get(key)
					if !ok {
						continue
					}
					resourceVersion = version.ResourceVersion
				}
				if !yield(key, resourceVersion) {
					return
				}
			}
			if cursor = next; cursor == 0 {
				return
			}
		}
	}
}

// textsFrom replaces texts by the next ones. They are as they were when there were so many changes.
func (v *Versions) textsFrom(cursor keytable.Cursor, texts *keytable.Texts) (next keytable.Cursor, changes int64) {
	const atOnce = 2000 // those of a segment: its slots are gone through once
	v.mu.RLock()
	defer v.mu.RUnlock()
	if texts.Keys == nil {
		most := min(v.reading().Len(), atOnce)
		texts.Keys, texts.ResourceVersions = make([]string, 0, most), make([]string, 0, most)
	}
	texts.Keys, texts.ResourceVersions = texts.Keys[:0], texts.ResourceVersions[:0]
	return v.reading().TextsFrom(cursor, atOnce, texts), v.changes.Load()
}

func (v *Versions) keysFrom(cursor keytable.Cursor) ([]string, keytable.Cursor) {
	const atOnce = 1000
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.reading().KeysFrom(cursor, atOnce)
}

// Newest returns the greatest resource version that is stored, or that an informer has read while
// it ran with the versions. It is empty if there is none, or if they have no order.
func (v *Versions) Newest() string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return rv.Newest(v.reading().Newest(rv.Newest), v.reached)
}
