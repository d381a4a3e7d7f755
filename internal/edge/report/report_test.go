package report

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/failure"
	"github.com/rvinformer/informer/internal/leaf/moment"
)

func TestSkippedItemIsAGap(t *testing.T) {
	var handled []error
	r := &Report{Handler: func(err error) { handled = append(handled, err) }}
	first, second := errors.New("first"), errors.New("second")

	r.BeginGeneration()
	r.Skip(first)
	require.EqualValues(t, 1, r.Gaps.Count())
	require.Equal(t, []error{first}, handled)
	r.EndGeneration()
	require.True(t, r.Stored())
	require.Equal(t, first, r.Snapshot().SkippedError, "the list had it")

	r.BeginGeneration()
	r.EndGeneration()
	s := r.Snapshot()
	require.NoError(t, s.SkippedError, "the list had none")
	require.EqualValues(t, 1, s.Skipped)

	r.Fail(second)
	require.EqualValues(t, 1, r.Gaps.Count(), "a failure is no gap")
}

func TestSnapshotHasTheNewestFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Report{Handler: func(error) {}}
		began := time.Now()
		reading, handling := errors.New("reading"), errors.New("handling")
		r.Fail(reading)
		time.Sleep(time.Minute)
		r.FailHandling(handling)
		require.Equal(t, handling, r.Snapshot().LastError)
		require.Equal(t, began, r.Snapshot().FailingSince, "the first of the failures has not ended")
		time.Sleep(time.Minute)
		r.Fail(reading)
		s := r.Snapshot()
		require.Equal(t, reading, s.LastError)
		require.Equal(t, began, s.FailingSince, "the row has not ended")
		require.Equal(t, began.Add(2*time.Minute), s.LastErrorTime)

		r.Forget(handling)
		require.Equal(t, reading, r.Snapshot().LastError, "only the newest can be forgotten")
		r.Forget(reading)
		require.Equal(t, handling, r.Snapshot().LastError)
		require.Equal(t, began.Add(time.Minute), r.Snapshot().FailingSince, "only the handler fails")
		r.Handled()
		require.NoError(t, r.Snapshot().LastError)
	})
}

func TestMissedObjectIsForgottenByTheNextList(t *testing.T) {
	var g Gaps
	require.False(t, g.Missed())
	g.Miss()
	require.True(t, g.Missed())
	require.Zero(t, g.Count(), "the list that follows repairs it")
	g.BeginList()
	require.False(t, g.Missed())
}

func TestOfTwoConditionsTheFirstReasonCountsAndThenTheOlder(t *testing.T) {
	now := time.Now()
	for i, reason := range precedence {
		for _, later := range precedence[i+1:] {
			a, b := api.Condition{Reason: reason, Since: now}, api.Condition{Reason: later, Since: now.Add(-time.Hour)}
			require.Equal(t, a, Worse(a, b))
			require.Equal(t, a, Worse(b, a))
		}
		older := api.Condition{Reason: reason, Since: now.Add(-time.Hour)}
		require.Equal(t, older, Worse(api.Condition{Reason: reason, Since: now}, older))
		require.Equal(t, older, Worse(older, api.Condition{Reason: reason, Since: now}))
	}
}

// Whatever is wrong at once, the reasons come up in their order as one after the other is over.
func TestReasonsComeUpInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &delivery{Delivery{Oldest: moment.Now()}}
		r := &Report{Progress: Progress{Consumer: d}, Handler: func(error) {}}
		status := func(code int32) error { return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code}} }
		var met []api.ConditionReason
		meet := func() { met = append(met, r.Condition().Reason) }
		meet() // NotStarted
		r.BeginRun()
		r.CheckpointUnused(errors.New("in use"))
		meet()
		r.Enter(api.PhaseListing)
		r.Skip(&api.ItemError{Err: errors.New("malformed")})
		r.Fail(&api.StoreError{Op: "Add", Err: errors.New("full")})
		r.Succeed()
		for range maxExpiries {
			r.Fail(status(410))
		}
		r.FailHandling(&api.ProcessError{Err: errors.New("full")})
		r.Starved(true)
		time.Sleep(time.Minute)
		for _, err := range []error{status(401), status(403), status(404), status(503), status(429), &api.StallError{}, status(400)} {
			r.Fail(err)
			meet()
		}
		r.Succeed()
		meet() // ExpiredLoop
		r.WatchOpened()
		time.Sleep(steadyWatch)
		meet() // HandlerFailing
		r.Handled()
		r.GivenBack()
		meet() // HandlerSlow
		d.is.Oldest = 0
		meet() // BudgetFull
		r.Starved(false)
		meet() // CheckpointFailing
		r.Checkpointed(time.Now(), time.Second)
		meet() // Listing
		r.Enter(api.PhaseWatching)
		meet() // not delivered yet
		d.is.Synced = true
		meet() // UndecodableObjects
		r.Fail(failure.NotWatchable(status(405)))
		r.BeginGeneration()
		r.EndGeneration()
		meet() // NotWatchable
		r.Enter(api.PhaseListing)
		meet() // still, for that list takes the place of a watch
		r.Enter(api.PhaseWatching)
		r.WatchOpened()
		meet()
		r.Enter(api.PhaseStopped)
		meet()
		require.Equal(t, []api.ConditionReason{
			api.ReasonNotStarted, api.ReasonCheckpointFailing,
			api.ReasonUnauthorized, api.ReasonForbidden, api.ReasonNotFound, api.ReasonServerUnreachable, api.ReasonThrottled, api.ReasonStalled, api.ReasonFailing,
			api.ReasonExpiredLoop, api.ReasonHandlerFailing, api.ReasonHandlerSlow, api.ReasonBudgetFull, api.ReasonCheckpointFailing, api.ReasonListing, api.ReasonListing,
			api.ReasonUndecodableObjects, api.ReasonNotWatchable, api.ReasonNotWatchable, api.ReasonCurrent, api.ReasonStopped,
		}, met)
	})
}

// delivery is a consumer that is as far as it says.
type delivery struct{ is Delivery }

func (d *delivery) Delivery() Delivery { return d.is }
func (d *delivery) Subject() string    { return "pods" }
func (d *delivery) Pending() string    { return "the test" }
