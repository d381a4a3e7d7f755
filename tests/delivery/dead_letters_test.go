package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// letterKeys are the keys of the dead letters.
func letterKeys(i informer.ResourceVersionInformer) []string {
	keys := []string{}
	for _, letter := range i.DeadLetters() {
		keys = append(keys, letter.Key)
	}
	return keys
}

// An event that fails by itself MaxAttempts times is a dead letter: nothing waits for it any more,
// and all that is to be known of it is told.
func TestEventThatFailsTooOftenIsADeadLetter(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		pods := harness.Keys(500)
		p := &poisoned{keys: sets.New(pods[321])}
		b := harness.Batches{See: busy, Fail: p.fail}
		var f harness.Failures
		i := harness.Settled(w, informer.InformerConfig{BatchHandler: &b, MaxAttempts: 5, ErrorHandler: f.Handle})
		together(w, func() { w.CreatePods(pods...) })
		began := time.Now()
		time.Sleep(time.Minute)

		require.Len(t, b.State(), 1+499)
		require.True(t, i.HasSynced())
		status := i.Status()
		require.Zero(t, status.Queued)
		require.Equal(t, 1, status.DeadLetters)
		require.Equal(t, w.ResourceVersion(), status.ResourceVersion)
		require.Equal(t, informer.ReasonDeadLetters, status.Condition.Reason)
		require.Contains(t, status.Condition.Message, pods[321])
		require.Contains(t, status.Condition.Message, "the transaction was rolled back")
		letters := i.DeadLetters()
		require.Len(t, letters, 1)
		letter := letters[0]
		versions := w.Versions()
		require.Equal(t, pods[321], letter.Key)
		require.Equal(t, versions[pods[321]], letter.ResourceVersion)
		require.NotEmpty(t, letter.UID)
		require.Equal(t, informer.Added, letter.Type)
		require.Equal(t, "the transaction was rolled back", letter.FirstError)
		require.Equal(t, "the transaction was rolled back", letter.LastError)
		require.Equal(t, 7, letter.Attempts, "three with others, the last of which was tried in parts")
		require.WithinDuration(t, began, letter.Since, 2*time.Second)
		require.Equal(t, letter.Since, status.Condition.Since)
		gaveUp := 0
		for _, err := range harness.Only[*informer.BatchError](&f) {
			if errors.Is(err, informer.ErrPassedOver) {
				gaveUp++
				require.Equal(t, []string{pods[321]}, err.Keys)
			}
		}
		require.Equal(t, 1, gaveUp)

		calls := len(p.after(0))
		w.CreatePods("b/new")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, i.WaitUntil(ctx, w.ResourceVersion()))
		time.Sleep(time.Hour)
		require.Len(t, p.after(calls), 1, "only the new one")
		require.Less(t, time.Since(i.Status().CurrentAsOf), 2*time.Minute)

		// A newer state is tried at once, and is the dead letter if it fails too.
		w.UpdatePod(pods[321], "changed")
		synctest.Wait()
		require.Len(t, p.after(calls+1), 1)
		require.Equal(t, informer.ReasonHandlerFailing, i.Status().Condition.Reason)
		w.UpdatePod("b/new", "changed")
		time.Sleep(time.Minute)
		newer := i.DeadLetters()
		require.Len(t, newer, 1)
		require.NotEqual(t, letter.ResourceVersion, newer[0].ResourceVersion)
		require.Equal(t, 7+6, newer[0].Attempts, "the first one may have failed because the destination is away")
		require.Equal(t, letter.Since, newer[0].Since)

		p.refuse()
		w.UpdatePod(pods[321], "changed again")
		synctest.Wait()
		w.RequireState(&b.Recorder)
		require.Empty(t, i.DeadLetters())
		require.Zero(t, i.Status().DeadLetters)
		require.Equal(t, informer.ReasonCurrent, i.Status().Condition.Reason)
	})
}

