package informer

import "github.com/rvinformer/informer/api"

// Condition says in one value what holds an informer up, or that nothing does. Package api has its
// fields.
type Condition = api.Condition

// ConditionReason is why an informer is as it is.
type ConditionReason = api.ConditionReason

// The reasons, in the order of precedence: the first one that holds is reported. Package api says
// what each means, and the page docs/status.md what to do.
const (
	ReasonStopped            = api.ReasonStopped
	ReasonStopping           = api.ReasonStopping
	ReasonUnauthorized       = api.ReasonUnauthorized
	ReasonForbidden          = api.ReasonForbidden
	ReasonNotFound           = api.ReasonNotFound
	ReasonServerUnreachable  = api.ReasonServerUnreachable
	ReasonThrottled          = api.ReasonThrottled
	ReasonStalled            = api.ReasonStalled
	ReasonFailing            = api.ReasonFailing
	ReasonExpiredLoop        = api.ReasonExpiredLoop
	ReasonHandlerFailing     = api.ReasonHandlerFailing
	ReasonHandlerSlow        = api.ReasonHandlerSlow
	ReasonBudgetFull         = api.ReasonBudgetFull
	ReasonCheckpointFailing  = api.ReasonCheckpointFailing
	ReasonNotStarted         = api.ReasonNotStarted
	ReasonListing            = api.ReasonListing
	ReasonDeadLetters        = api.ReasonDeadLetters
	ReasonUndecodableObjects = api.ReasonUndecodableObjects
	ReasonNotWatchable       = api.ReasonNotWatchable
	ReasonCurrent            = api.ReasonCurrent
)

// ShardKey is the field of an object by which a resource set is divided: ShardByUID or
// ShardByNamespace.
type ShardKey = api.ShardKey

const (
	// ShardByUID divides by metadata.uid: shards are of about equal size.
	ShardByUID = api.ShardByUID
	// ShardByNamespace divides by metadata.namespace: what a namespace has is in one shard, and so
	// is all that has no namespace.
	ShardByNamespace = api.ShardByNamespace
)

// Shard is a part of a resource set: the objects whose hash is in a range. The zero value is the
// whole set. Package api has its fields.
type Shard = api.Shard

// ParseShard reads what String of a Shard has written: a shardSelector of one range, or nothing for
// the whole set.
func ParseShard(text string) (Shard, error) { return api.ParseShard(text) }

// The errors of Run.
var (
	// ErrAlreadyRunning is reported when Run is called while a Run is under way.
	ErrAlreadyRunning = api.ErrAlreadyRunning
	// ErrStorageInUse is reported when Run is called while another informer runs with the same
	// Storage, or with the same store of NewInformer.
	ErrStorageInUse = api.ErrStorageInUse
)

// The errors that an ErrorHandler is called with, and those of a BatchHandler within them. Package
// api has their fields.
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
	// FailedEvents is what OnBatch returns to name the events that it has not taken in.
	FailedEvents = api.FailedEvents
	// FailedEvent is one of FailedEvents.
	FailedEvent = api.FailedEvent
	// PanicError is a panic in the user's code, within one of the errors that name the key.
	PanicError = api.PanicError
	// UnusedCheckpointError says why an informer does not use its Checkpoint.
	UnusedCheckpointError = api.UnusedCheckpointError
)

// ErrPassedOver says, within a *ProcessError or a *BatchError, that a handler has failed for the
// key once too often, so that the change is a DeadLetter.
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

// DeadLetter is a change that a handler has refused so often that it is not handed over any more.
// Package api has its fields.
type DeadLetter = api.DeadLetter

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
