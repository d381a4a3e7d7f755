package api

import (
	"errors"
	"time"
)

// ErrRedelivering says that another redelivery of the same informer is under way.
var ErrRedelivering = errors.New("a redelivery is under way")

// RedeliverOptions say which objects are delivered again, and how fast. The zero value delivers all
// of them as fast as the handler and the Budget allow.
type RedeliverOptions struct {
	// Selector is a label selector, as in metav1.ListOptions. The server selects the objects,
	// besides what the informer selects. Empty selects all.
	Selector string
	// Keys are "namespace/name", or "name" for a cluster-scoped object. If there are any, no others
	// are delivered, and Selector has to be empty. Each is asked for by itself: PerSecond
	// spares the server. They have about 32 KiB at most.
	Keys []string
	// PerSecond is how many objects are delivered again in each second at most. 0 sets no limit.
	PerSecond int
}

// RedeliveryStatus is how far a redelivery has come.
type RedeliveryStatus struct {
	RedeliverOptions
	// Started is when Redeliver was called, in this process or in one before.
	Started time.Time
	// Done counts the objects that were delivered again or did not need it, because a newer state
	// was delivered meanwhile.
	Done int64
	// Total is about how many there are: 0 if that is not known, as with a Selector.
	Total int64
	// Position is the key up to which all are done. It is empty at the beginning, and if the server
	// does not list objects in the order of their keys.
	Position string
	// Err is why the newest request failed, nil after the next one that did not.
	Err error
}