// What ends a dead letter, and that nothing else than that brings it again.
func TestWhatEndsADeadLetter(t *testing.T) {
	for name, end := range map[string]func(w *harness.World){
		"deletion":            func(w *harness.World) { w.DeletePods("a/2") },
		"another of its name": func(w *harness.World) { w.DeletePods("a/2"); w.CreatePods("a/2") },
		"list":                func(w *harness.World) { w.Relist() },
		"deletion and list":   func(w *harness.World) { w.DeletePods("a/2"); w.Relist() },
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/1", "a/2", "a/3")
			p := &poisoned{keys: sets.New("a/2")}
			b := harness.Batches{Fail: p.fail}
			i := harness.Running(w, informer.InformerConfig{BatchHandler: &b, MaxAttempts: 3})
			time.Sleep(time.Minute)
			require.Equal(t, []string{"a/2"}, letterKeys(i))
			calls := len(p.after(0))
			time.Sleep(time.Hour)
			require.Empty(t, p.after(calls))
			p.refuse()
			end(w)
			time.Sleep(time.Minute)
			w.RequireState(&b.Recorder)
			require.Empty(t, i.DeadLetters())
			if strings.HasPrefix(name, "deletion") {
				require.Contains(t, strings.Join(b.Events(), "\n"), "delete a/2", "the handler may have begun to take it in")
			}
		})
	}
}

// The deletion of an object may be the dead letter. The next list tells it again.
func TestDeletionIsADeadLetter(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2")
		b := harness.Batches{}
		p := &poisoned{}
		b.Fail = p.fail
		s := &harness.MemoryCheckpoint{}
		config := informer.InformerConfig{BatchHandler: &b, MaxAttempts: 3, Checkpoint: s}
		i := harness.Follow(w, config)
		stop := harness.Start(i.RunWithContext)
		time.Sleep(time.Second)
		p.refuse("a/2")
		w.DeletePods("a/2")
		time.Sleep(10 * time.Millisecond)
		w.UpdatePod("a/1", "changed")
		time.Sleep(time.Minute)
		require.Equal(t, []string{"a/2"}, letterKeys(i))
		require.Equal(t, informer.Deleted, i.DeadLetters()[0].Type)
		stop()

		p.refuse()
		i = harness.Follow(w, config)
		defer harness.Start(i.RunWithContext)()
		time.Sleep(time.Minute)
		require.Equal(t, []string{"a/2"}, letterKeys(i))
		require.Len(t, b.State(), 2)
		w.Relist()
		time.Sleep(time.Minute)
		w.RequireState(&b.Recorder)
		require.Empty(t, i.DeadLetters())
	})
}

// Events that FailedEvents name count each time, also if all of the batch are named, and with their
// own errors.
func TestEventsThatAreNamedAreDeadLetters(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var calls atomic.Int32
		b := harness.Batches{See: busy, Fail: func(batch []string) error {
			calls.Add(1)
			return refusing(batch, "a/2", "a/4")
		}}
		i := harness.Settled(w, informer.InformerConfig{BatchHandler: &b, MaxAttempts: 4})
		together(w, func() { w.CreatePods("a/1", "a/2", "a/3", "a/4") })
		time.Sleep(time.Minute)
		require.EqualValues(t, 1+4, calls.Load())
		letters := i.DeadLetters()
		require.Equal(t, []string{"a/2", "a/4"}, letterKeys(i))
		require.Equal(t, "the row is refused: a/2", letters[0].LastError)
		require.Equal(t, "the row is refused: a/4", letters[1].LastError)
		require.Contains(t, i.Status().Condition.Message, "2 dead letters")
		require.True(t, i.HasSynced())
	})
}

