package delivery_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

var errBusy = errors.New("429: the item is rejected")

// busyFor returns FailedEvents that put off the events of a batch for which busy returns true, nil if
// there are none.
func busyFor(batch []string, after time.Duration, busy func(event string) bool) error {
	var failed informer.FailedEvents
	for i, event := range batch {
		if busy(event) {
			failed = append(failed, informer.FailedEvent{Index: i, Err: errBusy, Later: true, After: after})
		}
	}
	if failed == nil {
		return nil
	}
	return failed
}

// A bulk request whose items are answered with 429 at random takes all objects in, in few calls, and
// no object becomes a dead letter.
func TestItemsThatAreBusyAtRandomMakeNoDeadLetters(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		dice := rand.New(rand.NewPCG(7, 7))
		calls := 0
		b := harness.Batches{See: busy, Fail: func(batch []string) error {
			calls++
			return busyFor(batch, 0, func(string) bool { return dice.IntN(10) < 3 })
		}}
		i := harness.Settled(w, informer.InformerConfig{BatchHandler: &b, MaxAttempts: 1})
		began := calls
		together(w, func() { w.CreatePods(harness.Keys(300)...) })
		harness.Sleep(10 * time.Minute)
		require.Empty(t, i.DeadLetters())
		require.Zero(t, i.Status().Queued)
		require.LessOrEqual(t, calls-began, 30, "each call takes in most of what is left")
		w.RequireState(&b.Recorder)
	})
}

// An event that comes later holds up no other one, is never a dead letter, and is not blamed for what
// fails after it.
func TestEventThatComesLaterIsNoDeadLetter(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var locked, down atomic.Bool
		locked.Store(true)
		var alone atomic.Int32
		b := harness.Batches{See: busy, Fail: func(batch []string) error {
			if down.Load() {
				return errors.New("connection refused")
			}
			if len(batch) == 1 && strings.Contains(batch[0], "a/2") {
				alone.Add(1)
			}
			return busyFor(batch, 0, func(event string) bool { return locked.Load() && strings.Contains(event, "a/2") })
		}}
		i := harness.Settled(w, informer.InformerConfig{BatchHandler: &b, MaxAttempts: 2})
		together(w, func() { w.CreatePods("a/1", "a/2", "a/3") })
		require.Equal(t, 1, i.Status().Queued)
		harness.Sleep(20 * time.Minute)
		require.Empty(t, i.DeadLetters())
		require.Less(t, alone.Load(), int32(80), "the pauses grow")
		w.CreatePods("a/4")
		synctest.Wait()
		require.Equal(t, 1, i.Status().Queued, "the new one does not wait for it")
		require.Equal(t, informer.ReasonHandlerFailing, i.Status().Condition.Reason)

		down.Store(true)
		time.Sleep(10 * time.Minute)
		require.Empty(t, i.DeadLetters(), "the destination is away for less than an outage")
		down.Store(false)
		locked.Store(false)
		harness.Sleep(time.Minute)
		w.RequireState(&b.Recorder)
		require.Equal(t, informer.ReasonCurrent, i.Status().Condition.Reason)
	})
}

// An event comes again when the destination says, in its newest state. Others that FailedEvents name
// come after the usual pauses.
func TestEventComesLaterWhenTheDestinationSays(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var tried [][]string
		var at []time.Time
		b := harness.Batches{See: busy, Fail: func(batch []string) error {
			if tried, at = append(tried, batch), append(at, time.Now()); len(tried) == 2 {
				return informer.FailedEvents{
					{Index: 0, Err: errBusy, Later: true, After: time.Minute},
					{Index: 1, Err: errPoison, After: time.Hour},
					{Index: 2, Err: errBusy, Later: true, After: 24 * time.Hour},
					{Index: 3, Err: errBusy, Later: true, After: -time.Hour},
				}
			}
			return nil
		}}
		i := harness.Settled(w, informer.InformerConfig{BatchHandler: &b})
		together(w, func() { w.CreatePods("a/1", "a/2", "a/3", "a/4", "a/5") })
		w.UpdatePod("a/1", "newer")
		harness.Sleep(2 * time.Hour)
		require.Len(t, tried, 6)
		require.ElementsMatch(t, [][]string{{"add a/2"}, {"add a/4"}}, tried[2:4])
		require.Equal(t, [][]string{{"add a/1"}, {"add a/3"}}, tried[4:])
		require.Less(t, at[3].Sub(at[1]), time.Second)
		require.GreaterOrEqual(t, at[4].Sub(at[1]), time.Minute)
		require.Less(t, at[4].Sub(at[1]), 2*time.Minute)
		require.GreaterOrEqual(t, at[5].Sub(at[1]), time.Hour)
		require.Zero(t, i.Status().Queued)
		w.RequireState(&b.Recorder)
	})
}

// A batch that fails as a whole is not tried in parts where each event alone is to come later.
func TestPartsThatComeLaterAreNotTakenIn(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var well atomic.Bool
		well.Store(true)
		var lock sync.Mutex
		var sizes []int
		seen := func() []int {
			lock.Lock()
			defer lock.Unlock()
			return slices.Clone(sizes)
		}
		b := harness.Batches{See: busy, Fail: func(batch []string) error {
			lock.Lock()
			sizes = append(sizes, len(batch))
			lock.Unlock()
			switch {
			case well.Load(), strings.Contains(batch[0], "z/busy"):
				return nil
			case len(batch) > 1:
				return errors.New("the disk is full")
			}
			return busyFor(batch, 0, func(string) bool { return true })
		}}
		i := harness.Settled(w, informer.InformerConfig{BatchHandler: &b, MaxAttempts: 2})
		began := len(seen())
		well.Store(false)
		together(w, func() { w.CreatePods(harness.Keys(100)...) })
		harness.Sleep(time.Second)
		require.Equal(t, []int{1, 100, 100, 100, 1, 1}, seen()[began:][:6])
		time.Sleep(time.Hour)
		require.Empty(t, i.DeadLetters())
		well.Store(true)
		harness.Sleep(time.Minute)
		w.RequireState(&b.Recorder)
	})
}

// Failures of an earlier batch do not count for the one that events come in later.
func TestBatchOfWhatComesLaterIsTriedInPartsAfterItsOwnFailures(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		down := errors.New("connection refused")
		later := func(at int) error {
			return informer.FailedEvents{{Index: at, Err: errBusy, Later: true, After: time.Minute}}
		}
		answers := []error{nil, down, down, later(0), later(0), nil, down, down}
		var tried [][]string
		see := func(events []informer.Event) {
			if busy(events); events[0].Key == "z/slow" {
				time.Sleep(2 * time.Minute)
			}
		}
		b := harness.Batches{See: see, Fail: func(batch []string) (err error) {
			if len(tried) < len(answers) {
				err = answers[len(tried)]
			}
			tried = append(tried, batch)
			return err
		}}
		harness.Settled(w, informer.InformerConfig{BatchHandler: &b})
		together(w, func() { w.CreatePods("a/1", "a/2") })
		harness.Sleep(10 * time.Second)
		w.CreatePods("a/3")
		harness.Sleep(time.Second)
		w.CreatePods("z/slow") // until both are due
		harness.Sleep(time.Hour)
		both, last := []string{"add a/1", "add a/2"}, []string{"add a/1", "add a/3"}
		require.Equal(t, [][]string{both, both, both, {"add a/3"}, {"add z/slow"}, last, last, last}, tried[1:])
		w.RequireState(&b.Recorder)
	})
}
