package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// A batch comes again in its first order, which is not always the order of its keys'
// arrival.
func TestABatchThatFailsKeepsItsOrder(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var tried [][]string
		b := harness.Batches{Fail: func(batch []string) error {
			tried = append(tried, batch)
			switch len(tried) {
			case 1:
				time.Sleep(time.Second)
			case 2, 3:
				return errors.New("no")
			}
			return nil
		}}
		harness.Settled(w, informer.InformerConfig{BatchHandler: &b})
		w.CreatePods("a/1")
		synctest.Wait()
		w.UpdatePod("a/1", "while it is taken")
		w.CreatePods("a/2")
		time.Sleep(time.Second)
		harness.Sleep(time.Minute)
		require.Equal(t, [][]string{{"add a/1"}, {"add a/2", "update a/1"}, {"add a/2", "update a/1"}, {"add a/2", "update a/1"}}, tried)
	})
}

// The events of a batch that panicked are not acknowledged before they have come one
// by one.
func TestHasSyncedWaitsForWhatShareABatchThatPanicked(t *testing.T) {
	harness.SurvivePanics(t)
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		b := harness.Batches{Fail: func(batch []string) error {
			if slices.Contains(batch, "add a/0001 initial") {
				panic("no a/0001 for me")
			}
			return nil
		}}
		i := harness.Settled(w, informer.InformerConfig{BatchHandler: &b})
		require.False(t, i.HasSynced(), "nothing is acknowledged")
		time.Sleep(200 * time.Millisecond)
		require.ElementsMatch(t, []string{"add a/0000 initial", "add a/0002 initial"}, b.Events())
		require.False(t, i.HasSynced(), "one is tried again")
		time.Sleep(time.Minute)
		require.True(t, i.HasSynced(), "one is passed over")
		require.Zero(t, i.Status().Queued)
	})
}

// A BatchHandler that ends its goroutine may have taken part of the batch in: it
// hears of the deletion.
func TestADeletionAfterAnEndedGoroutine(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		b := harness.Batches{Fail: func(batch []string) error {
			if slices.Contains(batch, "add a/1") {
				goruntime.Goexit()
			}
			return nil
		}}
		harness.Settled(w, informer.InformerConfig{BatchHandler: &b})
		w.CreatePods("a/1")
		synctest.Wait()
		w.DeletePods("a/1")
		synctest.Wait()
		require.Equal(t, []string{"delete a/1"}, b.Events())
	})
}

// A handler that ends its goroutine does not keep waiting what is to be tried again.
func TestAnEndedGoroutineLeavesNoBatchBehind(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		first := true
		b := harness.Batches{Fail: func(batch []string) error {
			switch {
			case strings.Contains(batch[0], "a/2"):
				goruntime.Goexit()
			case first:
				first = false
				return errors.New("later")
			}
			return nil
		}}
		harness.Settled(w, informer.InformerConfig{BatchHandler: &b})
		w.CreatePods("a/1")
		synctest.Wait()
		w.CreatePods("a/2")
		time.Sleep(time.Minute)
		require.Equal(t, []string{"add a/1"}, b.Events())
	})
}

// The pauses between the tries of a batch are 100 ms at first, doubled each time, and
// up to half as long again: 30 s at most.
func TestTheBackoffOfABatch(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		var f harness.Failures
		var times []time.Time
		harness.Running(w, informer.InformerConfig{ErrorHandler: f.Handle, BatchHandler: informer.BatchHandlerFunc(func(context.Context, []informer.Event) error {
			if times = append(times, time.Now()); len(times) < 15 {
				return errors.New("no")
			}
			return nil
		})})
		for range 600 {
			time.Sleep(time.Second)
			w.UpdatePod("a/1", "does not make it come sooner, nor later")
		}
		synctest.Wait()
		least, exact := 100*time.Millisecond, 0
		for n := 1; n < 15; n++ {
			pause := times[n].Sub(times[n-1])
			require.GreaterOrEqual(t, pause, least, "attempt %d", n)
			require.LessOrEqual(t, pause, least*3/2, "attempt %d", n)
			if pause == least {
				exact++
			}
			least = min(2*least, 20*time.Second)
		}
		require.Less(t, exact, 3, "it is random")
		errs := f.Errors()
		require.Len(t, errs, 14)
		for n, err := range errs {
			failed := harness.ErrorAs[*informer.BatchError](t, err)
			require.Equal(t, informer.BatchError{Keys: []string{"a/1"}, Attempts: n + 1, Err: failed.Err}, *failed)
			require.EqualError(t, failed.Err, "no")
		}
	})
}