// With MaxAttempts, so many panics make a dead letter; without, the sixth does.
func TestPanicsMakeDeadLetters(t *testing.T) {
	harness.SurvivePanics(t)
	for _, most := range []int{0, 2} {
		for _, batches := range []bool{false, true} {
			harness.BubbleRun(t, fmt.Sprintf("at most %d, batches %v", most, batches), informertest.Options{}, func(t *testing.T, w *harness.World) {
				w.CreatePods("a/1", "a/2")
				var calls atomic.Int32
				r := harness.Recorder{Before: func(call string) {
					if strings.Contains(call, "a/2") {
						calls.Add(1)
						panic("no a/2 for me")
					}
				}}
				config := informer.InformerConfig{Handler: &r, MaxAttempts: most, MaxBatch: 1, ErrorHandler: harness.IgnoreErrors}
				if batches {
					config.Handler, config.BatchHandler = nil, informer.BatchHandlerFunc(func(_ context.Context, events []informer.Event) error {
						r.Record(harness.EventText(events[0]), events[0].Object, true)
						return nil
					})
				}
				i := harness.Running(w, config)
				time.Sleep(time.Hour)
				want := 6
				if most > 0 {
					want = most
				}
				require.EqualValues(t, want, calls.Load())
				letters := i.DeadLetters()
				require.Equal(t, []string{"a/2"}, letterKeys(i))
				require.Equal(t, "panic: no a/2 for me", letters[0].LastError)
				require.Equal(t, want, letters[0].Attempts)
				require.Equal(t, informer.ReasonDeadLetters, i.Status().Condition.Reason)
			})
		}
	}
}

// A handler that ends its goroutine makes a dead letter at once.
func TestHandlerThatEndsItsGoroutineMakesADeadLetter(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2", "a/3")
		b := harness.Batches{Fail: func(batch []string) error {
			if strings.Contains(batch[0], "a/2") {
				runtime.Goexit()
			}
			return nil
		}}
		i := harness.Running(w, informer.InformerConfig{BatchHandler: &b, MaxBatch: 1})
		time.Sleep(time.Minute)
		require.Equal(t, []string{"a/2"}, letterKeys(i))
		require.Contains(t, i.DeadLetters()[0].LastError, "ended its goroutine")
		require.True(t, i.HasSynced())
	})
}

// A destination that is away for ten minutes makes no dead letter, whatever changes meanwhile: many
// objects, few, or one alone; nor one that comes back for a moment.
func TestADestinationThatIsAwayMakesNoDeadLetter(t *testing.T) {
	for name, meanwhile := range map[string]func(w *harness.World, p *poisoned, pods []string){
		"nothing":      func(*harness.World, *poisoned, []string) {},
		"one alone":    func(w *harness.World, _ *poisoned, pods []string) { w.UpdatePod(pods[0], "changed") },
		"one by one":   func(w *harness.World, _ *poisoned, pods []string) { updateEach(w, pods[:20], 10*time.Second) },
		"all together": func(w *harness.World, _ *poisoned, pods []string) { updateEach(w, pods, 0) },
		"back for a moment": func(w *harness.World, p *poisoned, pods []string) {
			updateEach(w, pods[:30], time.Second)
			time.Sleep(2 * time.Minute)
			p.goAway(false)
			time.Sleep(5 * time.Second)
			p.goAway(true)
			updateEach(w, pods[30:60], time.Second)
		},
	} {
		for _, most := range []int{0, 1} {
			harness.BubbleRun(t, fmt.Sprintf("%s, batches of %d", name, most), informertest.Options{}, func(t *testing.T, w *harness.World) {
				pods := harness.Keys(100)
				w.CreatePods(pods...)
				p := &poisoned{}
				b := harness.Batches{Fail: p.fail}
				i := harness.Running(w, informer.InformerConfig{BatchHandler: &b, MaxAttempts: 2, MaxBatch: most})
				time.Sleep(time.Minute)
				p.goAway(true)
				back := time.Now().Add(10 * time.Minute)
				meanwhile(w, p, pods)
				time.Sleep(time.Until(back))
				require.Empty(t, i.DeadLetters())
				p.goAway(false)
				time.Sleep(time.Minute)
				require.Empty(t, i.DeadLetters())
				w.RequireState(&b.Recorder)
			})
		}
	}
}

// updateEach changes pods, with a pause after each.
func updateEach(w *harness.World, pods []string, pause time.Duration) {
	for _, pod := range pods {
		w.UpdatePod(pod, "changed")
		time.Sleep(pause)
	}
}

