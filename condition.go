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
	ReasonUndecodableObjects = api.ReasonUndecodableObjects
	ReasonCurrent            = api.ReasonCurrent
)
