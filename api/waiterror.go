package api

import (
	"errors"
	"fmt"
)

// WaitError says that a call of WaitUntil did not see its version.
type WaitError struct {
	// Informer is the name of the informer.
	Informer string
	// ResourceVersion is the version that the caller waits for.
	ResourceVersion string
	// Reached is the version up to which everything is acknowledged; empty before the first
	// complete list.
	Reached string
	// Err is why the wait ended: the error of its context, ErrUnorderedVersion, ErrStopped,
	// ErrServerRestored or ErrNoHandler.
	Err error
}

func (e *WaitError) Error() string {
	reached := fmt.Sprintf("is at %q", e.Reached)
	if e.Reached == "" {
		reached = "has no complete list yet"
	}
	return fmt.Sprintf("informer %q: wait for resource version %q: %v (it %s)", e.Informer, e.ResourceVersion, e.Err, reached)
}

// Unwrap returns why the wait has ended.
func (e *WaitError) Unwrap() error { return e.Err }

var (
	// ErrUnorderedVersion says, within a *WaitError, that a resource version cannot be compared:
	// the empty one, "0", and those that are no decimal numbers. It is that of the caller, or the
	// server makes such versions.
	ErrUnorderedVersion = errors.New("resource version without an order")
	// ErrStopped says that Run has returned, or that the handler was removed. WaitUntil, Audit and
	// Redeliver wrap it.
	ErrStopped = errors.New("informer stopped")
	// ErrServerRestored says, within a *WaitError, that the server's resource versions went back
	// during the wait, as after a restore from a backup. The write at that version may be lost.
	ErrServerRestored = errors.New("server restored: its resource versions went back")
	// ErrNoHandler says that a SharedResourceVersionInformer has no handler that could acknowledge
	// anything. WaitUntil and Redeliver wrap it.
	ErrNoHandler = errors.New("no handler")
)