// together has what change does wait for a handler that is busy, so that it comes in
// one batch.
func together(w *harness.World, change func()) {
	w.CreatePods("z/busy")
	synctest.Wait()
	change()
	harness.Sleep(time.Second)
}

// busy has a handler be busy for a second with the creation of z/busy.
func busy(events []informer.Event) {
	if events[0].Key == "z/busy" && events[0].Type == informer.Added {
		time.Sleep(time.Second)
	}
}

// What happens to an object whose batch failed takes its place in that batch; what
// happens to others goes on without it.
func TestABatchThatFailsComesInItsNewestState(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var tried [][]string
		var versions []string
		b := harness.Batches{See: func(events []informer.Event) {
			busy(events)
			if len(events) == 3 {
				versions = append(versions, events[1].ResourceVersion)
			}
		}, Fail: func(batch []string) error {
			tried = append(tried, batch)
			if len(batch) == 3 && len(tried) < 5 {
				return errors.New("no")
			}
			return nil
		}}
		harness.Settled(w, informer.InformerConfig{BatchHandler: &b})
		together(w, func() { w.CreatePods("a/1", "a/2", "a/3") })
		w.UpdatePod("a/2", "newer")
		newest := w.ResourceVersion()
		w.CreatePods("a/4")
		harness.Sleep(time.Minute)
		var of3 int
		for _, batch := range tried[1:] {
			if len(batch) == 1 {
				require.Equal(t, []string{"add a/4"}, batch)
				continue
			}
			of3++
			require.Equal(t, []string{"add a/1", "add a/2", "add a/3"}, batch)
		}
		require.Equal(t, 3, of3)
		require.NotEqual(t, newest, versions[0])
		require.Equal(t, newest, versions[len(versions)-1])
		w.RequireState(&b.Recorder)
	})
}

// Storage and the resume point stay behind what is not acknowledged, however much
// after it is.
func TestTheResumePointWaitsForABatchThatFails(t *testing.T) {
	inAllForms(t, func(t *testing.T, w *harness.World, c informer.InformerConfig) {
		w.CreatePods("a/1")
		var f harness.Failures
		var fails atomic.Bool
		fails.Store(true)
		b := harness.Batches{Fail: func(batch []string) error {
			if fails.Load() && slices.Contains(batch, "add a/bad") {
				return errors.New("no")
			}
			return nil
		}}
		c.BatchHandler, c.ErrorHandler, c.Storage = &b, f.Handle, informer.NewResourceVersionStorage()
		i := harness.Settled(w, c)
		before := w.ResourceVersion()
		w.CreatePods("a/bad")
		synctest.Wait()
		for n := range 50 {
			w.CreatePods(fmt.Sprint("a/good", n))
			synctest.Wait()
		}
		harness.Sleep(time.Minute)
		require.Equal(t, before, i.Status().ResourceVersion)
		require.Equal(t, w.ResourceVersion(), i.LastSyncResourceVersion())
		require.Equal(t, 51, c.Storage.Len(), "all but one are acknowledged")
		require.Equal(t, 1, i.Status().Queued)
		require.Positive(t, i.Status().QueuedBytes)
		require.ErrorContains(t, i.Status().LastError, "no")
		_, known, _ := c.Storage.GetByKey("a/bad")
		require.False(t, known)
		fails.Store(false)
		harness.Sleep(time.Minute)
		require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion)
		require.NoError(t, i.Status().LastError)
		require.Equal(t, b.State(), maps.Collect(c.Storage.All()))
		require.Zero(t, c.Budget.InUse())
		w.RequireState(&b.Recorder)
	})
}

