package delivery_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
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

// What a part of a batch has taken in is acknowledged, although the handler ends its goroutine in a
// later part: the deletion of such an object is told.
func TestADeletionOfWhatAPartOfABatchTook(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		exited := false
		b := harness.Batches{See: busy}
		var tried [][]string
		b.Fail = func(batch []string) error {
			tried = append(tried, batch)
			switch {
			case len(batch) > 1:
				return errors.New("no")
			case strings.Contains(batch[0], "a/4") && !exited:
				exited = true
				runtime.Goexit()
			}
			return nil
		}
		harness.Settled(w, informer.InformerConfig{BatchHandler: &b})
		together(w, func() { w.CreatePods("a/1", "a/2", "a/3", "a/4") })
		harness.Sleep(time.Minute)
		require.True(t, exited)
		state := b.State()
		var have []string
		for key := range state {
			if key != "z/busy" {
				have = append(have, key)
			}
		}
		require.NotEmpty(t, have)
		w.DeletePods(have...)
		harness.Sleep(time.Minute)
		for _, key := range have {
			require.NotContains(t, b.State(), key, "the handler acknowledged it, and is never told that it is gone")
		}
	})
}

// What FailedEvents do not name is acknowledged, although the ErrorHandler ends its goroutine when it
// is told of them.
func TestAnErrorHandlerEndsItsGoroutineAtFailedEvents(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		b := harness.Batches{See: busy}
		once := false
		b.Fail = func(batch []string) error {
			if once {
				return nil
			}
			return refusing(batch, "a/2")
		}
		harness.Settled(w, informer.InformerConfig{BatchHandler: &b, ErrorHandler: func(_ *informer.Reflector, err error) {
			var e *informer.BatchError
			if errors.As(err, &e) && !once {
				once = true
				runtime.Goexit()
			}
		}})
		together(w, func() { w.CreatePods("a/1", "a/2", "a/3") })
		harness.Sleep(time.Minute)
		require.True(t, once)
		require.Contains(t, b.State(), "a/1")
		w.DeletePods("a/1")
		harness.Sleep(time.Minute)
		require.NotContains(t, b.State(), "a/1")
	})
}

// batchOfThree has three pods come in one batch, whose calls fail as fail says of their number, from 1
// on, and returns the batches that were tried after an hour.
func batchOfThree(t *testing.T, fail func(call int, batch []string) error) (tried [][]string) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		b := harness.Batches{See: busy}
		b.Fail = func(batch []string) error {
			tried = append(tried, batch)
			return fail(len(tried)-1, batch)
		}
		harness.Settled(w, informer.InformerConfig{BatchHandler: &b})
		together(w, func() { w.CreatePods("a/1", "a/2", "a/3") })
		time.Sleep(time.Hour)
		for _, pod := range []string{"a/1", "a/2", "a/3"} {
			w.UpdatePod(pod, "newer")
		}
		harness.Sleep(time.Hour)
		w.RequireState(&b.Recorder)
	})
	return tried[1:]
}

// An error of the handler's own that wraps ErrPassedOver, of an informer that feeds it for instance, is
// an error as any other.
func TestAnErrorThatWrapsErrPassedOver(t *testing.T) {
	batchOfThree(t, func(call int, _ []string) error {
		if call == 1 {
			return fmt.Errorf("upstream: %w", informer.ErrPassedOver)
		}
		return nil
	})
}

// The same within FailedEvents.
func TestFailedEventsThatWrapErrPassedOver(t *testing.T) {
	batchOfThree(t, func(call int, _ []string) error {
		if call == 1 {
			return informer.FailedEvents{{Index: 0, Err: informer.ErrPassedOver}, {Index: 1}}
		}
		return nil
	})
}

// FailedEvents that are joined with another error acknowledge nothing: with those of another table,
// whose events are then not known, or with that of a transaction that was not committed.
func TestFailedEventsThatAreJoinedAcknowledgeNothing(t *testing.T) {
	for name, other := range map[string]error{
		"FailedEvents": informer.FailedEvents{{Index: 2}},
		"an error":     errors.New("commit: the connection is lost"),
	} {
		t.Run(name, func(t *testing.T) {
			tried := batchOfThree(t, func(call int, _ []string) error {
				if call == 1 {
					return errors.Join(informer.FailedEvents{{Index: 0}}, other)
				}
				return nil
			})
			require.Equal(t, tried[0], tried[1])
		})
	}
}