// Where nothing else comes, an event that fails must have failed for a quarter of an hour.
func TestLoneEventThatFailsIsADeadLetterInTime(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		p := &poisoned{keys: sets.New("a/1")}
		b := harness.Batches{Fail: p.fail}
		i := harness.Running(w, informer.InformerConfig{BatchHandler: &b, MaxAttempts: 2})
		w.CreatePods("a/1")
		time.Sleep(14 * time.Minute)
		require.Empty(t, i.DeadLetters())
		time.Sleep(3 * time.Minute)
		require.Equal(t, []string{"a/1"}, letterKeys(i))
	})
}

// Many events that fail, while others do not, may be a part of the destination that is away. They
// are dead letters after a quarter of an hour.
func TestManyEventsThatFailAreDeadLettersInTime(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		pods := harness.Keys(100)
		p := &poisoned{keys: sets.New(pods[:30]...)}
		b := harness.Batches{See: busy, Fail: p.fail}
		i := harness.Settled(w, informer.InformerConfig{BatchHandler: &b, MaxAttempts: 2})
		together(w, func() { w.CreatePods(pods...) })
		for range 14 {
			time.Sleep(time.Minute)
			w.UpdatePod(pods[50], "changed")
		}
		require.Empty(t, i.DeadLetters())
		for range 10 {
			time.Sleep(time.Minute)
			w.UpdatePod(pods[50], "changed again")
		}
		require.Equal(t, pods[:30], letterKeys(i))
		require.Len(t, b.State(), 1+70)
	})
}

// There are MaxDeadLetters at most. What else fails is tried for ever, and the condition says so.
func TestMaxDeadLetters(t *testing.T) {
	harness.SurvivePanics(t)
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2", "a/3", "a/4")
		healthy := make(chan struct{})
		r := harness.Recorder{Before: func(call string) {
			select {
			case <-healthy:
			default:
				if !strings.Contains(call, "a/4") {
					panic("no")
				}
			}
		}}
		i := harness.Running(w, informer.InformerConfig{Handler: &r, MaxAttempts: 1, MaxDeadLetters: 2, ErrorHandler: harness.IgnoreErrors})
		time.Sleep(time.Hour)
		require.Len(t, i.DeadLetters(), 2)
		require.Equal(t, 1, i.Status().Queued)
		require.False(t, i.HasSynced())
		require.Equal(t, informer.ReasonHandlerFailing, i.Status().Condition.Reason)
		require.Contains(t, i.Status().Condition.Message, "there may be no more dead letters than the 2")
		close(healthy)
		time.Sleep(time.Minute)
		require.Len(t, r.State(), 2)
		require.True(t, i.HasSynced())
		require.Equal(t, informer.ReasonDeadLetters, i.Status().Condition.Reason)
		require.Contains(t, i.Status().Condition.Message, "there may be no more")
		w.Relist()
		time.Sleep(time.Minute)
		w.RequireState(&r)
	})
}

// Each handler of a shared informer has its own dead letters.
func TestDeadLettersOfSharedHandlers(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2", "a/3")
		s := harness.Share(w, informer.InformerConfig{MaxAttempts: 3})
		handlers := map[string]*informer.HandlerRegistration{}
		for _, refuses := range []string{"a/1", "a/2"} {
			h, err := s.AddHandler(informer.HandlerConfig{BatchHandler: &harness.Batches{Fail: func(batch []string) error { return refusing(batch, refuses) }}})
			require.NoError(t, err)
			handlers[refuses] = h
		}
		healthy := harness.Batches{}
		_, err := s.AddHandler(informer.HandlerConfig{BatchHandler: &healthy})
		require.NoError(t, err)
		defer harness.Start(s.RunWithContext)()
		time.Sleep(time.Minute)
		for key, h := range handlers {
			require.Equal(t, key, h.DeadLetters()[0].Key)
			require.Len(t, h.DeadLetters(), 1)
		}
		require.Equal(t, []string{"a/1", "a/2"}, letterKeys(s))
		require.Equal(t, 2, s.Status().DeadLetters)
		require.True(t, s.HasSynced())
		w.RequireState(&healthy.Recorder)
	})
}