// While the first list is not acknowledged, an informer is not synced, whatever is
// acknowledged after it, and its events are still marked as of that list.
func TestHasSyncedWaitsForABatchThatFails(t *testing.T) {
	inAllForms(t, func(t *testing.T, w *harness.World, c informer.InformerConfig) {
		w.CreatePods(harness.Keys(20)...)
		var fails atomic.Bool
		fails.Store(true)
		var b harness.Batches
		b.Fail = func(batch []string) error {
			if fails.Load() && slices.Contains(batch, "add a/0007 initial") {
				return errors.New("no")
			}
			return nil
		}
		c.BatchHandler, c.MaxBatch = &b, 5
		i := harness.Running(w, c)
		time.Sleep(time.Minute)
		w.UpdatePod("a/0007", "changed")
		w.Relist()
		synctest.Wait()
		require.False(t, i.HasSynced())
		require.Empty(t, i.Status().ResourceVersion)
		fails.Store(false)
		harness.Sleep(time.Minute)
		require.True(t, i.HasSynced())
		require.Contains(t, b.Events(), "add a/0007 initial")
		w.RequireState(&b.Recorder)
	})
}

// A handler that failed may have taken the object in: it hears of the deletion, from
// a watch, from a list, and from the first list of the next Run.
func TestADeletionAfterABatchThatFailed(t *testing.T) {
	for name, gone := range map[string]func(w *harness.World, restart func(meanwhile func())){
		"watched": func(w *harness.World, _ func(func())) { w.DeletePods("a/1") },
		"listed":  func(w *harness.World, _ func(func())) { w.Down(func() { w.DeletePods("a/1") }) },
		"after a restart": func(w *harness.World, restart func(func())) {
			restart(func() { w.DeletePods("a/1") })
		},
		"and one of its name came": func(w *harness.World, restart func(func())) {
			w.DeletePods("a/1")
			w.CreatePods("a/1")
			w.DeletePods("a/1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			inAllForms(t, func(t *testing.T, w *harness.World, c informer.InformerConfig) {
				b := harness.Batches{Fail: func(batch []string) error {
					if slices.Contains(batch, "add a/1") {
						return errors.New("half done")
					}
					return nil
				}}
				c.BatchHandler = &b
				i := harness.Follow(w, c)
				stop := harness.Start(i.RunWithContext)
				defer func() { stop() }()
				synctest.Wait()
				w.CreatePods("a/1")
				synctest.Wait()
				gone(w, func(meanwhile func()) {
					stop()
					require.Zero(t, c.Budget.InUse())
					meanwhile()
					stop = harness.Start(i.RunWithContext)
				})
				harness.Sleep(time.Minute)
				require.Len(t, b.Events(), 1)
				require.Contains(t, b.Events()[0], "delete a/1")
				require.Zero(t, i.Status().Queued)
			})
		})
	}
}

// An object that took the place of another one is the deletion of that in one batch
// and an addition in a later one. A failure of either loses neither.
func TestAnObjectThatWasReplaced(t *testing.T) {
	for name, replace := range map[string]func(w *harness.World){
		"unseen": func(w *harness.World) { w.Down(func() { w.DeletePods("a/1"); w.CreatePods("a/1") }) },
		"seen":   func(w *harness.World) { together(w, func() { w.DeletePods("a/1"); w.CreatePods("a/1") }) },
		"seen, and changed": func(w *harness.World) {
			together(w, func() { w.DeletePods("a/1"); w.CreatePods("a/1"); w.UpdatePod("a/1", "x") })
		},
		"seen, and changed meanwhile": func(w *harness.World) {
			together(w, func() { w.DeletePods("a/1"); w.CreatePods("a/1") })
			w.UpdatePod("a/1", "x")
		},
	} {
		for _, fails := range []string{"", "delete a/1", "add a/1"} {
			for _, panics := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %q fails, panic %v", name, fails, panics), func(t *testing.T) {
					harness.SurvivePanics(t)
					inAllForms(t, func(t *testing.T, w *harness.World, c informer.InformerConfig) {
						w.CreatePods("a/1")
						var left atomic.Int32
						b := harness.Batches{See: busy, Fail: func(batch []string) error {
							is := func(text string) bool { return fails != "" && strings.HasPrefix(text, fails) }
							switch {
							case !slices.ContainsFunc(batch, is) || left.Add(-1) < 0:
								return nil
							case panics:
								panic("no")
							default:
								return errors.New("no")
							}
						}}
						c.BatchHandler, c.Storage = &b, informer.NewResourceVersionStorage()
						i := harness.Settled(w, c)
						b.Forget()
						left.Store(4)
						replace(w)
						harness.Sleep(time.Minute)
						told := slices.DeleteFunc(b.Events(), func(call string) bool { return strings.Contains(call, " z/") })
						for n := range told {
							told[n] = strings.TrimSuffix(told[n], " unknown")
						}
						if len(told) == 3 && told[2] == "update a/1" { // an update that was told on its own
							told = told[:2]
						}
						require.Equal(t, []string{"delete a/1", "add a/1"}, told)
						w.RequireState(&b.Recorder)
						require.Equal(t, b.State(), maps.Collect(c.Storage.All()))
						require.Zero(t, i.Status().Queued)
						require.Zero(t, c.Budget.InUse())
					})
				})
			}
		}
	}
}

