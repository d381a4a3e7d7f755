package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// holding has a call of r wait until free is closed.
func holding(r *harness.Recorder, call string) (free chan struct{}) {
	free = make(chan struct{})
	r.Before = func(c string) {
		if c == call {
			<-free
		}
	}
	return free
}

// held follows pods with a handler whose update of a/1 waits until free is closed.
func held(w *harness.World, r *harness.Recorder, keys ...string) (i informer.ResourceVersionInformer, free chan struct{}) {
	w.CreatePods(keys...)
	free = holding(r, "update a/1")
	i, _ = delivered(w, informer.InformerConfig{Handler: r}, r)
	return i, free
}

// redeliver calls Redeliver in a goroutine.
func redeliver(ctx context.Context, i informer.ResourceVersionInformer, o informer.RedeliverOptions) <-chan error {
	done := make(chan error, 1)
	go func() { done <- i.Redeliver(ctx, o) }()
	return done
}

// refusingWhile has a handler refuse a key at times.
func refusingWhile(is *atomic.Bool, key string) func(batch []string) error {
	return func(batch []string) error {
		if is.Load() {
			return refusing(batch, key)
		}
		return nil
	}
}

// The deletion of a key that is named is delivered also if the key has come and gone, and waits.
func TestRedeliverOfAKeyThatCameAndWent(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var r harness.Recorder
		i, free := held(w, &r, "a/1")
		w.UpdatePod("a/1", "busy")
		synctest.Wait()
		w.CreatePods("a/2")
		w.DeletePods("a/2")
		synctest.Wait()
		done := redeliver(t.Context(), i, informer.RedeliverOptions{Keys: []string{"a/2"}})
		time.Sleep(time.Second)
		close(free)
		require.NoError(t, <-done)
		time.Sleep(time.Minute)
		require.Contains(t, strings.Join(r.Events(), ","), "delete a/2")
	})
}

// The same if the key comes and goes while its deletion waits.
func TestRedeliverOfAKeyThatComesAndGoes(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var r harness.Recorder
		i, free := held(w, &r, "a/1")
		w.UpdatePod("a/1", "busy")
		synctest.Wait()
		done := redeliver(t.Context(), i, informer.RedeliverOptions{Keys: []string{"a/2"}})
		time.Sleep(time.Second)
		w.CreatePods("a/2")
		synctest.Wait()
		w.DeletePods("a/2")
		time.Sleep(time.Second)
		close(free)
		require.NoError(t, <-done)
		time.Sleep(time.Minute)
		require.Contains(t, r.Events(), "delete a/2 unknown")
	})
}

// A call that was under way before is no redelivery.
func TestRedeliverDuringACall(t *testing.T) {
	for name, o := range map[string]informer.RedeliverOptions{"all": {}, "keys": {Keys: []string{"a/1"}}} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			var r harness.Recorder
			i, free := held(w, &r, "a/1")
			w.UpdatePod("a/1", "changed")
			synctest.Wait()
			done := redeliver(t.Context(), i, o)
			time.Sleep(time.Second)
			close(free)
			require.NoError(t, <-done)
			require.Equal(t, updates("a/1", "a/1"), r.Events())
		})
	}
}

// A key is gone, and the watch has not told of that yet. Redeliver waits for the deletion, also if a
// call for the key is under way.
func TestRedeliverOfAKeyThatIsGoneDuringACall(t *testing.T) {
	for name, busy := range map[string]bool{"idle": false, "call under way": true} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			var r harness.Recorder
			i, free := held(w, &r, "a/1")
			if busy {
				w.UpdatePod("a/1", "changed")
				synctest.Wait()
			}
			defer w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch"}}, Effect: informertest.Delay(20 * time.Second)})()
			w.DeletePods("a/1")
			done := redeliver(t.Context(), i, informer.RedeliverOptions{Keys: []string{"a/1"}})
			time.Sleep(time.Second)
			close(free)
			require.NoError(t, <-done)
			require.Contains(t, r.Events(), "delete a/1")
		})
	}
}

// A change that takes the place of a redelivery that waits has a time of arrival.
func TestChangeInPlaceOfARedeliveryGrowsOld(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var r harness.Recorder
		i, free := held(w, &r, "a/1", "a/2")
		done := redeliver(t.Context(), i, informer.RedeliverOptions{})
		time.Sleep(time.Second)
		w.UpdatePod("a/2", "changed")
		time.Sleep(time.Minute)
		s := i.Status()
		oldest, reason := s.OldestQueued, s.Condition.Reason
		close(free)
		require.NoError(t, <-done)
		require.False(t, oldest.IsZero())
		require.Equal(t, informer.ReasonHandlerSlow, reason)
	})
}

