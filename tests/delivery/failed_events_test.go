package delivery_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

var errPoison = errors.New("the row is refused")

// refusing returns FailedEvents for the events of a batch whose text contains one of names, nil if
// there is none.
func refusing(batch []string, names ...string) error {
	var failed informer.FailedEvents
	for i, event := range batch {
		for _, name := range names {
			if strings.Contains(event, name) {
				failed = append(failed, informer.FailedEvent{Index: i, Err: fmt.Errorf("%w: %s", errPoison, name)})
			}
		}
	}
	if failed == nil {
		return nil
	}
	return failed
}

// The events that FailedEvents names come again, after the usual pauses. All others are
// acknowledged by the same call.
func TestFailedEventsComeAgainWithoutTheOthers(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var tried [][]string
		var at []time.Time
		b := harness.Batches{See: busy, Fail: func(batch []string) error {
			tried, at = append(tried, batch), append(at, time.Now())
			if len(tried) < 6 {
				return refusing(batch, "a/2", "a/4")
			}
			return nil
		}}
		var f harness.Failures
		i := harness.Settled(w, informer.InformerConfig{BatchHandler: &b, ErrorHandler: f.Handle})
		together(w, func() { w.CreatePods("a/1", "a/2", "a/3", "a/4", "a/5") })
		require.Equal(t, 2, i.Status().Queued, "three are acknowledged")
		require.Equal(t, informer.ReasonHandlerFailing, i.Status().Condition.Reason)
		w.CreatePods("a/6")
		newest := w.ResourceVersion()
		synctest.Wait()
		require.NotEqual(t, newest, i.Status().ResourceVersion, "two are not acknowledged")
		harness.Sleep(time.Minute)

		require.Equal(t, newest, i.Status().ResourceVersion)
		require.Zero(t, i.Status().Queued)
		require.Equal(t, informer.ReasonCurrent, i.Status().Condition.Reason)
		var again [][]string
		var pauses []time.Duration
		for n, batch := range tried[2:] {
			if batch[0] != "add a/6" {
				require.Equal(t, []string{"add a/2", "add a/4"}, batch)
				again = append(again, batch)
				pauses = append(pauses, at[n+2].Sub(at[1]))
			}
		}
		require.NotEmpty(t, again)
		require.GreaterOrEqual(t, pauses[0], 100*time.Millisecond)
		w.RequireState(&b.Recorder)

		failures := harness.Only[*informer.BatchError](&f)
		require.Len(t, failures, len(again), "one for each call but the last")
		for n, err := range failures {
			require.Equal(t, []string{"a/2", "a/4"}, err.Keys)
			require.Equal(t, n+1, err.Attempts)
			var failed informer.FailedEvents
			require.ErrorAs(t, err, &failed)
			require.Len(t, failed, 2)
			require.ErrorIs(t, err, errPoison)
		}
	})
}

// FailedEvents may be wrapped.
func TestFailedEventsMayBeWrapped(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var tried [][]string
		b := harness.Batches{See: busy, Fail: func(batch []string) error {
			if tried = append(tried, batch); len(tried) == 2 {
				return fmt.Errorf("table pods: %w", refusing(batch, "a/2"))
			}
			return nil
		}}
		harness.Settled(w, informer.InformerConfig{BatchHandler: &b})
		together(w, func() { w.CreatePods("a/1", "a/2", "a/3") })
		harness.Sleep(time.Second)
		require.Equal(t, [][]string{{"add a/1", "add a/2", "add a/3"}, {"add a/2"}}, tried[1:])
		w.RequireState(&b.Recorder)
	})
}

