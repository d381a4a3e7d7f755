package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// An event that no call has had by itself is no dead letter, however long the batch that it is in
// has failed.
func TestEventThatWasNeverTriedAloneIsNoDeadLetter(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		pods := harness.Keys(60)
		p := &poisoned{keys: sets.New(append(slices.Clone(pods[:25]), pods[35:]...)...)}
		b := harness.Batches{See: busy, Fail: p.fail}
		i := harness.Settled(w, informer.InformerConfig{BatchHandler: &b, MaxAttempts: 1})
		together(w, func() { w.CreatePods(pods...) })
		time.Sleep(16 * time.Minute)
		for whole := 0; whole < 2; { // the next call of the whole batch is followed by calls with parts
			n := len(p.after(0))
			time.Sleep(time.Second)
			switch calls := p.after(n); {
			case len(calls) == 1:
				whole++
			case len(calls) > 1:
				whole = 0
			}
		}
		w.CreatePods("b/0")
		time.Sleep(40 * time.Second)
		for _, key := range letterKeys(i) {
			require.Contains(t, p.keys, key)
		}
	})
}

// A destination that comes back for a moment, while nothing else changes, makes no dead letter. Nor
// do calls that tell nothing of it: one that began before it went away, and one with events of type
// Synced, for which there is nothing to write.
func TestWhatTellsNothingOfADestination(t *testing.T) {
	for name, act := range map[string]func(w *harness.World, p *poisoned, slow *atomic.Bool, pods []string){
		"it is back for a moment": func(w *harness.World, p *poisoned, _ *atomic.Bool, pods []string) {
			p.goAway(true)
			updateEach(w, pods[:3], time.Second)
			time.Sleep(2 * time.Minute)
			for n := len(p.after(0)); len(p.after(n)) < 3; {
				time.Sleep(10 * time.Millisecond)
			}
			p.goAway(false)
			w.UpdatePod(pods[5], "changed")
			synctest.Wait()
			p.goAway(true)
		},
		"a call that began before": func(w *harness.World, p *poisoned, slow *atomic.Bool, pods []string) {
			slow.Store(true)
			w.UpdatePod(pods[9], "changed")
			synctest.Wait()
			p.goAway(true)
			w.UpdatePod(pods[0], "changed")
		},
		"nothing to write": func(w *harness.World, p *poisoned, _ *atomic.Bool, pods []string) {
			p.goAway(true)
			w.UpdatePod(pods[0], "changed")
			time.Sleep(time.Second)
			w.Relist()
		},
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			pods := harness.Keys(10)
			w.CreatePods(pods...)
			p := &poisoned{}
			var slow atomic.Bool
			b := harness.Batches{Fail: func(batch []string) error {
				if slow.Load() && strings.Contains(batch[0], pods[9]) {
					time.Sleep(2 * time.Second)
					return nil
				}
				written := slices.DeleteFunc(slices.Clone(batch), func(event string) bool { return strings.HasPrefix(event, "sync ") })
				if len(written) == 0 {
					return nil
				}
				return p.fail(written)
			}}
			i := harness.Running(w, informer.InformerConfig{BatchHandler: &b, MaxAttempts: 5, Workers: 2})
			time.Sleep(time.Minute)
			act(w, p, &slow, pods)
			time.Sleep(8 * time.Minute)
			require.Empty(t, i.DeadLetters())
		})
	}
}

// An object that fails, and changes more often than it is tried, is a dead letter too.
func TestObjectThatFailsAndChangesOftenIsADeadLetter(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		p := &poisoned{keys: sets.New("a/1")}
		b := harness.Batches{Fail: p.fail}
		i := harness.Running(w, informer.InformerConfig{BatchHandler: &b, MaxAttempts: 10})
		w.CreatePods("a/1", "a/2")
		for n := range 6 * 30 {
			w.UpdatePod("a/1", fmt.Sprint(n))
			w.UpdatePod("a/2", fmt.Sprint(n))
			time.Sleep(10 * time.Second)
		}
		require.Equal(t, []string{"a/1"}, letterKeys(i))
	})
}