// The end of a call that was under way before settles no key for which the server is still asked: the
// next run delivers it.
func TestRedeliverOfAKeyThatIsAskedForAtTheEnd(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		var r harness.Recorder
		free := holding(&r, "update a/1")
		store := &harness.MemoryCheckpoint{}
		i := harness.Follow(w, informer.InformerConfig{Handler: &r, Checkpoint: store})
		stop := w.Run(i)
		time.Sleep(10 * time.Second)
		r.Forget()
		w.UpdatePod("a/1", "changed")
		synctest.Wait()
		end := w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"list"}}, Effect: informertest.Status(500)})
		done := redeliver(t.Context(), i, informer.RedeliverOptions{Keys: []string{"a/1"}})
		time.Sleep(time.Second)
		close(free)
		time.Sleep(10 * time.Second)
		stop()
		require.ErrorIs(t, <-done, informer.ErrStopped)
		end()
		again := harness.Recorder{Folded: r.State()}
		i = harness.Follow(w, informer.InformerConfig{Handler: &again, Checkpoint: store})
		w.Run(i)
		time.Sleep(time.Minute)
		require.Nil(t, i.Status().Redelivery)
		require.Equal(t, updates("a/1"), again.Events())
	})
}

// A redelivery that the handler refuses holds up no checkpoint.
func TestRedeliverHoldsUpNoCheckpoint(t *testing.T) {
	for name, fails := range map[string]bool{"repeat is taken in": false, "repeat fails": true} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/1", "a/2", "a/3")
			var failing atomic.Bool
			b := harness.Batches{Fail: refusingWhile(&failing, "a/2")}
			store := &harness.MemoryCheckpoint{}
			i := harness.Running(w, informer.InformerConfig{BatchHandler: &b, Checkpoint: store, WatchListPageSize: 1, CheckpointInterval: time.Hour})
			time.Sleep(3 * time.Minute)
			failing.Store(fails)
			done := redeliver(t.Context(), i, informer.RedeliverOptions{})
			time.Sleep(3 * time.Minute)
			end := w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"list"}}, Effect: informertest.Delay(5 * time.Second)})
			w.Relist()
			end()
			time.Sleep(30 * time.Minute)
			saved := harness.ReadSaved(t, store.Bytes()).Resume
			failing.Store(false)
			require.NoError(t, <-done)
			require.NotEmpty(t, saved)
		})
	}
}

// What waits when Run ends is not kept: it is out of the budget.
func TestObjectsAreNotKeptAfterRun(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var pods []*unstructured.Unstructured
		for _, key := range harness.Keys(500) {
			pods = append(pods, harness.Object(harness.Pods, key, strings.Repeat("x", 1000)))
		}
		var mu sync.Mutex
		var objects []weak.Pointer[unstructured.Unstructured]
		budget := informer.NewBudget(1 << 20)
		i := harness.Follow(w, informer.InformerConfig{
			Budget: budget, ListerWatcher: harness.Script{
				List:  harness.Listing("9", pods...),
				Watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
			}.LW(),
			MaxBatch: 1,
			BatchHandler: informer.BatchHandlerFunc(func(ctx context.Context, _ []informer.Event) error {
				<-ctx.Done()
				return ctx.Err()
			}),
			Transform: func(obj interface{}) (interface{}, error) {
				obj = obj.(*unstructured.Unstructured).DeepCopy()
				mu.Lock()
				defer mu.Unlock()
				objects = append(objects, weak.Make(obj.(*unstructured.Unstructured)))
				return obj, nil
			},
		})
		stop := w.Run(i)
		synctest.Wait()
		stop()
		for range 5 {
			runtime.GC()
		}
		live := 0
		for _, o := range objects {
			if o.Value() != nil {
				live++
			}
		}
		require.Zero(t, budget.InUse())
		runtime.KeepAlive(i)
		require.Less(t, live, 10)
	})
}