// After a panic the events come one by one. The one to blame is tried five times
// again, reported with its key and passed over; when it changes it is told again.
func TestABatchThatPanics(t *testing.T) {
	harness.SurvivePanics(t)
	inAllForms(t, func(t *testing.T, w *harness.World, c informer.InformerConfig) {
		var f harness.Failures
		var mu sync.Mutex
		calls := map[string]int{}
		var panics atomic.Bool
		panics.Store(true)
		b := harness.Batches{See: busy, Fail: func(batch []string) error {
			mu.Lock()
			for _, text := range batch {
				calls[text]++
			}
			mu.Unlock()
			if panics.Load() && slices.Contains(batch, "add a/2") {
				panic("no a/2 for me")
			}
			return nil
		}}
		c.BatchHandler, c.ErrorHandler, c.Storage = &b, f.Handle, informer.NewResourceVersionStorage()
		i := harness.Settled(w, c)
		together(w, func() { w.CreatePods("a/1", "a/2", "a/3") })
		harness.Sleep(time.Minute)
		require.ElementsMatch(t, []string{"add z/busy", "add a/1", "add a/3"}, b.Events())
		require.Equal(t, 6, calls["add a/2"])
		require.LessOrEqual(t, calls["add a/1"], 2)
		require.Zero(t, i.Status().Queued)
		require.Zero(t, c.Budget.InUse())
		require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion, "it is passed")
		require.Contains(t, i.Status().Condition.Message, `"a/2" is a dead letter`)
		_, known, _ := c.Storage.GetByKey("a/2")
		require.False(t, known)
		errs := f.Errors()
		require.Len(t, errs, 6)
		for n, err := range errs {
			failed := harness.ErrorAs[*informer.BatchError](t, err)
			if n > 0 {
				require.Equal(t, []string{"a/2"}, failed.Keys)
			}
			require.Contains(t, failed.Keys, "a/2")
			require.Equal(t, n+1, failed.Attempts)
			panicked := harness.ErrorAs[*informer.PanicError](t, err)
			require.Equal(t, "no a/2 for me", panicked.Value)
			require.Equal(t, n == 5, errors.Is(err, informer.ErrPassedOver))
		}
		require.ErrorIs(t, i.Status().LastError, informer.ErrPassedOver)

		panics.Store(false)
		w.UpdatePod("a/2", "better")
		synctest.Wait()
		require.Contains(t, b.Events(), "add a/2")
		require.NoError(t, i.Status().LastError)
		w.RequireState(&b.Recorder)
	})
}

