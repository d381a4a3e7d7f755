package informer

import (
	"fmt"
	"iter"
	"math"
	"strings"
	"sync"

	"github.com/rvinformer/informer/internal/checkpoint"
	"github.com/rvinformer/informer/internal/journal"
	"github.com/rvinformer/informer/internal/keytable"
	"github.com/rvinformer/informer/internal/object"
	"github.com/rvinformer/informer/internal/report"
	"github.com/rvinformer/informer/internal/rv"
)

// ResourceVersionStorage remembers, for every object that a handler has
// acknowledged, its key and its resource version, and nothing else of it. A key
// is "namespace/name", or "name" for a cluster-scoped object.
//
// Its zero value is empty and ready for use. It is safe for concurrent use. An informer that starts with a filled storage
// tells only what differs. While an informer runs, the informer writes it; what
// others write then counts as acknowledged by its handler. Only one informer may run with
// it at a time: Run of another one reports ErrStorageInUse and returns.
//
// To fill it, Replace takes a whole map; Add takes an object at a time, of which
// a *metav1.PartialObjectMetadata with namespace, name, resource version and, if
// it is known, UID is enough. With the UID, an object that was deleted and
// created again meanwhile is noticed.
type ResourceVersionStorage struct {
	mu sync.RWMutex
	// table is nil in a storage that is empty from the beginning: see reading and writing.
	table *keytable.Table
	// unsettled are the keys whose last handler call panicked or failed, each with the newest
	// generation that may have shown it. The handler may have begun to take in an
	// object that the table does not have: when a generation does not show it, it is
	// deleted like the known ones.
	unsettled map[string]uint64
	// edits counts the changes that were made by others than an informer.
	edits int64
	// user is the informer that runs with it, nil if there is none, and reached is the newest
	// version that one has read. It may be of a deletion, of which the table knows nothing.
	user    *Reflector
	reached string
}

// NewResourceVersionStorage returns an empty storage.
func NewResourceVersionStorage() *ResourceVersionStorage {
	return &ResourceVersionStorage{}
}

// noKeys is the table of all storages that have none of their own. It is read only.
var noKeys = keytable.New()

// reading is the table for a caller that holds the lock.
func (c *ResourceVersionStorage) reading() *keytable.Table {
	if c.table == nil {
		return noKeys
	}
	return c.table
}

// writing is the table for a caller that holds the lock for writing.
func (c *ResourceVersionStorage) writing() *keytable.Table {
	if c.table == nil {
		c.table = keytable.New()
	}
	return c.table
}

// checkLengths returns an error for a key, a resource version or a UID that no checkpoint can
// hold. Those of Kubernetes are far shorter.
func checkLengths(key string, version keytable.Version) error {
	if most := max(len(key), len(version.ResourceVersion), len(version.UID)); most > checkpoint.MaxString {
		return fmt.Errorf("key, resource version or UID of %d bytes, %d is the most", most, checkpoint.MaxString)
	}
	return nil
}

// claim makes an informer the only one that runs with the storage, until release.
func (c *ResourceVersionStorage) claim(informer *Reflector) (release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.user != nil {
		return nil, fmt.Errorf("%w by the informer %q", report.ErrStorageInUse, c.user.name)
	}
	c.user = informer
	return c.release, nil
}

func (c *ResourceVersionStorage) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reached = rv.Newest(c.reached, c.user.LastSyncResourceVersion())
	c.user = nil
}

// Add stores the resource version of obj, an object or a
// cache.DeletedFinalStateUnknown that holds one. The error is a cache.KeyError
// if obj has no key. Keys, resource versions and UIDs have 1 MiB at most.
func (c *ResourceVersionStorage) Add(obj interface{}) error {
	key, version, err := object.KeyAndVersion(obj)
	if err == nil {
		err = checkLengths(key, version)
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.edits++
	c.writing().Set(key, version, 0)
	return nil
}

// Update does what Add does.
func (c *ResourceVersionStorage) Update(obj interface{}) error {
	return c.Add(obj)
}

// Delete forgets obj, an object or a cache.DeletedFinalStateUnknown. It is no
// error if it is not there. The error is a cache.KeyError if obj has no key.
func (c *ResourceVersionStorage) Delete(obj interface{}) error {
	key, err := object.Key(obj)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.edits++
	c.writing().Delete(key)
	return nil
}

// Get returns the stored resource version of the key of obj, an object or a
// cache.DeletedFinalStateUnknown. The error is a cache.KeyError if obj has no key.
func (c *ResourceVersionStorage) Get(obj interface{}) (string, bool, error) {
	key, err := object.Key(obj)
	if err != nil {
		return "", false, err
	}
	version, exists := c.version(key)
	return version.ResourceVersion, exists, nil
}

// GetByKey returns the stored resource version of key, as a string. It is a
// method of cache.KeyGetter; the error is always nil.
func (c *ResourceVersionStorage) GetByKey(key string) (item interface{}, exists bool, err error) {
	version, exists := c.version(key)
	if !exists {
		return nil, false, nil
	}
	return version.ResourceVersion, true, nil
}

// ListKeys returns all keys, in no order.
func (c *ResourceVersionStorage) ListKeys() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	keys, _ := c.reading().KeysFrom(0, math.MaxInt)
	return keys
}

