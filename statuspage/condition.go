package statuspage

import (
	"slices"

	"github.com/rvinformer/informer"
)

// level is how much a condition needs somebody. The worst is the first.
type level int

const (
	wrong level = iota // an operator has to act, on the server or in the program
	slow               // it goes on, but not as fast as changes come
	busy               // it goes on by itself, as a list does
	idle               // it does not run
	well
	levels // how many there are
)

var levelNames = [levels]string{"wrong", "slow", "busy", "idle", "well"}

func (l level) String() string { return levelNames[l] }

// kind is what the page knows of a reason.
type kind struct {
	reason informer.ConditionReason
	level  level
	// advice is what to do.
	advice string
}

// unknown stands for a reason that the page does not know, and for none.
const unknown informer.ConditionReason = "Unknown"

// kinds are in the order in which they are shown. The first is that of all reasons that the page does
// not know: they are as bad as the worst.
var kinds = []kind{
	{unknown, wrong, "The page does not know this condition. Read the message, and the documentation of the informer."},
	{informer.ReasonUnauthorized, wrong, "Renew the credentials that the program uses for this server."},
	{informer.ReasonForbidden, wrong, "Allow the program to list and watch the resource: the message names the permission."},
	{informer.ReasonNotFound, wrong, "Install the CRD, or correct the version. The informer begins by itself, within a minute, once the server has the resource."},
	{informer.ReasonServerUnreachable, wrong, "Look at the server and the network on the way to it. The informer goes on by itself once the server answers."},
	{informer.ReasonStalled, wrong, "The server sent nothing for longer than it should. If that repeats, look for a proxy on the way that holds answers back."},
	{informer.ReasonFailing, wrong, "Read the message: the server fails with this resource, its answer is not one to a list or a watch, or the request is bad."},
	{informer.ReasonExpiredLoop, wrong, "The server forgets versions sooner than the informer can follow. Look at its compaction interval and at its load."},
	{informer.ReasonHandlerFailing, wrong, "The handler returns errors or panics. What it failed for is tried again."},
	{informer.ReasonDeadLetters, wrong, "The handler has refused changes too often, which are not handed over any more. They stand below, with the errors."},
	{informer.ReasonCheckpointFailing, wrong, "The checkpoint cannot be used, or cannot be saved. The message says why, and whether the informer waits for it."},
	{informer.ReasonUndecodableObjects, wrong, "Objects are skipped because they cannot be read. The message names one of them."},
	{informer.ReasonThrottled, slow, "The server asks for fewer requests. The informer waits as long as it was told to."},
	{informer.ReasonHandlerSlow, slow, "Changes wait for the handler. Give it more workers, or batches, or make it faster."},
	{informer.ReasonBudgetFull, slow, "Other informers have used up the budget. Their handlers are slow, or the budget is too small."},
	{informer.ReasonNotWatchable, slow, "The server lists the resource, and refuses to watch it: the message says why. It is listed about each minute. Allow the program to watch it, if that is what is missing."},
	{informer.ReasonListing, busy, "A list is being read, or delivered to the handler. Nothing is to be done."},
	{informer.ReasonNotStarted, idle, "The informer was not started yet."},
	{informer.ReasonStopping, idle, "The informer was told to stop. The message says what it waits for."},
	{informer.ReasonStopped, idle, "The informer was stopped."},
	{informer.ReasonCurrent, well, "Changes are delivered as they come."},
}

// ranks are the places of reasons in kinds.
var ranks = func() map[informer.ConditionReason]int {
	ranks := map[informer.ConditionReason]int{}
	for i, k := range kinds {
		ranks[k.reason] = i
	}
	return ranks
}()

// rankOf returns the place of a reason in kinds.
func rankOf(reason informer.ConditionReason) int { return ranks[reason] }

// kindOf returns what is known of a reason.
func kindOf(reason informer.ConditionReason) kind { return kinds[rankOf(reason)] }

// knownReason reports whether there is such a reason.
func knownReason(reason string) bool {
	return slices.ContainsFunc(kinds, func(k kind) bool { return string(k.reason) == reason })
}
