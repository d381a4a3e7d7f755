package object

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/moment"
)

// Place is where an object was read: its index in its page or its watch.
type Place struct {
	Watch bool
	Index int
}

// Item is one object that was read from the server: decoded by a ListerWatcher, or as it came off
// the wire.
type Item struct {
	Key     string
	Version keytable.Version
	Place   Place
	// Arrived is when it was read off its connection.
	Arrived moment.Moment
	// Object is the object, or nil where Lent holds it.
	Object runtime.Object
	// Lent is the object in the reader's buffers. It, and then Key and Version too,
	// live until the item was handed on: what is kept longer is a Copy.
	Lent *Lent
	// Unselected tells that the object was sent although it is not selected, so that its change is a
	// deletion here. Readers of a watch that they share are not told.
	Unselected bool
}

// HasKey reports whether the key is known. The key of a decoded object may be empty: see
// source.Options.Nameless.
func (it *Item) HasKey() bool { return it.Key != "" || it.Object != nil }

// Identity returns key and version with memory of their own, all in one piece.
func (it Item) Identity() (key string, version keytable.Version) {
	// Not by +, which returns its only operand that is not empty, lent as it is.
	var b strings.Builder
	b.Grow(len(it.Key) + len(it.Version.ResourceVersion) + len(it.Version.UID))
	b.WriteString(it.Key)
	b.WriteString(it.Version.ResourceVersion)
	b.WriteString(string(it.Version.UID))
	all := b.String()
	key, all = all[:len(it.Key)], all[len(it.Key):]
	resourceVersion := all[:len(it.Version.ResourceVersion)]
	return key, keytable.Version{ResourceVersion: resourceVersion, UID: types.UID(all[len(resourceVersion):])}
}

// Copy returns the lent object with memory of its own, or of the pool, and without the fields that
// do not stay.
func (it Item) Copy(pool *Pool) (*Raw, error) { return it.Lent.copy(it, pool) }

// Unreadable returns an error that says what is wrong with the item.
func (it Item) Unreadable(err error) *api.ItemError {
	return &api.ItemError{Index: it.Place.Index, Watch: it.Place.Watch, Key: strings.Clone(it.Key), Err: err}
}

// Owned returns the item decoded, and with memory of its own. The error is an *api.ItemError; the
// item has its key all the same.
func (it Item) Owned() (Item, error) {
	if it.Lent == nil {
		return it, nil
	}
	raw, err := it.Copy(nil)
	if err != nil {
		return Item{Key: strings.Clone(it.Key), Place: it.Place, Arrived: it.Arrived}, it.Unreadable(err)
	}
	own := Item{Key: raw.key, Version: raw.version, Place: raw.place, Arrived: it.Arrived}
	if own.Object, err = it.Lent.Form.Decode(raw); err != nil {
		return own, own.Unreadable(err)
	}
	return own, nil
}

// Decode returns a lent object decoded. It borrows memory of the pool, because a decoder keeps none
// of it. The error is an *api.ItemError.
func (it Item) Decode() (runtime.Object, error) {
	raw, err := it.Copy(&Shared)
	if err != nil {
		return nil, it.Unreadable(err)
	}
	defer Shared.Put(raw)
	obj, err := it.Lent.Form.Decode(raw)
	if err != nil {
		return nil, it.Unreadable(err)
	}
	return obj, nil
}