// The letter of a deletion has the UID of the object that is gone, and not that of the next one of its
// name.
func TestDeadLetterOfADeletionIsOfTheObjectThatIsGone(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2")
		var refuses atomic.Bool
		var uid atomic.Value
		b := harness.Batches{
			See: func(events []informer.Event) {
				for _, e := range events {
					if e.Key == "a/2" && e.Type == informer.Added {
						uid.Store(harness.IdentityOf(e.Object))
					}
				}
			},
			Fail: func(batch []string) error {
				if refuses.Load() {
					return refusing(batch, "delete a/2")
				}
				return nil
			},
		}
		i := harness.Running(w, informer.InformerConfig{BatchHandler: &b, MaxAttempts: 3})
		time.Sleep(time.Minute)
		refuses.Store(true)
		w.DeletePods("a/2")
		synctest.Wait()
		w.CreatePods("a/2")
		time.Sleep(time.Hour)
		letters := i.DeadLetters()
		require.Len(t, letters, 1)
		require.Equal(t, informer.Deleted, letters[0].Type)
		require.Contains(t, uid.Load(), string(letters[0].UID))
		refuses.Store(false)
		w.UpdatePod("a/2", "changed")
		time.Sleep(time.Minute)
		w.RequireState(&b.Recorder)
		require.Empty(t, i.DeadLetters())
	})
}

// Whatever a handler refuses for a while, and whatever happens meanwhile: once it takes all in, and the
// set is listed, it has the state of the server, and no dead letter is left.
func TestDeadLettersOnAnyDay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
			pods := harness.Keys(12)
			w.CreatePods(pods...)
			there := sets.New(pods...)
			p := &poisoned{}
			var named atomic.Bool
			b := harness.Batches{Fail: func(batch []string) error {
				if !named.Load() {
					return p.fail(batch)
				}
				p.mu.Lock()
				defer p.mu.Unlock()
				return refusing(batch, p.keys.UnsortedList()...)
			}}
			upTo := func(most int, what string) int { return rapid.IntRange(1, most).Draw(rt, what) }
			i := harness.Follow(w, informer.InformerConfig{
				BatchHandler: &b, MaxAttempts: upTo(3, "attempts"), Workers: upTo(3, "workers"), MaxBatch: upTo(6, "batch"), MaxDeadLetters: upTo(5, "letters"),
			})
			stop := harness.Start(i.RunWithContext)
			for range 40 {
				key := rapid.SampledFrom(pods).Draw(rt, "key")
				switch rapid.SampledFrom([]string{"update", "update", "delete", "create", "refuse", "name", "list", "restart"}).Draw(rt, "act") {
				case "update":
					if there.Has(key) {
						w.UpdatePod(key, fmt.Sprint(time.Now().UnixNano()))
					}
				case "delete":
					if there.Has(key) {
						w.DeletePods(key)
						there.Delete(key)
					}
				case "create":
					if !there.Has(key) {
						w.CreatePods(key)
						there.Insert(key)
					}
				case "refuse":
					p.refuse(key, rapid.SampledFrom(pods).Draw(rt, "another"))
				case "name":
					named.Store(!named.Load())
				case "list":
					w.Relist()
				case "restart":
					stop()
					stop = harness.Start(i.RunWithContext)
				}
				time.Sleep(time.Duration(upTo(10_000, "ms")) * time.Millisecond)
			}
			p.refuse()
			w.Relist()
			time.Sleep(time.Hour)
			w.RequireState(&b.Recorder)
			require.Empty(t, i.DeadLetters())
			require.Zero(t, i.Status().Queued)
			require.Equal(t, informer.ReasonCurrent, i.Status().Condition.Reason)
			stop()
		})
	})
}

// An error handler knows that an event is passed over before anything newer of its object comes, also
// where there are several workers.
func TestEventIsReportedBeforeWhatFollowsItsDeadLetter(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var mu sync.Mutex
		var order []string
		var refused atomic.Bool
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, what)
		}
		i := harness.Follow(w, informer.InformerConfig{
			Workers:     2,
			MaxAttempts: 1,
			BatchHandler: informer.BatchHandlerFunc(func(_ context.Context, events []informer.Event) error {
				if refused.Swap(true) {
					note("taken " + events[0].ResourceVersion)
					return nil
				}
				time.Sleep(time.Second) // meanwhile the object changes
				return informer.FailedEvents{{Index: 0, Err: errors.New("refused")}}
			}),
			ErrorHandler: func(_ *informer.Reflector, err error) {
				if errors.Is(err, informer.ErrPassedOver) {
					time.Sleep(time.Second)
					note("passed over")
				}
			},
		})
		stop := harness.Start(i.RunWithContext)
		w.CreatePods("a/1")
		synctest.Wait()
		w.UpdatePod("a/1", "changed")
		time.Sleep(time.Minute)
		require.Empty(t, i.DeadLetters())
		stop()
		versions := w.Versions()
		require.Equal(t, []string{"passed over", "taken " + versions["a/1"]}, order)
	})
}