// Run and Redeliver may have one context, that of the program. The next process goes on, as after a
// crash.
func TestRedeliverWithTheContextOfRun(t *testing.T) {
	for range 20 { // which of two contexts is seen first is up to a select
		harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(100)...)
			store := &harness.MemoryCheckpoint{}
			var r harness.Recorder
			i := harness.Follow(w, informer.InformerConfig{Handler: &r, Checkpoint: store})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { defer close(ended); i.RunWithContext(ctx) }()
			time.Sleep(time.Second)
			done := redeliver(ctx, i, informer.RedeliverOptions{PerSecond: 10})
			time.Sleep(5 * time.Second)
			cancel()
			err := <-done
			<-ended
			next := harness.Running(w, informer.InformerConfig{Handler: &r, Checkpoint: store})
			time.Sleep(time.Second)
			require.ErrorIs(t, err, informer.ErrStopped)
			require.NotNil(t, next.Status().Redelivery)
		})
	}
}

// A call of a redelivery that was given up is none of the next one.
func TestRedeliverDuringACallOfAnother(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var r harness.Recorder
		i, free := held(w, &r, "a/1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Error(t, i.Redeliver(ctx, informer.RedeliverOptions{}))
		done := redeliver(t.Context(), i, informer.RedeliverOptions{})
		time.Sleep(time.Second)
		close(free)
		require.NoError(t, <-done)
		require.Equal(t, updates("a/1", "a/1"), r.Events())
	})
}

// The server does not have the object of a dead letter any more, and the watch is yet to tell of its
// last states. Its deletion is not told before these.
func TestRedeliverOfADeadLetterThatIsGone(t *testing.T) {
	for name, o := range map[string]informer.RedeliverOptions{"all": {}, "keys": {Keys: []string{"a/1"}}} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/1")
			var failing atomic.Bool
			b := harness.Batches{Fail: refusingWhile(&failing, "a/1")}
			i := harness.Running(w, informer.InformerConfig{BatchHandler: &b, MaxAttempts: 1})
			time.Sleep(time.Minute)
			failing.Store(true)
			w.UpdatePod("a/1", "refused")
			time.Sleep(time.Minute)
			require.Len(t, i.DeadLetters(), 1)
			failing.Store(false)
			b.Forget()

			end := w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch"}}, Effect: informertest.Delay(20 * time.Second)})
			w.UpdatePod("a/1", "changed")
			time.Sleep(time.Second)
			w.DeletePods("a/1")
			require.NoError(t, i.Redeliver(t.Context(), o))
			end()
			time.Sleep(time.Minute)
			require.Equal(t, []string{"update a/1", "delete a/1"}, b.Events())
			require.Empty(t, i.DeadLetters())
		})
	}
}

// The handler has refused the end of an object, and the one that came in its place. Both are
// delivered again, also where versions have no order.
func TestRedeliverOfARefusedEndAndWhatCameAfterIt(t *testing.T) {
	for name, opaque := range map[string]bool{"ordered": false, "opaque": true} {
		for kind, o := range map[string]informer.RedeliverOptions{"all": {}, "keys": {Keys: []string{"a/1"}}} {
			harness.BubbleRun(t, name+" "+kind, informertest.Options{OpaqueVersions: opaque}, func(t *testing.T, w *harness.World) {
				w.CreatePods("a/1")
				var failing atomic.Bool
				b := harness.Batches{Fail: refusingWhile(&failing, "a/1")}
				i := harness.Running(w, informer.InformerConfig{BatchHandler: &b, MaxAttempts: 1})
				time.Sleep(time.Minute)
				failing.Store(true)
				w.DeletePods("a/1")
				time.Sleep(time.Minute)
				w.CreatePods("a/1")
				time.Sleep(time.Minute)
				require.Len(t, i.DeadLetters(), 1)
				failing.Store(false)
				b.Forget()
				require.NoError(t, i.Redeliver(t.Context(), o))
				time.Sleep(time.Minute)
				require.Equal(t, []string{"delete a/1 unknown", "add a/1"}, b.Events())
				require.Empty(t, i.DeadLetters())
			})
		}
	}
}