// FailedEvents that name no event, one twice, or one that is not in the batch acknowledge nothing,
// and the error says what is wrong with them.
func TestFailedEventsThatAreWrongAcknowledgeNothing(t *testing.T) {
	for want, wrong := range map[string]informer.FailedEvents{
		"name none":          {},
		"name event 1 twice": {{Index: 1, Err: errPoison}, {Index: 0}, {Index: 1}},
		"name event 3":       {{Index: 3, Err: errPoison}},
		"name event -1":      {{Index: 0}, {Index: -1}},
	} {
		harness.BubbleRun(t, want, informertest.Options{}, func(t *testing.T, w *harness.World) {
			var tried [][]string
			b := harness.Batches{See: busy, Fail: func(batch []string) error {
				if tried = append(tried, batch); len(tried) == 2 {
					return wrong
				}
				return nil
			}}
			var f harness.Failures
			i := harness.Settled(w, informer.InformerConfig{BatchHandler: &b, ErrorHandler: f.Handle})
			together(w, func() { w.CreatePods("a/1", "a/2", "a/3") })
			require.Equal(t, 3, i.Status().Queued)
			harness.Sleep(time.Second)
			all := []string{"add a/1", "add a/2", "add a/3"}
			require.Equal(t, [][]string{all, all}, tried[1:])
			failures := harness.Only[*informer.BatchError](&f)
			require.Len(t, failures, 1)
			require.Len(t, failures[0].Keys, 3)
			require.ErrorContains(t, failures[0], "FailedEvents for 3 events "+want)
			w.RequireState(&b.Recorder)
		})
	}
}

// A newer state of an object replaces the event that failed, and its deletion too: what was taken in
// of it is not known.
func TestFailedEventComesInItsNewestState(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var tried [][]string
		var well atomic.Bool
		b := harness.Batches{See: busy, Fail: func(batch []string) error {
			tried = append(tried, batch)
			if !well.Load() {
				return refusing(batch, "a/2", "a/3")
			}
			return nil
		}}
		i := harness.Settled(w, informer.InformerConfig{BatchHandler: &b})
		together(w, func() { w.CreatePods("a/1", "a/2", "a/3") })
		w.UpdatePod("a/2", "newer")
		w.DeletePods("a/3")
		synctest.Wait()
		well.Store(true)
		harness.Sleep(time.Minute)
		require.Equal(t, []string{"add a/2", "delete a/3"}, tried[len(tried)-1])
		require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion)
		w.RequireState(&b.Recorder)
	})
}

// What FailedEvents does not name is in the Storage and in the checkpoint, so that another process
// is told again only what failed.
func TestARestartAfterFailedEvents(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2", "a/3")
		store := &harness.MemoryCheckpoint{}
		b := harness.Batches{Fail: func(batch []string) error { return refusing(batch, "a/2") }}
		first := harness.Follow(w, informer.InformerConfig{BatchHandler: &b, Checkpoint: store})
		stop := harness.Settle(first.RunWithContext)
		time.Sleep(10 * time.Second)
		require.Equal(t, []string{"add a/1 initial", "add a/3 initial"}, b.Events())
		require.False(t, first.HasSynced())
		stop()

		again := harness.Batches{}
		second := harness.Settled(w, informer.InformerConfig{BatchHandler: informer.IgnoreSynced(&again), Checkpoint: store})
		require.Len(t, again.Events(), 1)
		require.Contains(t, again.Events()[0], "a/2")
		require.True(t, second.HasSynced())
	})
}

// One handler of a shared informer that fails for an event holds up neither its other events nor
// the other handlers.
func TestFailedEventsOfASharedHandler(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		shared := harness.Share(w, informer.InformerConfig{})
		poisoned := harness.Batches{Fail: func(batch []string) error { return refusing(batch, "a/2") }}
		well := harness.Batches{}
		for _, b := range []*harness.Batches{&poisoned, &well} {
			_, err := shared.AddHandler(informer.HandlerConfig{BatchHandler: b})
			require.NoError(t, err)
		}
		defer harness.Settle(shared.RunWithContext)()
		w.CreatePods("a/1", "a/2", "a/3")
		harness.Sleep(time.Minute)
		require.ElementsMatch(t, []string{"add a/1", "add a/3"}, poisoned.Events())
		w.RequireState(&well.Recorder)
	})
}