func testSideBySide(t *testing.T, poison, first int, traffic bool) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		pods := harness.Keys(500)
		p := &poisoned{keys: sets.New(pods[first : first+poison]...)}
		b := harness.Batches{}
		_, stop := p.follow(w, pods, &b)
		defer stop()
		w.CreatePods("b/other")
		for n := range 100 {
			time.Sleep(100 * time.Millisecond)
			if traffic {
				w.UpdatePod("b/other", fmt.Sprint(n))
			}
		}
		synctest.Wait()
		require.Len(t, b.State(), 501-poison)
		require.Less(t, len(p.after(0)), 500)
	})
}

// Events that fail side by side, as the pods of one Deployment do in a list, hold up the others for
// seconds, whether other objects change meanwhile or not.
func TestManyEventsThatFailSideBySide(t *testing.T) {
	for _, poison := range []int{10, 15, 20, 50} {
		for _, first := range []int{0, 230} {
			for _, traffic := range []bool{false, true} {
				t.Run(fmt.Sprint(poison, "/", first, "/", traffic), func(t *testing.T) { testSideBySide(t, poison, first, traffic) })
			}
		}
	}
}

// Where all of a batch fails, and other batches go on, as when one table of many is locked, the calls
// are at most twice as many as those for one event.
func TestAPartOfADestinationIsAway(t *testing.T) {
	calls := func(pods int, traffic bool) (calls int) {
		harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
			p := &poisoned{}
			b := harness.Batches{See: busy}
			_, stop := p.follow(w, nil, &b)
			defer stop()
			synctest.Wait()
			together(w, func() {
				w.CreatePods(harness.Keys(pods)...)
				p.refuse(harness.Keys(pods)...)
			})
			w.CreatePods("b/other")
			for n := range 120 {
				time.Sleep(10 * time.Second)
				if traffic {
					w.UpdatePod("b/other", fmt.Sprint(n))
				}
			}
			for _, c := range p.after(0) {
				if c[0] != "b/other" {
					calls++
				}
			}
		})
		return calls
	}
	one := calls(1, true)
	require.LessOrEqual(t, calls(500, false), 2*one)
	require.LessOrEqual(t, calls(500, true), 2*one)
}

// What a part of a batch has taken in is in a checkpoint that is saved while other parts are tried.
func TestACheckpointWhileABatchIsTriedInParts(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		store := &harness.MemoryCheckpoint{}
		b := harness.Batches{See: busy}
		b.Fail = func(batch []string) error {
			if strings.Contains(batch[0], "a/other") {
				return nil
			}
			if slices.ContainsFunc(batch, func(e string) bool { return strings.Contains(e, "a/4") }) {
				time.Sleep(20 * time.Second) // a statement timeout
				return errors.New("timeout")
			}
			return nil
		}
		harness.Settled(w, informer.InformerConfig{BatchHandler: &b, Checkpoint: store, Workers: 2, CheckpointInterval: time.Second})
		together(w, func() { w.CreatePods("a/1", "a/2", "a/3", "a/4") })
		var taken time.Time
		for n := 0; taken.IsZero() || time.Since(taken) < 15*time.Second; n++ {
			harness.Sleep(time.Second)
			if n == 0 {
				w.CreatePods("a/other")
			} else {
				w.UpdatePod("a/other", fmt.Sprint(n))
			}
			if _, has := b.State()["a/1"]; has && taken.IsZero() {
				taken = time.Now()
			}
			require.Less(t, n, 500)
		}
		synctest.Wait()
		require.Contains(t, b.State(), "a/1", "OnBatch has returned nil for it 15 s ago")
		killed := store.Killed()

		w.DeletePods("a/1")
		w.Compact()
		again := harness.Batches{}
		harness.Running(w, informer.InformerConfig{BatchHandler: &again, Checkpoint: killed})
		harness.Sleep(time.Minute)
		require.True(t, slices.ContainsFunc(again.Events(), func(e string) bool { return strings.HasPrefix(e, "delete a/1") }), "never told that a/1 is gone")
	})
}

