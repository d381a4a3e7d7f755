package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// An event that can never be read does not keep the informer from going on.
func TestRule12AnEventThatBreaksTheWatch(t *testing.T) {
	poison := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if harness.IsWatch(r) && r.URL.Query().Get("resourceVersion") == "2" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"type":"MODIFIED","object":{"no":"kind"}}` + "\n"))
			return false
		}
		return true
	})
	harness.Bubble(t, informertest.Options{Wrap: poison}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		var r harness.Recorder
		harness.Settled(w, informer.InformerConfig{Handler: &r, ErrorHandler: harness.IgnoreErrors})
		w.CreatePods("a/2")
		time.Sleep(10 * time.Minute)
		w.RequireState(&r)
		require.Equal(t, "list limit=500 watch rv=2 watch rv=2 list limit=500 watch rv=3", strings.Join(w.Verbs(), " "))
	})
}

func TestRule12AnUnreadableItemIsSkipped(t *testing.T) {
	for _, test := range []struct {
		name    string
		bad     *unstructured.Unstructured
		badKey  string
		deletes bool
	}{
		{"with a known key", func() *unstructured.Unstructured {
			obj := harness.Pod("a/2", "8")
			obj.SetKind("Service")
			return obj
		}(), "a/2", true},
		{"with nothing known", harness.ExampleObject("v1", "Pod"), "", false},
	} {
		harness.SynctestRun(t, test.name, func(t *testing.T) {
			storage := informer.NewResourceVersionStorage()
			require.NoError(t, storage.Replace(map[string]interface{}{"a/1": "7", "a/2": "5", "a/3": "6"}))
			var r harness.Recorder
			var f harness.Failures
			i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
				ListerWatcher: harness.Script{
					List:  harness.Listing("10", harness.Pod("a/1", "7"), test.bad, harness.Pod("a/4", "9")),
					Watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
				}.LW(),
				ExampleObject: harness.ExampleObject("v1", "Pod"),
				Storage:       storage,
				Handler:       &r,
				ErrorHandler:  f.Handle,
			})
			stop := harness.Settle(i.RunWithContext)
			stop()
			want := []string{"sync a/1", "add a/4 initial"}
			if test.deletes {
				want = append(want, "delete a/3 unknown")
			}
			require.Equal(t, want, r.Events(), "what may live is not deleted")
			require.EqualValues(t, 1, i.Status().Skipped)
			skipped := harness.ErrorAs[*informer.ItemError](t, f.One(t))
			require.Equal(t, 1, skipped.Index)
			require.Equal(t, test.badKey, skipped.Key)
			require.False(t, skipped.Watch)
		})
	}
}

func TestRule12ATransformThatFails(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2")
		var r harness.Recorder
		var f harness.Failures
		i := harness.Settled(w, informer.InformerConfig{
			Handler:      &r,
			ErrorHandler: f.Handle,
			Transform: func(obj interface{}) (interface{}, error) {
				if harness.Key(obj) == "a/2" {
					return nil, errors.New("too ugly")
				}
				return obj, nil
			},
		})
		w.UpdatePod("a/2", "still ugly")
		synctest.Wait()
		require.Equal(t, []string{"add a/1 initial"}, r.Events())
		errs := f.Errors()
		require.Len(t, errs, 2)
		require.EqualError(t, errs[0], `list item 1 "a/2" skipped: too ugly`)
		require.EqualError(t, errs[1], `watch event 0 "a/2" skipped: too ugly`)
		require.True(t, i.HasSynced())
	})
}

func TestRule13APanicIsReportedWithItsKey(t *testing.T) {
	harness.SurvivePanics(t)
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2", "a/3")
		storage := informer.NewResourceVersionStorage()
		var r harness.Recorder
		var f harness.Failures
		panics := true
		r.Before = func(call string) {
			if panics && strings.Contains(call, "a/2") {
				panic("no a/2 for me")
			}
		}
		i := harness.Settled(w, informer.InformerConfig{Handler: &r, Storage: storage, ErrorHandler: f.Handle})
		require.Equal(t, []string{"add a/1 initial", "add a/3 initial"}, r.Events())
		require.Equal(t, 1, i.Status().Queued, "it will be tried again")
		require.False(t, i.HasSynced())
		time.Sleep(time.Minute)
		require.Zero(t, i.Status().Queued, "it is given up")
		require.True(t, i.HasSynced())
		_, known, _ := storage.GetByKey("a/2")
		require.False(t, known, "not acknowledged")
		require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion, "it is passed")
		require.Equal(t, informer.ReasonDeadLetters, i.Status().Condition.Reason)
		require.Contains(t, i.Status().Condition.Message, `"a/2" is a dead letter`)
		errs := f.Errors()
		require.Len(t, errs, 6)
		for i, err := range errs {
			failed := harness.ErrorAs[*informer.ProcessError](t, err)
			require.Equal(t, "a/2", failed.Key)
			panicked := harness.ErrorAs[*informer.PanicError](t, err)
			require.Equal(t, "no a/2 for me", panicked.Value)
			require.Equal(t, i == 5, errors.Is(err, informer.ErrPassedOver))
		}

		panics = false
		r.Forget()
		w.Relist()
		require.Contains(t, r.Events(), "add a/2", "the next list tells it again")
		require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion)
		w.RequireState(&r)
	})
}

// A handler that panicked on an object may have taken part of it in: it hears of
// the deletion.
func TestRule13ADeletionAfterAPanic(t *testing.T) {
	harness.SurvivePanics(t)
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var r harness.Recorder
		r.Before = func(call string) {
			if call == "add a/1" {
				panic("half done")
			}
		}
		harness.Settled(w, informer.InformerConfig{Handler: &r, ErrorHandler: harness.IgnoreErrors})
		w.CreatePods("a/1")
		synctest.Wait()
		w.DeletePods("a/1")
		time.Sleep(time.Minute)
		require.Equal(t, []string{"delete a/1"}, r.Events())
	})
}

// Wherever Run is stopped, it returns with nothing left behind: the bubble ends
// only when all of its goroutines have.
func TestRule14StopAtAnyMoment(t *testing.T) {
	for at := range 12 {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			var moments atomic.Int32
			var stop context.CancelFunc
			moment := func() {
				if moments.Add(1) == int32(at) {
					stop()
				}
			}
			wrap := harness.Before(func(http.ResponseWriter, *http.Request) bool { moment(); return true })
			harness.Bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *harness.World) {
				var ctx context.Context
				ctx, stop = context.WithCancel(t.Context())
				defer stop()
				w.CreatePods("a/1", "a/2", "a/3")
				var r harness.Recorder
				r.Before = func(string) { moment() }
				storage := informer.NewResourceVersionStorage()
				i := harness.Follow(w, informer.InformerConfig{Handler: &r, Storage: storage, WatchListPageSize: 1})
				go func() {
					for n := range 3 {
						time.Sleep(time.Second)
						w.UpdatePod("a/1", fmt.Sprint(n))
					}
					stop()
				}()
				i.RunWithContext(ctx)
				<-ctx.Done()
				for key, rv := range storage.All() {
					require.Equal(t, rv, r.State()[key], "acknowledged means told")
				}
				time.Sleep(time.Minute)

				// And Run goes on from there.
				again := harness.Settle(i.RunWithContext)
				again()
				w.RequireState(&r)
			})
		})
	}
}

func TestASecondRunBesideARunningOne(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var f harness.Failures
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, ErrorHandler: f.Handle})
		stop := harness.Settle(i.RunWithContext)
		i.RunWithContext(t.Context()) // returns
		require.ErrorIs(t, f.One(t), informer.ErrAlreadyRunning)
		require.Equal(t, informer.PhaseWatching, i.Status().Phase)
		stop()
	})
}

// A handler that ends its goroutine, as a failed assertion of a test does, has not
// handled the object, and does not keep the others waiting.
func TestAHandlerThatEndsItsGoroutine(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2", "a/3")
		ends := true
		var r harness.Recorder
		r.Before = func(call string) {
			if ends && strings.HasPrefix(call, "add a/2") {
				runtime.Goexit()
			}
		}
		i := harness.Follow(w, informer.InformerConfig{Handler: &r})
		stop := harness.Settle(i.RunWithContext)
		require.Equal(t, []string{"add a/1 initial", "add a/3 initial"}, r.Events())
		require.Equal(t, 2, i.Status().Objects)
		stop()
		ends = false
		defer harness.Settle(i.RunWithContext)()
		w.RequireState(&r)
	})
}

// A key that was passed over is named by the condition. It holds up neither CurrentAsOf, nor
// WaitUntil, nor an audit, which finds it and repairs it.
func TestKeyThatIsPassedOverIsFoundAndRepaired(t *testing.T) {
	harness.SurvivePanics(t)
	for name, repair := range map[string]func(t *testing.T, w *harness.World, i informer.ResourceVersionInformer){
		"audit": func(t *testing.T, w *harness.World, i informer.ResourceVersionInformer) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			found, err := i.Audit(ctx, informer.AuditOptions{Repair: true})
			require.NoError(t, err)
			require.Len(t, found.Missing, 1)
			require.Equal(t, "a/2", found.Missing[0].Key)
			require.EqualValues(t, 1, found.Repaired)
		},
		"change": func(_ *testing.T, w *harness.World, _ informer.ResourceVersionInformer) {
			w.UpdatePod("a/2", "changed")
		},
		"list": func(_ *testing.T, w *harness.World, _ informer.ResourceVersionInformer) { w.Relist() },
		"deletion and list": func(_ *testing.T, w *harness.World, _ informer.ResourceVersionInformer) {
			w.DeletePods("a/2")
			w.Relist()
		},
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/1")
			var r harness.Recorder
			var healthy atomic.Bool
			r.Before = func(call string) {
				if strings.Contains(call, "a/2") && !healthy.Load() {
					panic("no a/2 for me")
				}
			}
			i := harness.Running(w, informer.InformerConfig{Handler: &r, ErrorHandler: harness.IgnoreErrors})
			time.Sleep(time.Minute)
			w.CreatePods("a/2")
			time.Sleep(time.Minute)
			w.UpdatePod("a/1", "changed")
			time.Sleep(time.Hour)
			status := i.Status()
			require.Equal(t, informer.ReasonDeadLetters, status.Condition.Reason)
			require.Contains(t, status.Condition.Message, `"a/2" is a dead letter`)
			require.Contains(t, status.Condition.Message, "no a/2 for me")
			require.Less(t, time.Since(status.CurrentAsOf), 2*time.Minute)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			require.NoError(t, i.WaitUntil(ctx, w.ResourceVersion()))

			healthy.Store(true)
			repair(t, w, i)
			time.Sleep(time.Minute)
			w.RequireState(&r)
			require.Equal(t, informer.ReasonCurrent, i.Status().Condition.Reason)
		})
	}
}
