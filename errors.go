package informer

import "github.com/rvinformer/informer/api"

// The errors of Run.
var (
	// ErrAlreadyRunning is reported when Run is called while a Run is under way.
	ErrAlreadyRunning = api.ErrAlreadyRunning
	// ErrStorageInUse is reported when Run is called while another informer runs with the same
	// Storage, or with the same store of NewInformer.
	ErrStorageInUse = api.ErrStorageInUse
)

// What an ErrorHandler is called with. Package api has the fields.
type (
	// ItemError says that one object of a list, or one event of a watch, was skipped.
	ItemError = api.ItemError
	// BodyError says that the answer to a list or a watch could not be read to its end.
	BodyError = api.BodyError
	// StallError says that a list or a watch was silent for too long, and was given up.
	StallError = api.StallError
	// CredentialError says that a request was not sent, because the exec plugin of the rest.Config
	// gave no credentials.
	CredentialError = api.CredentialError
	// StoreError says that a store, an ExtraStore or a CheckpointStore refused an operation.
	StoreError = api.StoreError
	// ProcessError says that Config.Process, or a handler, failed for a key.
	ProcessError = api.ProcessError
	// BatchError says that a BatchHandler did not take a batch in.
	BatchError = api.BatchError
	// PanicError is a panic in the user's code, within one of the errors that name the key.
	PanicError = api.PanicError
	// UnusedCheckpointError says why an informer does not use its Checkpoint.
	UnusedCheckpointError = api.UnusedCheckpointError
)

// ErrPassedOver says, within a *ProcessError or a *BatchError, that a handler has panicked for the
// key once too often, and is not called for it before the object changes or is listed again.
var ErrPassedOver = api.ErrPassedOver

// The reasons for which an answer of the server cannot be read, within an *ItemError or a
// *BodyError. An answer that was cut short is io.ErrUnexpectedEOF.
var (
	ErrMalformed   = api.ErrMalformed
	ErrTooLarge    = api.ErrTooLarge
	ErrEndless     = api.ErrEndless
	ErrNotList     = api.ErrNotList
	ErrNotWatch    = api.ErrNotWatch
	ErrContentType = api.ErrContentType
)

// WaitError says that a call of WaitUntil did not see its version. Package api has its fields.
type WaitError = api.WaitError

// The reasons of a *WaitError, beside the error of the context.
var (
	// ErrUnorderedVersion says that a resource version cannot be compared.
	ErrUnorderedVersion = api.ErrUnorderedVersion
	// ErrStopped says that Run has returned, or that the handler was removed.
	ErrStopped = api.ErrStopped
	// ErrServerRestored says that the server's resource versions went back during the wait, as
	// after a restore from a backup.
	ErrServerRestored = api.ErrServerRestored
	// ErrNoHandler says that a SharedResourceVersionInformer has no handler.
	ErrNoHandler = api.ErrNoHandler
)