// Run ends in any call of a batch that is tried in parts: none comes after that, and the next informer
// is told just the events that were not taken in.
func TestRunEndsWhileABatchIsTriedInParts(t *testing.T) {
	for at := range 14 {
		harness.BubbleRun(t, fmt.Sprint(at), informertest.Options{}, func(t *testing.T, w *harness.World) {
			store := &harness.MemoryCheckpoint{}
			b := harness.Batches{}
			calls := 0
			var stopping atomic.Bool
			started, stopped := make(chan struct{}), make(chan struct{})
			var stop func()
			b.Fail = func(batch []string) error {
				if stopping.Load() {
					t.Errorf("a call after the end of ctx")
				}
				if calls++; calls == at+1 {
					stopping.Store(true)
					go func() { defer close(stopped); <-started; stop() }()
					synctest.Wait()
				}
				for _, e := range batch {
					if strings.Contains(e, "a/0003") {
						return errors.New("no")
					}
				}
				return nil
			}
			w.CreatePods(harness.Keys(8)...)
			first := harness.Follow(w, informer.InformerConfig{BatchHandler: &b, Checkpoint: store})
			stop = harness.Start(first.RunWithContext)
			close(started)
			time.Sleep(time.Hour)
			<-stopped
			have := b.State()
			again := harness.Batches{}
			harness.Running(w, informer.InformerConfig{BatchHandler: informer.IgnoreSynced(&again), Checkpoint: store})
			harness.Sleep(time.Minute)
			require.Len(t, again.Events(), 8-len(have))
		})
	}
}

// Objects are replaced, changed and deleted in any call of a batch that is tried in parts.
func TestObjectsAreReplacedWhileABatchIsTriedInParts(t *testing.T) {
	for at := range 12 {
		for _, most := range []int{1, 2, 8} {
			harness.BubbleRun(t, fmt.Sprint(at, "/", most), informertest.Options{}, func(t *testing.T, w *harness.World) {
				b := harness.Batches{}
				calls := 0
				var well atomic.Bool
				b.Fail = func(batch []string) error {
					if calls++; calls == at+1 {
						w.DeletePods("a/0003", "a/0002")
						w.CreatePods("a/0003", "a/0002")
						w.UpdatePod("a/0001", "x")
						w.DeletePods("a/0004")
					}
					for _, e := range batch {
						if !well.Load() && strings.Contains(e, "a/0003") {
							return errors.New("no")
						}
					}
					return nil
				}
				w.CreatePods(harness.Keys(8)...)
				i := harness.Running(w, informer.InformerConfig{BatchHandler: &b, MaxBatch: most})
				time.Sleep(time.Hour)
				well.Store(true)
				harness.Sleep(time.Minute)
				w.RequireState(&b.Recorder)
				require.Zero(t, i.Status().Queued)
				require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion)
			})
		}
	}
}

// A panic in any call of a batch that is tried in parts holds up that event alone, and not for long.
func TestAPanicWhileABatchIsTriedInParts(t *testing.T) {
	harness.SurvivePanics(t)
	for at := range 12 {
		harness.BubbleRun(t, fmt.Sprint(at), informertest.Options{}, func(t *testing.T, w *harness.World) {
			b := harness.Batches{}
			calls := 0
			b.Fail = func(batch []string) error {
				if calls++; calls == at+1 {
					panic("x")
				}
				for _, e := range batch {
					if strings.Contains(e, "a/0003") {
						return errors.New("no")
					}
				}
				return nil
			}
			w.CreatePods(harness.Keys(8)...)
			i := harness.Running(w, informer.InformerConfig{BatchHandler: &b})
			harness.Sleep(time.Hour)
			require.Len(t, b.State(), 7)
			require.Equal(t, 1, i.Status().Queued)
		})
	}
}

// A destination that refuses batches for their size gets smaller ones.
func TestAHandlerThatTakesSmallBatchesOnly(t *testing.T) {
	for _, largest := range []int{1, 2, 3, 50, 99, 249} {
		harness.BubbleRun(t, fmt.Sprint(largest), informertest.Options{}, func(t *testing.T, w *harness.World) {
			b := harness.Batches{Fail: func(batch []string) error {
				if len(batch) > largest {
					return errors.New("too many")
				}
				return nil
			}}
			w.CreatePods(harness.Keys(500)...)
			i := harness.Running(w, informer.InformerConfig{BatchHandler: &b})
			harness.Sleep(5 * time.Second)
			require.True(t, i.HasSynced())
			w.RequireState(&b.Recorder)
		})
	}
}

// FailedEvents do not count among the three failures after which a batch is tried in parts.
func TestFailedEventsDoNotCountTowardsParts(t *testing.T) {
	tried := batchOfThree(t, func(call int, batch []string) error {
		switch call {
		case 1, 2:
			return refusing(batch, "a/1", "a/2")
		case 3:
			return errors.New("a blip")
		}
		return nil
	})
	require.Equal(t, []string{"add a/1", "add a/2"}, tried[3])
}
