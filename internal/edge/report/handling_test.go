package report

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEveryCallOfASlowHandlerIsTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Progress
		for range 5000 {
			c := p.BeginCall()
			time.Sleep(timedPause)
			c.End()
		}
		counts := p.Snapshot().Counts
		require.EqualValues(t, 5000, counts.HandlerCalls)
		require.EqualValues(t, 5000, counts.HandlerDuration.Count())
		require.InDelta(t, 0.5, counts.HandlerDuration.Sum(), 1e-9)
		require.Nil(t, counts.BatchSize)
	})
}

func TestFastCallsAreTimedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Progress
		burst := int(timedBurst / timedPause)
		for range burst + 160 {
			p.BeginCall().End() // takes no time
		}
		counts := p.Snapshot().Counts
		require.EqualValues(t, burst+160, counts.HandlerCalls)
		require.InDelta(t, burst+160/timedEvery, counts.HandlerDuration.Count(), 2)

		time.Sleep(time.Minute)
		timed := counts.HandlerDuration.Count()
		for range 100 {
			p.BeginCall().End()
			time.Sleep(time.Second)
		}
		require.GreaterOrEqual(t, counts.HandlerDuration.Count()-timed, uint64(100-timedEvery+1))
	})
}

func TestCallsSideBySideAreCounted(t *testing.T) {
	var p Progress
	done := make(chan struct{})
	for range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 1000 {
				c := p.BeginCall()
				p.CountBatch(3)
				c.End()
			}
		}()
	}
	for range 4 {
		<-done
	}
	counts := p.Snapshot().Counts
	require.EqualValues(t, 4000, counts.HandlerCalls)
	require.EqualValues(t, 4000, counts.BatchSize.Count())
	require.InDelta(t, 12000, counts.BatchSize.Sum(), 0)
}