// A queue that is full of failures reads nothing more, loses nothing, and goes on
// where it was when the failures end.
func TestAQueueFullOfFailures(t *testing.T) {
	for name, budget := range map[string]int64{"by number": 16 << 20, "by bytes": 20_000} {
		t.Run(name, func(t *testing.T) {
			inAllForms(t, func(t *testing.T, w *harness.World, c informer.InformerConfig) {
				w.CreatePods(harness.Keys(1100)...)
				var fails atomic.Bool
				fails.Store(true)
				b := harness.Batches{Fail: func([]string) error {
					if fails.Load() {
						return errors.New("no")
					}
					return nil
				}}
				c.BatchHandler, c.Budget, c.Storage = &b, informer.NewBudget(budget), informer.NewResourceVersionStorage()
				i := harness.Running(w, c)
				harness.Sleep(5 * time.Minute)
				require.LessOrEqual(t, i.Status().Queued, 1000)
				require.LessOrEqual(t, c.Budget.Peak(), budget+2000)
				require.Equal(t, i.Status().QueuedBytes+listUnderWay(c.Budget), c.Budget.InUse())
				require.False(t, i.HasSynced())
				for n := range 50 {
					w.DeletePods(harness.Keys(1100)[n])
					w.UpdatePod(harness.Keys(1100)[1050+n], "changed")
				}
				time.Sleep(time.Minute)
				fails.Store(false)
				harness.Sleep(10 * time.Minute)
				require.True(t, i.HasSynced())
				w.RequireState(&b.Recorder)
				require.Equal(t, b.State(), maps.Collect(c.Storage.All()))
				require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion)
				require.Zero(t, c.Budget.InUse())
			})
		})
	}
}

// What waits when Run ends is given back, and comes again with the next.
func TestARestartWithABatchThatFails(t *testing.T) {
	harness.SurvivePanics(t)
	for name, fail := range map[string]func() error{
		"an error": func() error { return errors.New("no") },
		"a panic":  func() error { panic("no") },
		"an exit":  func() error { goruntime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			inAllForms(t, func(t *testing.T, w *harness.World, c informer.InformerConfig) {
				w.CreatePods(harness.Keys(30)...)
				var fails atomic.Bool
				fails.Store(true)
				b := harness.Batches{Fail: func([]string) error {
					if fails.Load() {
						return fail()
					}
					return nil
				}}
				c.BatchHandler, c.MaxBatch, c.Storage = &b, 4, informer.NewResourceVersionStorage()
				i := harness.Follow(w, c)
				stop := harness.Start(i.RunWithContext)
				time.Sleep(time.Second)
				stop()
				require.Zero(t, c.Budget.InUse())
				require.Zero(t, c.Storage.Len())
				w.DeletePods("a/0003")
				fails.Store(false)
				defer harness.Start(i.RunWithContext)()
				time.Sleep(time.Second)
				require.True(t, i.HasSynced())
				w.RequireState(&b.Recorder)
				require.Equal(t, b.State(), maps.Collect(c.Storage.All()))
			})
		})
	}
}

// The others go on while a batch is busy, and no key is in two of them.
func TestWorkersSideBySide(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(40)...)
		var now, most atomic.Int32
		b := harness.Batches{See: func([]informer.Event) {
			n := now.Add(1)
			for before := most.Load(); n > before && !most.CompareAndSwap(before, n); before = most.Load() {
			}
			time.Sleep(time.Second)
			now.Add(-1)
		}}
		i := harness.Running(w, informer.InformerConfig{BatchHandler: &b, MaxBatch: 5, Workers: 4})
		before := time.Now()
		<-i.HasSyncedChecker().Done()
		require.LessOrEqual(t, time.Since(before), 5*time.Second)
		require.EqualValues(t, 4, most.Load())
		w.RequireState(&b.Recorder)
	})
}

