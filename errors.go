package informer

import (
	"errors"
	"fmt"
	"time"
)

// ErrAlreadyRunning is reported when Run is called while a Run is under way.
var ErrAlreadyRunning = errors.New("already running")

// ItemError says that one object of a list, or one event of a watch, could not
// be read, or that Transform failed for it. It was skipped and counted; the others go on.
type ItemError struct {
	// Index is the object's place in its page, or the event's in its watch,
	// from 0.
	Index int
	// Watch tells an event of a watch from an object of a list.
	Watch bool
	// Key is "namespace/name" or "name", empty where even that is not known.
	Key string
	// Err is what is wrong with it.
	Err error
}

func (e *ItemError) Error() string {
	kind := "list item"
	if e.Watch {
		kind = "watch event"
	}
	return fmt.Sprintf("%s %d%s skipped: %v", kind, e.Index, quoted(e.Key), e.Err)
}

// Unwrap returns what is wrong with the item.
func (e *ItemError) Unwrap() error { return e.Err }

// StoreError says that a store, or an ExtraStore, refused an operation. What it
// was told is lost to it until the object changes or is listed again.
type StoreError struct {
	// Op is the method that failed, for instance "Add".
	Op string
	// Key is that of the object, empty for an operation on many.
	Key string
	// Err is what the store returned.
	Err error
}

func (e *StoreError) Error() string {
	return fmt.Sprintf("store: %s%s: %v", e.Op, quoted(e.Key), e.Err)
}

// Unwrap returns the store's error.
func (e *StoreError) Unwrap() error { return e.Err }

// ProcessError says that Config.Process, or a handler, failed for a key.
type ProcessError struct {
	// Key is "namespace/name" or "name", empty for what is not of one key.
	Key string
	// Err is what Process returned, or a *PanicError.
	Err error
}

func (e *ProcessError) Error() string {
	return fmt.Sprintf("processing%s: %v", quoted(e.Key), e.Err)
}

// Unwrap returns the error of Process.
func (e *ProcessError) Unwrap() error { return e.Err }

// PanicError is a panic in a handler or in Config.Process, within a ProcessError,
// or in Transform, within an ItemError; these name the key.
type PanicError struct {
	// Value is what the code panicked with.
	Value interface{}
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// StallError says that a watch was silent for longer than it may be, and was
// given up for a new one.
type StallError struct {
	Silence time.Duration
}

func (e *StallError) Error() string {
	return fmt.Sprintf("watch stalled: nothing received for %v", e.Silence)
}

func quoted(key string) string {
	if key == "" {
		return ""
	}
	return fmt.Sprintf(" %q", key)
}
