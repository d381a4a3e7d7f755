package delivery_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// A request that the server refuses as bad ends a redelivery, and Redeliver returns that refusal.
func TestRedeliverEndsWithABadRequest(t *testing.T) {
	for name, o := range map[string]informer.RedeliverOptions{"all": {}, "keys": {Keys: []string{"a/1"}}} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/1")
			var r harness.Recorder
			i, _ := delivered(w, informer.InformerConfig{Handler: &r}, &r)
			w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"list"}}, Effect: informertest.Status(400)})
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			err := i.Redeliver(ctx, o)
			require.True(t, apierrors.IsBadRequest(err), "%v", err)
			require.Nil(t, i.Status().Redelivery)
			require.Empty(t, r.Events())
		})
	}
}

// The status has the error while the server does not answer, and none once it answers again.
func TestRedeliveryHasItsErrorInTheStatus(t *testing.T) {
	keys := harness.Keys(30)
	for name, o := range map[string]informer.RedeliverOptions{"all": {PerSecond: 1}, "keys": {PerSecond: 1, Keys: keys}} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(keys...)
			var r harness.Recorder
			i, _ := delivered(w, informer.InformerConfig{Handler: &r}, &r)
			done := make(chan error, 1)
			go func() { done <- i.Redeliver(t.Context(), o) }()
			time.Sleep(2 * time.Second)
			require.NoError(t, i.Status().Redelivery.Err)
			heal := w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"list"}}, Effect: informertest.Status(503)})
			time.Sleep(10 * time.Second)
			require.True(t, apierrors.IsServiceUnavailable(i.Status().Redelivery.Err))
			heal()
			require.Eventually(t, func() bool { return i.Status().Redelivery.Err == nil }, time.Minute, time.Second)
			require.NoError(t, <-done)
			require.Equal(t, updates(keys...), r.Events())
		})
	}
}

// The status says that the pages of a list lead back to an earlier one. The server is asked again at
// the pace of other errors.
func TestRedeliverOfAListThatTurnsInCircles(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		keys := harness.Keys(1700)
		w.CreatePods(keys...)
		var r harness.Recorder
		i, _ := delivered(w, informer.InformerConfig{Handler: &r}, &r)
		w.ResetRequests()
		heal := w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"list"}}, Effect: informertest.RepeatToken()})
		done := redeliver(t.Context(), i, informer.RedeliverOptions{})
		time.Sleep(time.Minute)
		require.ErrorContains(t, i.Status().Redelivery.Err, "continue token")
		require.Less(t, len(w.Lists()), 60)
		heal()
		require.NoError(t, <-done)
		require.Equal(t, updates(keys...), r.Events())
	})
}

// Behind a list that is not in the order of the keys, no key says up to where all is done: the next
// run begins from the beginning.
func TestRedeliverOfAnUnsortedListHasNoPosition(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		keys := harness.Keys(100)
		w.CreatePods(keys...)
		var r harness.Recorder
		i, stop := delivered(w, informer.InformerConfig{Handler: &r, ListerWatcher: altered{w.Lister(), slices.Reverse[[]runtime.Object]}}, &r)
		done := redeliver(t.Context(), i, informer.RedeliverOptions{PerSecond: 10})
		time.Sleep(5 * time.Second)
		require.Positive(t, i.Status().Redelivery.Done)
		require.Empty(t, i.Status().Redelivery.Position)
		stop()
		require.ErrorIs(t, <-done, informer.ErrStopped)
		r.Forget()
		w.Run(i)
		require.Eventually(t, func() bool { return i.Status().Redelivery == nil }, time.Minute, time.Second)
		calls := slices.DeleteFunc(r.Events(), func(call string) bool { return strings.HasPrefix(call, "sync ") })
		slices.Sort(calls)
		require.Equal(t, updates(keys...), calls)
	})
}

// altered changes the objects of each page.
type altered struct {
	cache.ListerWatcher
	alter func(page []runtime.Object)
}

func (a altered) List(options metav1.ListOptions) (runtime.Object, error) {
	list, err := a.ListerWatcher.List(options)
	if err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	a.alter(items)
	return list, meta.SetList(list, items)
}

// Without resource versions, it cannot be told whether an object is older than what was acknowledged.
func TestRedeliverRefusesObjectsWithoutVersions(t *testing.T) {
	for name, o := range map[string]informer.RedeliverOptions{"all": {}, "keys": {Keys: []string{"a/1"}}} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/1")
			var r harness.Recorder
			var without atomic.Bool
			i, _ := delivered(w, informer.InformerConfig{Handler: &r, ListerWatcher: altered{w.Lister(), func(page []runtime.Object) {
				for _, o := range page {
					if without.Load() {
						o.(metav1.Object).SetResourceVersion("")
					}
				}
			}}}, &r)
			without.Store(true)
			require.ErrorContains(t, i.Redeliver(t.Context(), o), "its objects have no resource version")
			require.Empty(t, r.Events())
		})
	}
}

