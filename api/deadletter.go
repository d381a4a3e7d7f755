package api

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// EventType is what happened to an object.
type EventType string

const (
	// Added: an object that was not known.
	Added EventType = "Added"
	// Updated: an object that was known, in another version.
	Updated EventType = "Updated"
	// Deleted: an object that is gone. An object that took the place of another one of its name is
	// the Deleted of that and, in a later batch, an Added.
	Deleted EventType = "Deleted"
	// Synced: a list shows the object in the version that was acknowledged.
	Synced EventType = "Synced"
)

// DeadLetter is a change that a handler has refused so often that it is not handed over any more.
// It is known until the handler takes in a newer state of the object, its deletion, or the same
// change when a list or Redeliver brings it again.
type DeadLetter struct {
	// Key is "namespace/name", or "name" for a cluster-scoped object.
	Key string
	// UID is that of the object, empty if it is not known. Of a Deleted, it is that of the object that
	// is gone. Another one of its name, if there is one, waits behind the deletion.
	UID types.UID
	// ResourceVersion is that of the newest state that was refused; of a deletion whose final state
	// is unknown, the one that was acknowledged last.
	ResourceVersion string
	// Newest is the resource version of the newest state of Key that is not handed over because of the
	// letter, or could not be read then. Of a Deleted, it may be that of another object, which waits
	// behind the deletion or is gone, too.
	Newest string
	// Type is what happened to the object.
	Type EventType
	// FirstError is the text of the first error since the handler has taken in anything of the
	// object, and LastError that of the newest. They are cut at 512 bytes, and credentials in them
	// are masked.
	FirstError, LastError string
	// Attempts counts the calls of the handler that have failed for the object by itself, or for a
	// batch that it was in.
	Attempts int
	// Since is when the first of them has failed.
	Since time.Time
}
