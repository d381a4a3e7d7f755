package informer

import (
	"github.com/rvinformer/informer/internal/report"
	"github.com/rvinformer/informer/internal/waiting"
	"github.com/rvinformer/informer/internal/wire"
)

// ErrAlreadyRunning is reported when Run is called while a Run is under way.
var ErrAlreadyRunning = report.ErrAlreadyRunning

// ErrStorageInUse is reported when Run is called while another informer runs with the same
// Storage, or with the same store of NewInformer. Each would delete what the other lists.
var ErrStorageInUse = report.ErrStorageInUse

// ItemError says that one object of a list, or one event of a watch, could not
// be read, or that Transform failed for it. It was skipped and counted; the others go on.
//
//   - Index is the object's place in its page, or the event's in its watch, from 0.
//   - Watch tells an event of a watch from an object of a list.
//   - Key is "namespace/name" or "name", empty where even that is not known.
//   - Err is what is wrong with it.
type ItemError = report.ItemError

// StoreError says that a store, an ExtraStore or a CheckpointStore refused an
// operation. A change that a store or an ExtraStore refused is lost to it until the object
// changes or is listed again.
//
//   - Op is the method that failed, for instance "Add".
//   - Key is that of the object, empty for an operation on many.
//   - Err is what the store returned.
type StoreError = report.StoreError

// ProcessError says that Config.Process, or a handler, failed for a key.
//
//   - Key is "namespace/name" or "name", empty for a failure that has no key.
//   - Err is what Process returned, or a *PanicError.
type ProcessError = report.ProcessError

// UnusedCheckpointError says why an informer does not use its Checkpoint.
//
//   - Checkpoint is its name, as in Status.
//   - NeverSaved tells that the content of the store belongs to something else, and stays as it is:
//     Run waits, and nothing is delivered or saved unless BeginAnew is set.
//   - Err is what is wrong: a *CheckpointError, a *CheckpointSourceError or a *StoreError.
type UnusedCheckpointError = report.UnusedCheckpointError

// BatchError says that a BatchHandler did not take a batch in.
//
//   - Keys are those of the events, in their order.
//   - Attempts counts the calls that have failed, in a row, for one of them.
//   - Err is what OnBatch returned, or a *PanicError.
type BatchError = report.BatchError

// ErrPassedOver says, within a *ProcessError or a *BatchError, that a handler has
// panicked for the key once too often: it is not called for it again before the object
// changes, or is listed again. Until then, the condition HandlerFailing names the key.
var ErrPassedOver = report.ErrPassedOver

// PanicError is a panic in a handler or in Config.Process, within a ProcessError or
// a BatchError, or in Transform, within an ItemError; these name the key. By itself it
// is a panic in a tweak or a transport of a list or a watch. Value is what the code panicked
// with.
type PanicError = report.PanicError

// StallError says that a list or a watch was silent for longer than it may be, which is
// Silence, and was given up for a new one.
type StallError = report.StallError

// CredentialError says that a request was not sent, because the exec plugin of the
// rest.Config gave no credentials. All informers of a DynamicListerWatcherFactory share a
// failure until the plugin is run again, 30 s later at most.
//
//   - Attempts counts the runs that have failed, in a row.
//   - Err is what is wrong with the plugin.
type CredentialError = report.CredentialError

// WaitError says that a call of WaitUntil did not see its version.
//
//   - Informer is the name of the informer.
//   - ResourceVersion is the version that the caller waits for.
//   - Reached is the version up to which everything is acknowledged; empty before the first
//     complete list.
//   - Err is why the wait ended: the error of its context, ErrUnorderedVersion, ErrStopped,
//     ErrServerRestored or ErrNoHandler.
type WaitError = waiting.Error

var (
	// ErrUnorderedVersion says, within a *WaitError, that a resource version cannot be compared:
	// the empty one, "0", and those that are no decimal numbers. It is that of the caller, or the
	// server makes such versions.
	ErrUnorderedVersion = waiting.ErrUnordered
	// ErrStopped says, within a *WaitError, that Run has returned, or that the handler was removed.
	ErrStopped = waiting.ErrStopped
	// ErrServerRestored says, within a *WaitError, that the server's resource versions went back
	// during the wait, as after a restore from a backup. What was written at the version may be
	// lost.
	ErrServerRestored = waiting.ErrRestored
	// ErrNoHandler says, within a *WaitError, that a SharedResourceVersionInformer has no handler
	// that could acknowledge anything.
	ErrNoHandler = waiting.ErrNoHandler
)

// The reasons for which an answer of the server cannot be read, within an *ItemError (that
// object is lost) or a *BodyError (the rest of the answer is). An answer that was cut short
// is io.ErrUnexpectedEOF.
var (
	// ErrMalformed says that it is not in the syntax, or not of the types, that it
	// should be of.
	ErrMalformed = wire.ErrMalformed
	// ErrTooLarge says that an object, or the part between two of them, is larger
	// than 16 MiB.
	ErrTooLarge = wire.ErrTooLarge
	// ErrEndless says that an object that was too large did not end within 256 MiB.
	ErrEndless = wire.ErrEndless
	// ErrNotList and ErrNotWatch say that it is something else: the page of a proxy
	// for instance.
	ErrNotList  = wire.ErrNotList
	ErrNotWatch = wire.ErrNotWatch
	// ErrContentType says that it is neither JSON nor the protobuf of Kubernetes.
	ErrContentType = wire.ErrContentType
)

// BodyError says that the answer to a list or a watch could not be read to its
// end. What came before is delivered, and what is missing is asked for again.
//
//   - Watch tells a watch from a list.
//   - Offset is the place in bytes of the fault, and Items the number of objects, or events,
//     before it.
//   - Head is how an answer begins that is no list or watch. It is empty where objects may
//     stand in it, and credentials are masked.
//   - Err is what is wrong: one of the errors above, or that of the connection.
type BodyError = wire.BodyError