// The handler refuses more of an object while the server is asked for it. Its answer is too old then,
// also where versions have no order: the server is asked again.
func TestRedeliverAsksAgainAfterARefusalMeanwhile(t *testing.T) {
	remove := func(w *harness.World) { w.DeletePods("a/1") }
	create := func(w *harness.World) { w.CreatePods("a/1") }
	replace := func(w *harness.World) { remove(w); create(w) }
	update := func(w *harness.World) { w.UpdatePod("a/1", fmt.Sprint(time.Now())) }
	for name, c := range map[string]struct {
		taken, before, meanwhile func(w *harness.World) // before are refused, as is what comes meanwhile
		want                     []string
	}{
		"refused end, another":          {nil, remove, create, []string{"delete a/1 unknown", "add a/1"}},
		"refused end, another, another": {nil, replace, replace, []string{"delete a/1 unknown", "add a/1"}},
		"refused end, another, end":     {nil, replace, remove, []string{"delete a/1 unknown"}},
		"refused, newer":                {nil, update, update, []string{"update a/1"}},
		"refused, end":                  {nil, update, remove, []string{"delete a/1 unknown"}},
		"taken in, newer":               {update, nil, update, []string{"update a/1"}},
		"end taken in, another":         {remove, nil, create, []string{"add a/1"}},
	} {
		for _, opaque := range []bool{false, true} {
			options := informertest.Options{OpaqueVersions: opaque, Wrap: late("fieldSelector", time.Minute)}
			harness.BubbleRun(t, fmt.Sprintf("%s, opaque=%v", name, opaque), options, func(t *testing.T, w *harness.World) {
				create(w)
				var failing atomic.Bool
				b := harness.Batches{Fail: refusingWhile(&failing, "a/1")}
				i := harness.Running(w, informer.InformerConfig{BatchHandler: &b, MaxAttempts: 1})
				time.Sleep(time.Minute)
				for refused, act := range map[bool]func(*harness.World){false: c.taken, true: c.before} {
					if act != nil {
						failing.Store(refused)
						act(w)
						time.Sleep(time.Second)
					}
				}
				failing.Store(true)
				done := redeliver(t.Context(), i, informer.RedeliverOptions{Keys: []string{"a/1"}})
				time.Sleep(time.Second)
				c.meanwhile(w)
				time.Sleep(time.Second)
				require.Equal(t, []string{"a/1"}, letterKeys(i))
				failing.Store(false)
				b.Forget()
				require.NoError(t, <-done)
				require.Equal(t, c.want, b.Events())
				w.RequireState(&b.Recorder)
				require.Empty(t, letterKeys(i))
			})
		}
	}
}

// The handler refuses an object again and again, faster than the server answers. That does not hold up
// the redelivery of others: the handler was given the object since Redeliver was called.
func TestRedeliverEndsThoughAnObjectIsRefusedAgainAndAgain(t *testing.T) {
	for _, opaque := range []bool{false, true} {
		for kind, o := range map[string]informer.RedeliverOptions{"all": {}, "keys": {Keys: []string{"a/1", "a/2"}}} {
			options := informertest.Options{OpaqueVersions: opaque, Wrap: late("fieldSelector", 3*time.Second)}
			harness.BubbleRun(t, fmt.Sprintf("%s, opaque=%v", kind, opaque), options, func(t *testing.T, w *harness.World) {
				w.CreatePods("a/1", "a/2")
				var failing atomic.Bool
				b := harness.Batches{Fail: refusingWhile(&failing, "a/1")}
				i := harness.Running(w, informer.InformerConfig{BatchHandler: &b, MaxAttempts: 1})
				time.Sleep(time.Minute)
				failing.Store(true)
				w.UpdatePod("a/1", "refused")
				time.Sleep(time.Second)
				b.Forget()
				done := redeliver(t.Context(), i, o)
				for n := range 100 {
					w.UpdatePod("a/1", fmt.Sprint(n))
					time.Sleep(2 * time.Second)
				}
				select {
				case err := <-done:
					require.NoError(t, err)
				default:
					t.Error("Redeliver has not returned")
				}
				require.Equal(t, updates("a/2"), b.Events())
				require.Equal(t, []string{"a/1"}, letterKeys(i))
				failing.Store(false)
				require.NoError(t, i.Redeliver(t.Context(), o))
				w.RequireState(&b.Recorder)
				require.Empty(t, letterKeys(i))
			})
		}
	}
}

