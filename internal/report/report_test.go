package report

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
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