// A server whose versions went back may show the one that is acknowledged while a
// later one waits. A handler that ignores unchanged objects is not told, unless it has failed
// to take the later one in.
func TestAVersionThatComesBack(t *testing.T) {
	for name, failures := range map[string]int{"while the handler is busy": 0, "after a failure": 1} {
		harness.SynctestRun(t, name, func(t *testing.T) {
			left := failures
			b := harness.Batches{See: busy, Fail: func(batch []string) error {
				if batch[0] == "update a/1" && left > 0 {
					left--
					return errors.New("half done")
				}
				return nil
			}}
			first := harness.NewSent()
			lw := &harness.Tap{OnList: harness.Lists(harness.List("10", "", harness.Pod("a/1", "5"), harness.Pod("z/busy", "4")), harness.List("8", "", harness.Pod("a/1", "5"), harness.Pod("z/busy", "4")))}
			lw.OnWatch = harness.Watches(func() (watch.Interface, error) { return first, nil }, harness.Open())
			i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
				ListerWatcher: lw, BatchHandler: informer.IgnoreSynced(&b), ErrorHandler: harness.IgnoreErrors, ListMode: informer.ListModePaged, MaxBatch: 1,
				Backoff: &wait.Backoff{Duration: time.Millisecond}, // so that the list comes before the next call
			})
			defer harness.Start(i.RunWithContext)()
			synctest.Wait() // and the handler is busy
			if failures > 0 {
				harness.Sleep(time.Second)
			}
			first.Modify(harness.Pod("a/1", "12"))
			synctest.Wait()
			first.Error(harness.Failing(harness.Expired()).Object)
			first.Stop()
			harness.Sleep(time.Minute)
			require.Zero(t, left)
			require.Equal(t, append([]string{"add a/1 initial", "add z/busy initial"}, slices.Repeat([]string{"update a/1"}, failures)...), b.Events())
			require.Equal(t, "5", b.State()["a/1"])
		})
	}
}

// The end that is told is that of the object that was acknowledged, also where another
// one came and went after it.
func TestTheDeletionOfWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []informer.Event
		sent := harness.NewSent()
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: &harness.Tap{OnList: harness.Lists(harness.List("10", "", harness.WithUID(harness.Pod("a/1", "5"), "old"))), OnWatch: sent.Answer},
			ListMode:      informer.ListModePaged, ErrorHandler: harness.IgnoreErrors,
			BatchHandler: informer.BatchHandlerFunc(func(_ context.Context, events []informer.Event) error {
				if told = append(told, events...); len(told) == 2 {
					return errors.New("no")
				}
				return nil
			}),
		})
		stop := harness.Settle(i.RunWithContext)
		sent.Modify(harness.WithUID(harness.Pod("a/1", "12"), "new"))
		synctest.Wait()
		sent.Delete(harness.WithUID(harness.Pod("a/1", "13"), "new"))
		time.Sleep(time.Minute)
		stop()
		require.Len(t, told, 3)
		for _, e := range told[1:] {
			require.Equal(t, informer.Deleted, e.Type)
			require.True(t, e.FinalStateUnknown)
			require.Equal(t, "5", e.ResourceVersion)
			require.EqualValues(t, "old", e.Object.(metav1.Object).GetUID())
		}
		require.Zero(t, i.Status().Objects)
	})
}

// What a list shows unchanged is told as that again after its call has failed: the handler knows
// no other version, whatever it has done before it failed.
func TestAnUnchangedObjectStaysUnchangedAfterAFailedCall(t *testing.T) {
	for name, configure := range map[string]func(c *informer.InformerConfig, told func(calls []string) error){
		"batches": func(c *informer.InformerConfig, told func([]string) error) {
			c.BatchHandler = &harness.Batches{Fail: told}
		},
		"keys": func(c *informer.InformerConfig, told func([]string) error) {
			c.Handler = &harness.Recorder{Before: func(call string) {
				if err := told([]string{call}); err != nil {
					panic(err)
				}
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			harness.SurvivePanics(t)
			harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
				w.CreatePods(harness.Keys(3)...)
				storage := informer.NewResourceVersionStorage()
				harness.Fill(t, w, storage, &harness.Recorder{})
				w.UpdatePod("a/0001", "changed")
				failed := map[string]bool{}
				var all []string
				c := informer.InformerConfig{Storage: storage}
				configure(&c, func(calls []string) error {
					all = append(all, calls...)
					for _, call := range calls {
						if !failed[call] {
							failed[call] = true
							return errors.New("not now")
						}
					}
					return nil
				})
				w.RunFor(harness.Follow(w, c), time.Minute)
				require.Contains(t, all, "update a/0001")
				require.Greater(t, len(all), 5)
				for _, call := range all {
					require.Contains(t, []string{"sync a/0000", "update a/0001", "sync a/0002"}, call)
				}
			})
		})
	}
}
