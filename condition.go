package informer

import "github.com/rvinformer/informer/internal/report"

// Condition says in one value what holds an informer up, or that nothing does.
//
//   - Reason names it. Of several reasons that hold, it is the one to act on first: the constants
//     stand in that order.
//   - Message is for people: the error, or how far a list has come. It is never empty, and may
//     change while the condition lasts, and credentials in it are masked.
//   - Since is when the condition began. It stays while Reason does: an outage with many retries
//     has one Since. Where one condition covered another, the later one has the time at which it
//     began itself. It is zero for an informer that was never started.
type Condition = report.Condition

// ConditionReason is why an informer is as it is. The page docs/status.md says of each what to do.
type ConditionReason = report.ConditionReason

// The reasons, in the order of precedence: the first one that holds is reported.
const (
	// ReasonStopped: Run has returned.
	ReasonStopped = report.ReasonStopped
	// ReasonStopping: the context of Run has ended, and Run waits for calls of the handler, or
	// saves the checkpoint.
	ReasonStopping = report.ReasonStopping
	// ReasonUnauthorized: the server does not accept the credentials (401), or there are none to be
	// had.
	ReasonUnauthorized = report.ReasonUnauthorized
	// ReasonForbidden: the permission to list or watch is missing (403).
	ReasonForbidden = report.ReasonForbidden
	// ReasonNotFound: the server does not have the resource (404), as before a CRD is there, or
	// after it is gone.
	ReasonNotFound = report.ReasonNotFound
	// ReasonServerUnreachable: there is no connection, or it breaks (DNS, TLS, a timeout), or the
	// server cannot serve (5xx).
	ReasonServerUnreachable = report.ReasonServerUnreachable
	// ReasonThrottled: the server asks to be left alone: 429, or 503 with a Retry-After.
	ReasonThrottled = report.ReasonThrottled
	// ReasonStalled: a list or a watch was silent for longer than it may be.
	ReasonStalled = report.ReasonStalled
	// ReasonFailing: a failure that is none of the others: a bad request, or an answer that is no
	// list or watch.
	ReasonFailing = report.ReasonFailing
	// ReasonExpiredLoop: the server has forgotten the version of a list or watch (410), again and
	// again.
	ReasonExpiredLoop = report.ReasonExpiredLoop
	// ReasonHandlerFailing: the handler, or a store of the user's, fails, and what it failed for
	// waits, or is passed over.
	ReasonHandlerFailing = report.ReasonHandlerFailing
	// ReasonHandlerSlow: a change has waited for the handler for longer than ten seconds.
	ReasonHandlerSlow = report.ReasonHandlerSlow
	// ReasonBudgetFull: reading waits, for a second at least, because other informers have used up
	// the Budget.
	ReasonBudgetFull = report.ReasonBudgetFull
	// ReasonCheckpointFailing: the Checkpoint is not in use: see Status.CheckpointError.
	ReasonCheckpointFailing = report.ReasonCheckpointFailing
	// ReasonNotStarted: Run was not called, or is finding out where to go on from.
	ReasonNotStarted = report.ReasonNotStarted
	// ReasonListing: a list is read, or the first one is not delivered yet.
	ReasonListing = report.ReasonListing
	// ReasonUndecodableObjects: an object could not be read, and was skipped: see
	// Status.SkippedError.
	ReasonUndecodableObjects = report.ReasonUndecodableObjects
	// ReasonCurrent: nothing holds the informer up. Changes are delivered as they come.
	ReasonCurrent = report.ReasonCurrent
)
