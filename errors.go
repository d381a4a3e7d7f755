package informer

import (
	"errors"
	"fmt"
	"time"

	"github.com/rvinformer/informer/internal/wire"
)

// ErrAlreadyRunning is reported when Run is called while a Run is under way.
var ErrAlreadyRunning = errors.New("already running")

// ErrStorageInUse is reported when Run is called while another informer runs with the same
// Storage, or with the same store of NewInformer. What the one lists, the other would delete.
var ErrStorageInUse = errors.New("storage in use")

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

// StoreError says that a store, an ExtraStore or a CheckpointStore refused an
// operation. What a store or an ExtraStore was told is lost to it until the object
// changes or is listed again.
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

// UnusedCheckpointError says why an informer does not use its Checkpoint.
type UnusedCheckpointError struct {
	// Checkpoint is its name, as in Status.
	Checkpoint string
	// NeverSaved tells that nothing will be saved, in this Run or a later one of the informer:
	// what is in the store belongs to something else, and stays as it is.
	NeverSaved bool
	// Err is what is wrong: a *CheckpointError, a *CheckpointSourceError or a *StoreError.
	Err error
}

func (e *UnusedCheckpointError) Error() string {
	text := fmt.Sprintf("checkpoint %q: %v", e.Checkpoint, e.Err)
	if e.NeverSaved {
		text += "; it stays as it is, and nothing will be saved"
	}
	return text
}

// Unwrap returns what is wrong.
func (e *UnusedCheckpointError) Unwrap() error { return e.Err }

// BatchError says that a BatchHandler did not take a batch in.
type BatchError struct {
	// Keys are those of the events, in their order.
	Keys []string
	// Attempts counts the calls that have failed, in a row, for one of them.
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

// ErrPassedOver says, within a *ProcessError or a *BatchError, that a handler has
// panicked for the key once too often: it is not called for it again before the object
// changes, or is listed again.
var ErrPassedOver = errors.New("passed over")

// PanicError is a panic in a handler or in Config.Process, within a ProcessError or
// a BatchError, or in Transform, within an ItemError; these name the key. By itself it
// is a panic in a tweak or a transport of a list or a watch.
type PanicError struct {
	// Value is what the code panicked with.
	Value interface{}
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// StallError says that a list or a watch was silent for longer than it may be,
// and was given up for a new one.
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

// What is wrong with an answer of the server, within an *ItemError (that object is
// lost) or a *BodyError (the rest of the answer is). An answer that was cut short
// is io.ErrUnexpectedEOF.
var (
	// ErrMalformed says that it is not in the syntax, or not of the types, that it
	// should be of.
	ErrMalformed = wire.ErrMalformed
	// ErrTooLarge says that an object, or what stands between two of them, is larger
	// than 16 MiB.
	ErrTooLarge = wire.ErrTooLarge
	// ErrEndless says that an object that was too large did not end within 256 MiB.
	ErrEndless = wire.ErrEndless
	// ErrNotList and ErrNotWatch say that it is something else: the page of a proxy
	// for instance.
	ErrNotList  = wire.ErrNotList
	ErrNotWatch = wire.ErrNotWatch
	// ErrContentType says that it is neither JSON nor the protobuf of Kubernetes.
	ErrContentType = errors.New("unknown content type")
)

// BodyError says that the answer to a list or a watch could not be read to its
// end. What came before is delivered, and what is missing is asked for again.
type BodyError struct {
	// Watch tells a watch from a list.
	Watch bool
	// Offset is the place in bytes of what is wrong, and Items the number of
	// objects, or events, before it.
	Offset int64
	Items  int
	// Head is how an answer begins that is no list or watch. It is empty where objects may
	// stand in it, and credentials are masked.
	Head []byte
	// Err is what is wrong: one of the errors above, or that of the connection.
	Err error
}

func (e *BodyError) Error() string {
	kind := "list"
	if e.Watch {
		kind = "watch"
	}
	text := fmt.Sprintf("%s: %v at byte %d, after %d items", kind, e.Err, e.Offset, e.Items)
	if len(e.Head) > 0 {
		text += fmt.Sprintf("; it begins %q", e.Head)
	}
	return text
}

// Unwrap returns what is wrong.
func (e *BodyError) Unwrap() error { return e.Err }

// bodyError is err, what a wire reader ends with, for users to know.
func bodyError(watch bool, err error) error {
	var body *wire.BodyError
	if !errors.As(err, &body) {
		return err
	}
	// Its text says the offset and the beginning too.
	public := &BodyError{Watch: watch, Offset: body.Offset, Items: body.Items, Head: body.Head, Err: errors.Join(body.Unwrap()...)}
	if body.Detail != "" {
		public.Err = fmt.Errorf("%w: %s", public.Err, body.Detail)
	}
	return public
}

// malformed tells an answer that is wrong from one that was cut short.
func (e *BodyError) malformed() bool {
	for _, reason := range []error{ErrMalformed, ErrTooLarge, ErrEndless, ErrNotList, ErrNotWatch, ErrContentType, wire.ErrStatus} {
		if errors.Is(e.Err, reason) {
			return true
		}
	}
	return false
}