// Replace forgets everything and stores versions instead: a resource version,
// a string, for every key. If a key is empty, a value is not a string, or one of them has
// more than 1 MiB, there is an error and nothing changes. The UIDs of the objects are not known
// then, and are adopted when they are first seen.
func (c *ResourceVersionStorage) Replace(versions map[string]interface{}) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	table := c.reading().NewAfter()
	for key, value := range versions {
		resourceVersion, ok := value.(string)
		if !ok {
			return fmt.Errorf("resource version of %q is a %T, not a string", key, value)
		}
		if key == "" {
			return fmt.Errorf("resource version %q has an empty key", resourceVersion)
		}
		version := keytable.Version{ResourceVersion: resourceVersion}
		if err := checkLengths(key, version); err != nil {
			return err
		}
		table.Set(key, version, 0)
	}
	c.edits++
	c.table, c.reached = table, ""
	clear(c.unsettled)
	return nil
}

// Len is the number of keys.
func (c *ResourceVersionStorage) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.reading().Len()
}

// SizeBytes estimates the memory that the storage holds, in bytes.
func (c *ResourceVersionStorage) SizeBytes() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.reading().SizeBytes()
}

// All yields every key and its resource version, in no order. The storage may
// change meanwhile, also by the loop's own body: a key that is deleted before
// its turn is left out, one that is added may be. Replace during the loop makes it
// meaningless.
func (c *ResourceVersionStorage) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for cursor := keytable.Cursor(0); ; {
			keys, next := c.keysFrom(cursor)
			for _, key := range keys {
				if version, ok := c.version(key); ok && !yield(key, version.ResourceVersion) {
					return
				}
			}
			if cursor = next; cursor == 0 {
				return
			}
		}
	}
}

func (c *ResourceVersionStorage) keysFrom(cursor keytable.Cursor) ([]string, keytable.Cursor) {
	const atOnce = 1000
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.reading().KeysFrom(cursor, atOnce)
}

func (c *ResourceVersionStorage) version(key string) (keytable.Version, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.reading().Get(key)
}

// told is what the handler was told of key: the version that it has acknowledged, if
// there is one, and whether it has failed to acknowledge another since.
func (c *ResourceVersionStorage) told(key string) (version keytable.Version, exists, unsettled bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	version, exists = c.reading().Get(key)
	_, unsettled = c.unsettled[key]
	return version, exists, unsettled
}

// settle notes whether it is certain what the handler has of key: its calls returned, or they
// only showed the version that it has.
func (c *ResourceVersionStorage) settle(key string, certain bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if certain {
		delete(c.unsettled, key)
		return
	}
	if c.unsettled == nil { // which hardly any storage needs
		c.unsettled = map[string]uint64{}
	}
	c.unsettled[key] = c.reading().Generation()
}

// editCount is the number of changes that others than an informer have made.
func (c *ResourceVersionStorage) editCount() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.edits
}

// newest returns the greatest resource version that is stored or that an informer has read which
// ran with the storage. It is empty where there is none, or where versions can not be ordered.
func (c *ResourceVersionStorage) newest() string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return rv.Newest(c.reading().Newest(rv.Newest), c.reached)
}

// knownVersions is the storage as the delta queue sees it. The queue's methods
// are kept off the public type with it.
type knownVersions struct {
	*ResourceVersionStorage
	// changed, if set, is called after each change.
	changed func()
	// journal, if set, writes down each change.
	journal *journal.Journal
}

func (k knownVersions) noteChange() {
	if k.changed != nil {
		k.changed()
	}
}

func (k knownVersions) Begin() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.writing().Begin()
}

func (k knownVersions) Get(key string) (keytable.Version, bool) { return k.version(key) }

func (k knownVersions) Set(key string, version keytable.Version, generation uint64) {
	defer k.noteChange()
	k.mu.Lock()
	defer k.mu.Unlock()
	table := k.writing()
	if k.journal != nil {
		k.journal.Acknowledge(key, version, table.Compare(key, version))
	}
	table.Set(key, version, generation)
}

func (k knownVersions) Delete(key string) bool {
	defer k.noteChange()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.journal != nil {
		k.journal.Forget(key)
	}
	return k.writing().Delete(key)
}

func (k knownVersions) Mark(key string, generation uint64) (again bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.settleShown(key, generation)
	return k.writing().Mark(key, generation)
}

func (k knownVersions) Show(key string, version keytable.Version, generation, since uint64) (again bool, c keytable.Comparison) {
	k.mu.Lock()
	defer k.mu.Unlock()
	unsettled := k.settleShown(key, generation)
	again, c = k.writing().Show(key, version, generation, since)
	if unsettled { // the handler may have another version than the known one
		c.SameVersion = false
	}
	return again, c
}

// shows reports whether the storage has key in just this version, and the handler no other.
func (c *ResourceVersionStorage) shows(key string, version keytable.Version) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if _, unsettled := c.unsettled[key]; unsettled {
		return false
	}
	compared := c.reading().Compare(key, version)
	return compared.SameVersion && compared.SameObject && compared.Identified
}

// settleShown notes that a generation shows key, and reports whether the last handler call for
// it panicked or failed.
func (k knownVersions) settleShown(key string, generation uint64) (unsettled bool) {
	if len(k.unsettled) == 0 {
		return false
	}
	if _, unsettled = k.unsettled[key]; unsettled {
		k.unsettled[strings.Clone(key)] = generation // a map may keep the newest form of a key
	}
	return unsettled
}

// UnmarkedFrom ends with the unsettled keys that the table does not have.
func (k knownVersions) UnmarkedFrom(cursor keytable.Cursor, generation uint64, most int) (keys []string, next keytable.Cursor) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	keys, next = k.reading().UnmarkedFrom(cursor, generation, most)
	if next != 0 {
		return keys, next
	}
	for key, mark := range k.unsettled {
		if known := k.reading().Compare(key, keytable.Version{}).Known; !known && mark < generation {
			keys = append(keys, key)
		}
	}
	return keys, next
}
