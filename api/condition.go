package api

import "time"

// Condition says in one value what holds an informer up, or that nothing does.
type Condition struct {
	// Reason names it. Of several reasons that hold, it is the one to act on first: the constants
	// stand in that order.
	Reason ConditionReason
	// Message is for people: the error, or how far a list has come. It is never empty, and may
	// change while the condition lasts, and credentials in it are masked.
	Message string
	// Since is when the condition began. It stays while Reason does: an outage with many retries
	// has one Since. Where one condition covered another, the later one has the time at which it
	// began itself. It is zero for an informer that was never started.
	Since time.Time
}

// ConditionReason is why an informer is as it is. The page docs/status.md says of each what to do.
type ConditionReason string

// The reasons, in the order of precedence: the first one that holds is reported.
const (
	// ReasonStopped: Run has returned.
	ReasonStopped ConditionReason = "Stopped"
	// ReasonStopping: the context of Run has ended, and Run waits for calls of the handler, or
	// saves the checkpoint.
	ReasonStopping ConditionReason = "Stopping"
	// ReasonUnauthorized: the server does not accept the credentials (401), or there are none to be
	// had.
	ReasonUnauthorized ConditionReason = "Unauthorized"
	// ReasonForbidden: the permission to list or watch is missing (403).
	ReasonForbidden ConditionReason = "Forbidden"
	// ReasonNotFound: the server does not have the resource (404), as before a CRD is there, or
	// after it is gone.
	ReasonNotFound ConditionReason = "NotFound"
	// ReasonServerUnreachable: there is no connection, or it breaks (DNS, TLS, a timeout), or the
	// server cannot serve (502, 503, 504). An answer that ends while a slow handler holds up the
	// reading does not count.
	ReasonServerUnreachable ConditionReason = "ServerUnreachable"
	// ReasonThrottled: the server asks to be left alone: 429, or 503 with a Retry-After.
	ReasonThrottled ConditionReason = "Throttled"
	// ReasonStalled: a list or a watch was silent for longer than it may be.
	ReasonStalled ConditionReason = "Stalled"
	// ReasonFailing: a failure that is none of the others: the server fails with the resource (500,
	// 501), the request is bad, or an answer is no list or watch.
	ReasonFailing ConditionReason = "Failing"
	// ReasonExpiredLoop: the server has forgotten the version of a list or watch (410), again and
	// again.
	ReasonExpiredLoop ConditionReason = "ExpiredLoop"
	// ReasonHandlerFailing: the handler, or a store of the user's, fails, and what it failed for
	// waits.
	ReasonHandlerFailing ConditionReason = "HandlerFailing"
	// ReasonHandlerSlow: a change has waited for the handler for longer than ten seconds.
	ReasonHandlerSlow ConditionReason = "HandlerSlow"
	// ReasonBudgetFull: reading waits, for a second at least, because other informers have used up
	// the Budget.
	ReasonBudgetFull ConditionReason = "BudgetFull"
	// ReasonCheckpointFailing: the Checkpoint is not in use: see Status.CheckpointError.
	ReasonCheckpointFailing ConditionReason = "CheckpointFailing"
	// ReasonNotStarted: Run was not called, or is finding out where to go on from.
	ReasonNotStarted ConditionReason = "NotStarted"
	// ReasonListing: a list is read, or the first one is not delivered yet.
	ReasonListing ConditionReason = "Listing"
	// ReasonDeadLetters: the handler has refused changes too often, which are not handed over any
	// more: see DeadLetter.
	ReasonDeadLetters ConditionReason = "DeadLetters"
	// ReasonUndecodableObjects: an object could not be read, and was skipped: see
	// Status.SkippedError.
	ReasonUndecodableObjects ConditionReason = "UndecodableObjects"
	// ReasonNotWatchable: the server lists the resource, and has refused to watch it for minutes, so
	// that it is listed about each minute.
	ReasonNotWatchable ConditionReason = "NotWatchable"
	// ReasonCurrent: nothing holds the informer up. Changes are delivered as they come.
	ReasonCurrent ConditionReason = "Current"
)
