package api

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrAlreadyRunning is reported when Run is called while a Run is under way.
	ErrAlreadyRunning = errors.New("already running")
	// ErrStorageInUse is reported when Run is called while another informer runs with the same
	// Storage, or with the same store of NewInformer. Each would delete what the other lists.
	ErrStorageInUse = errors.New("storage in use")
	// ErrPassedOver says, within a *ProcessError or a *BatchError, that a handler has failed for the
	// key once too often, so that the change is a DeadLetter.
	ErrPassedOver = errors.New("passed over")
)

// ItemError says that one object of a list, or one event of a watch, could not be read, or that
// Transform failed for it. It was skipped and counted; the others go on.
type ItemError struct {
	// Index is the object's place in its page, or the event's in its watch, from 0.
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

// StoreError says that a store, an ExtraStore or a CheckpointStore refused an operation. A change
// that a store or an ExtraStore refused is lost to it until the object changes or is listed again.
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
	// Key is "namespace/name" or "name", empty for a failure that has no key.
	Key string
	// Err is what Process returned, or a *PanicError.
	Err error
}

func (e *ProcessError) Error() string {
	return fmt.Sprintf("processing%s: %v", quoted(e.Key), e.Err)
}

// Unwrap returns the error of Process.
func (e *ProcessError) Unwrap() error { return e.Err }

// BatchError says that a BatchHandler did not take a batch, or a part of it, in.
type BatchError struct {
	// Keys are those of the events that were not taken in, in their order.
	Keys []string
	// Attempts counts how many times, in a row, one of them was tried and not taken in. A batch that
	// is tried in parts is tried once.
	Attempts int
	// Err is what OnBatch returned, or a *PanicError.
	Err error
}

func (e *BatchError) Error() string {
	first := ""
	if len(e.Keys) > 0 {
		first = e.Keys[0]
	}
	return fmt.Sprintf("batch of %d events from%s on, attempt %d: %v", len(e.Keys), quoted(first), e.Attempts, e.Err)
}

// Unwrap returns the error of OnBatch.
func (e *BatchError) Unwrap() error { return e.Err }

// FailedEvents is the error of a BatchHandler that has taken in all events of a batch but these. It
// may be wrapped, and must not be joined with another error: see BatchHandler.
type FailedEvents []FailedEvent

// FailedEvent is an event of a batch that was not taken in.
type FailedEvent struct {
	// Index is its place in the batch, from 0.
	Index int
	// Err says why.
	Err error
	// Later tells that the event is not at fault: the destination does not take it now. A row is locked,
	// for instance, or an item of a bulk request was answered with 429. The event comes again and is never
	// a DeadLetter because of such failures, which MaxAttempts does not count.
	Later bool
	// After is how long the destination asks to wait before the event comes again, an hour at most. It is
	// for Later. Default: 100 ms after the first failure, twice as long after each, and 30 s at most.
	After time.Duration
}

func (e FailedEvents) Error() string {
	switch len(e) {
	case 0:
		return "no event failed"
	case 1:
		return fmt.Sprintf("event %d failed: %v", e[0].Index, e[0].Err)
	default:
		return fmt.Sprintf("%d events failed, event %d first: %v", len(e), e[0].Index, e[0].Err)
	}
}

// Unwrap returns the errors of the events.
func (e FailedEvents) Unwrap() []error {
	errs := make([]error, 0, len(e))
	for _, event := range e {
		if event.Err != nil {
			errs = append(errs, event.Err)
		}
	}
	return errs
}

// UnusedCheckpointError says why an informer does not use its Checkpoint.
type UnusedCheckpointError struct {
	// Checkpoint is its name, as in Status.
	Checkpoint string
	// NeverSaved tells that the content of the store belongs to something else, and stays as it
	// is: Run waits, and nothing is delivered or saved unless BeginAnew is set.
	NeverSaved bool
	// Err is what is wrong: a *CheckpointError, a *CheckpointSourceError or a *StoreError.
	Err error
}

func (e *UnusedCheckpointError) Error() string {
	text := fmt.Sprintf("checkpoint %q: %v", e.Checkpoint, e.Err)
	if e.NeverSaved {
		text += "; it stays as it is, and nothing is delivered unless BeginAnew is set"
	}
	return text
}

// Unwrap returns what is wrong.
func (e *UnusedCheckpointError) Unwrap() error { return e.Err }

// PanicError is a panic in a handler or in Config.Process, within a ProcessError or a BatchError,
// or in Transform, within an ItemError; these name the key. By itself it is a panic in a tweak or a
// transport of a list or a watch.
type PanicError struct {
	// Value is what the code panicked with.
	Value interface{}
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// StallError says that a list or a watch was silent for longer than it may be, and was given up for
// a new one.
type StallError struct {
	// Silence is how long it was silent.
	Silence time.Duration
}

func (e *StallError) Error() string {
	return fmt.Sprintf("stalled: nothing received for %v", e.Silence)
}

// CredentialError says that a request was not sent, because the exec plugin of the rest.Config gave
// no credentials. All informers of a DynamicListerWatcherFactory share a failure until the plugin
// is run again, 30 s later at most.
type CredentialError struct {
	// Attempts counts the runs that have failed, in a row.
	Attempts int
	// Err is what is wrong with the plugin.
	Err error
}

func (e *CredentialError) Error() string {
	return fmt.Sprintf("no credentials: exec plugin, attempt %d: %v", e.Attempts, e.Err)
}

// Unwrap returns what is wrong with the plugin.
func (e *CredentialError) Unwrap() error { return e.Err }

func quoted(key string) string {
	if key == "" {
		return ""
	}
	return fmt.Sprintf(" %q", key)
}