// An object that cannot be read, or that Transform refuses, is reported, and the others are delivered.
func TestRedeliverReportsWhatCannotBeRead(t *testing.T) {
	for name, o := range map[string]informer.RedeliverOptions{"all": {}, "keys": {Keys: []string{"a/1", "a/2", "a/3"}}} {
		for how, garbage := range map[string]bool{"garbage": true, "transform": false} {
			harness.BubbleRun(t, name+" "+how, informertest.Options{}, func(t *testing.T, w *harness.World) {
				w.CreatePods("a/1", "a/2", "a/3")
				var r harness.Recorder
				var f harness.Failures
				var refuses atomic.Bool
				refused := errors.New("refused")
				i, _ := delivered(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.Handle, Transform: func(obj interface{}) (interface{}, error) {
					if refuses.Load() && obj.(metav1.Object).GetName() == "2" {
						return nil, refused
					}
					return obj, nil
				}}, &r)
				refuses.Store(!garbage)
				match := informertest.Match{Verbs: []string{"list"}}
				if garbage {
					item := 2
					if o.Keys != nil {
						match.With, item = "fieldSelector", 1
					}
					w.Inject(informertest.Fault{Match: match, Effect: informertest.Garbage(item), Skip: item % 2, Times: 1})
				}
				require.NoError(t, i.Redeliver(t.Context(), o))
				require.Equal(t, updates("a/1", "a/3"), r.Events())
				item := harness.ErrorAs[*informer.ItemError](t, f.One(t))
				if !garbage {
					require.Equal(t, "a/2", item.Key)
					require.ErrorIs(t, item, refused)
				}
			})
		}
	}
}

// A list may be ahead of the watch. Then Redeliver returns when the watch has come as far.
func TestRedeliverWaitsForTheWatch(t *testing.T) {
	for name, o := range map[string]informer.RedeliverOptions{"all": {}, "keys": {Keys: []string{"a/1"}}} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/1", "a/2")
			var r harness.Recorder
			i, _ := delivered(w, informer.InformerConfig{Handler: &r}, &r)
			defer w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch"}}, Effect: informertest.Delay(5 * time.Second)})()
			w.UpdatePod("a/1", "changed")
			began := time.Now()
			require.NoError(t, i.Redeliver(t.Context(), o))
			require.GreaterOrEqual(t, time.Since(began), time.Second)
			w.RequireState(&r)
		})
	}
}

// Where versions have no order, Redeliver does not wait for the watch, which delivers newer states
// later.
func TestRedeliverOfVersionsWithoutOrder(t *testing.T) {
	for name, o := range map[string]informer.RedeliverOptions{"all": {}, "keys": {Keys: []string{"a/1", "a/2"}}} {
		harness.BubbleRun(t, name, informertest.Options{OpaqueVersions: true}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/1", "a/2")
			var r harness.Recorder
			i, _ := delivered(w, informer.InformerConfig{Handler: &r}, &r)
			defer w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch"}}, Effect: informertest.Delay(5 * time.Second)})()
			w.UpdatePod("a/1", "changed")
			require.NoError(t, i.Redeliver(t.Context(), o))
			require.Contains(t, r.Events(), "update a/2")
			harness.Sleep(time.Minute)
			w.RequireState(&r)
		})
	}
}

// A redelivery of keys goes on in the next run behind the last key that was acknowledged, and says
// how many there are.
func TestRedeliverOfKeysGoesOnInTheNextRun(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		keys := harness.Keys(60)
		w.CreatePods(keys...)
		var r harness.Recorder
		i, stop := delivered(w, informer.InformerConfig{Handler: &r}, &r)
		done := redeliver(t.Context(), i, informer.RedeliverOptions{Keys: keys[:40], PerSecond: 1})
		harness.Sleep(20*time.Second + time.Millisecond)
		require.EqualValues(t, 40, i.Status().Redelivery.Total)
		before := r.Events()
		require.InDelta(t, 20, len(before), 2)
		stop()
		require.ErrorIs(t, <-done, informer.ErrStopped)
		r.Forget()
		w.Run(i)
		require.Eventually(t, func() bool { return i.Status().Redelivery == nil }, time.Minute, time.Second)
		after := slices.DeleteFunc(r.Events(), func(call string) bool { return strings.HasPrefix(call, "sync ") })
		require.Equal(t, updates(keys[:40]...), append(before, after...))
	})
}

// A proxy that drops the selector of a request shows other objects too. Redeliver delivers none of
// them.
func TestRedeliverOfKeysBehindAProxyThatSelectsNothing(t *testing.T) {
	harness.Bubble(t, informertest.Options{Wrap: func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			query := r.URL.Query()
			query.Del("fieldSelector")
			r.URL.RawQuery = query.Encode()
			server.ServeHTTP(w, r)
		})
	}}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2", "a/3")
		var r harness.Recorder
		calls := redelivered(w, informer.InformerConfig{Handler: &r}, &r, informer.RedeliverOptions{Keys: []string{"a/2", "b/9"}})
		require.Equal(t, []string{"update a/2", "delete b/9 unknown"}, calls)
	})
}