// A state that comes after a refused one cannot be read at first. When it can, Redeliver delivers
// it, and an object that waits behind a refused end stays a dead letter until it is taken in.
func TestRedeliverOfWhatCouldNotBeReadAfterARefusal(t *testing.T) {
	update := func(w *harness.World) { w.UpdatePod("a/1", fmt.Sprint(time.Now())) }
	for name, c := range map[string]struct {
		refused, unreadable func(w *harness.World)
		want                []string
	}{
		"update":                {update, update, []string{"update a/1"}},
		"end, another":          {func(w *harness.World) { w.DeletePods("a/1") }, func(w *harness.World) { w.CreatePods("a/1") }, []string{"delete a/1 unknown", "add a/1"}},
		"end, another, changed": {func(w *harness.World) { w.DeletePods("a/1"); w.CreatePods("a/1") }, update, []string{"delete a/1 unknown", "add a/1"}},
	} {
		for _, opaque := range []bool{false, true} {
			harness.BubbleRun(t, fmt.Sprintf("%s, opaque=%v", name, opaque), informertest.Options{OpaqueVersions: opaque}, func(t *testing.T, w *harness.World) {
				w.CreatePods("a/1")
				var failing, unreadable atomic.Bool
				b := harness.Batches{Fail: refusingWhile(&failing, "a/1")}
				config := informer.InformerConfig{
					BatchHandler: &b, MaxAttempts: 1, ErrorHandler: harness.IgnoreErrors,
					Transform: func(obj interface{}) (interface{}, error) {
						if unreadable.Load() {
							return nil, errors.New("unreadable")
						}
						return obj, nil
					},
				}
				i := harness.Running(w, config)
				time.Sleep(time.Minute)
				failing.Store(true)
				c.refused(w)
				time.Sleep(time.Minute)
				unreadable.Store(true)
				c.unreadable(w)
				time.Sleep(time.Minute)
				require.Equal(t, []string{"a/1"}, letterKeys(i))
				require.Equal(t, w.ResourceVersion(), i.DeadLetters()[0].Newest)
				failing.Store(false)
				unreadable.Store(false)
				b.Forget()
				require.NoError(t, i.Redeliver(t.Context(), informer.RedeliverOptions{}))
				require.Equal(t, c.want, b.Events())
				w.RequireState(&b.Recorder)
				require.Empty(t, i.DeadLetters())
			})
		}
	}
}

// late has the answers to requests with a parameter arrive so much later than the server has made them.
func late(parameter string, delay time.Duration) func(http.Handler) http.Handler {
	return func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !r.URL.Query().Has(parameter) {
				server.ServeHTTP(w, r)
				return
			}
			answer := httptest.NewRecorder()
			server.ServeHTTP(answer, r)
			time.Sleep(delay)
			maps.Copy(w.Header(), answer.Header())
			w.WriteHeader(answer.Code)
			_, _ = w.Write(answer.Body.Bytes())
		})
	}
}

// The handler has refused the deletion of a named key, and the run has ended. The next one delivers
// it, also if the server has gone on meanwhile: the watch has nothing to tell of the key.
func TestRedeliverOfAKeyThatWasRefused(t *testing.T) {
	for name, goesOn := range map[string]bool{"still": false, "the server goes on": true} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/1")
			var failing atomic.Bool
			failing.Store(true)
			b := harness.Batches{Fail: refusingWhile(&failing, "a/2")}
			i := harness.Follow(w, informer.InformerConfig{BatchHandler: &b, Checkpoint: &harness.MemoryCheckpoint{}})
			stop := w.Run(i)
			time.Sleep(time.Minute)
			done := redeliver(t.Context(), i, informer.RedeliverOptions{Keys: []string{"a/2"}})
			time.Sleep(10 * time.Second)
			stop()
			require.ErrorIs(t, <-done, informer.ErrStopped)
			failing.Store(false)
			b.Forget()
			if goesOn {
				w.CreateKubeSystem()
			}
			w.Run(i)
			time.Sleep(10 * time.Minute)
			require.Equal(t, []string{"delete a/2 unknown"}, b.Events())
			require.Nil(t, i.Status().Redelivery)
		})
	}
}

// A key that changes faster than the handler takes its changes in is delivered again, too.
func TestRedeliverOfABusyKey(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2")
		var r harness.Recorder
		r.Before = func(string) { time.Sleep(300 * time.Millisecond) }
		i, _ := delivered(w, informer.InformerConfig{Handler: &r, Workers: 4}, &r)
		var done <-chan error
		for n := range 600 {
			if n == 100 {
				done = redeliver(t.Context(), i, informer.RedeliverOptions{})
			}
			w.UpdatePod("a/1", fmt.Sprint(n))
			time.Sleep(100 * time.Millisecond)
		}
		require.Len(t, done, 1, "it has returned while the key is busy")
		require.NoError(t, <-done)
		require.Contains(t, r.Events(), "update a/2")
	})
}
