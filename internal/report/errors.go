package report

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrAlreadyRunning: Run was called while a Run is under way.
	ErrAlreadyRunning = errors.New("already running")
	// ErrNotRunning: no Run is under way, or it has ended.
	ErrNotRunning = errors.New("not running")
	// ErrNotSynced: the first complete list was not delivered yet.
	ErrNotSynced = errors.New("not synced")
	// ErrAuditRunning: another audit of the informer is under way.
	ErrAuditRunning = errors.New("another audit is under way")
	// ErrNoMetadata: metadata cannot be listed.
	ErrNoMetadata = errors.New("the ListerWatcher is not one of a DynamicListerWatcherFactory: it cannot list metadata")
	// ErrDiffered: an audit has found differences.
	ErrDiffered = errors.New("the informer differed from its server")
	// ErrStorageInUse: another informer runs with the same storage.
	ErrStorageInUse = errors.New("storage in use")
	// ErrPassedOver: a handler has panicked for a key once too often.
	ErrPassedOver = errors.New("passed over")
)

// ItemError says that one object of a list, or one event of a watch, was skipped.
type ItemError struct {
	Index int
	Watch bool
	Key   string
	Err   error
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

// CredentialError says that a request was not sent, because the exec plugin failed.
type CredentialError struct {
	Attempts int
	Err      error
}

func (e *CredentialError) Error() string {
	return fmt.Sprintf("no credentials: exec plugin, attempt %d: %v", e.Attempts, e.Err)
}

// Unwrap returns what is wrong with the plugin.
func (e *CredentialError) Unwrap() error { return e.Err }

// StoreError says that a store refused an operation.
type StoreError struct {
	Op  string
	Key string
	Err error
}

// OfStore wraps what the method op of a store returned for a key; nil stays nil.
func OfStore(op, key string, err error) error {
	if err == nil {
		return nil
	}
	return &StoreError{Op: op, Key: key, Err: err}
}

func (e *StoreError) Error() string {
	return fmt.Sprintf("store: %s%s: %v", e.Op, quoted(e.Key), e.Err)
}

// Unwrap returns the store's error.
func (e *StoreError) Unwrap() error { return e.Err }

// ProcessError says that a consumer failed for a key.
type ProcessError struct {
	Key string
	Err error
}

func (e *ProcessError) Error() string {
	return fmt.Sprintf("processing%s: %v", quoted(e.Key), e.Err)
}

// Unwrap returns the error of Process.
func (e *ProcessError) Unwrap() error { return e.Err }

// BatchError says that a batch was not taken in.
type BatchError struct {
	Keys     []string
	Attempts int
	Err      error
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

// UnusedCheckpointError says why a checkpoint is not in use.
type UnusedCheckpointError struct {
	Checkpoint string
	NeverSaved bool
	Err        error
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

// PanicError is a panic in the user's code.
type PanicError struct {
	Value interface{}
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// StallError says that a list or a watch was silent for too long.
type StallError struct {
	Silence time.Duration
}

func (e *StallError) Error() string {
	return fmt.Sprintf("stalled: nothing received for %v", e.Silence)
}

func quoted(key string) string {
	if key == "" {
		return ""
	}
	return fmt.Sprintf(" %q", key)
}
