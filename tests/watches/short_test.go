package watches_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/informertest/oracle"
	"github.com/rvinformer/informer/objectcache"
	"github.com/rvinformer/informer/tests/harness"
)

// gateway ends each watch after a time, in order or not, and counts the requests.
type gateway struct {
	after  time.Duration
	breaks bool

	mu    sync.Mutex
	times []time.Time
}

func (g *gateway) wrap(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.times = append(g.times, time.Now())
		g.mu.Unlock()
		if !harness.IsWatch(r) {
			server.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), g.after)
		defer cancel()
		server.ServeHTTP(w, r.WithContext(ctx))
		if g.breaks && ctx.Err() != nil {
			panic(http.ErrAbortHandler)
		}
	})
}

// busiest is how many requests came in the busiest minute.
func (g *gateway) busiest() (most int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	first := 0
	for i, at := range g.times {
		for at.Sub(g.times[first]) >= time.Minute {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// latest is how late a change was told at most of one each few seconds.
func latest(w *harness.World, tells func(key string) bool, lasts time.Duration) (most time.Duration) {
	for began, n := time.Now(), 0; time.Since(began) < lasts; n++ {
		time.Sleep(7300 * time.Millisecond)
		key := fmt.Sprintf("late/%d", n)
		w.CreatePods(key)
		created := time.Now()
		for !tells(key) && time.Since(created) < 2*time.Minute {
			time.Sleep(50 * time.Millisecond)
		}
		most = max(most, time.Since(created))
	}
	return most
}

// A gateway that ends each request soon holds up no change: a watch that has ended in order is no
// failure. Where a watch can bring a bookmark before its end, CurrentAsOf is renewed.
func TestChangesBehindGatewayThatEndsWatches(t *testing.T) {
	for _, after := range []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 8 * time.Second, 9 * time.Second, 11 * time.Second, 14 * time.Second} {
		for _, breaks := range []bool{false, true} {
			g := &gateway{after: after, breaks: breaks}
			harness.BubbleRun(t, fmt.Sprintf("%v, breaks %t", after, breaks), informertest.Options{Wrap: g.wrap}, func(t *testing.T, w *harness.World) {
				w.CreateKubeSystem()
				w.CreatePods(harness.Keys(3)...)
				var r harness.Recorder
				i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r})
				store := objectcache.NewSharedIndexInformerWithOptions(w.Lister(), &unstructured.Unstructured{}, objectcache.Options{Name: "pods", ErrorHandler: harness.IgnoreErrors})
				t.Cleanup(harness.Start(store.RunWithContext))
				time.Sleep(5 * time.Minute)
				tells := func(key string) bool {
					_, told := r.State()[key]
					_, stored, err := store.GetStore().GetByKey(key)
					require.NoError(t, err)
					return told && stored
				}
				require.LessOrEqual(t, latest(w, tells, 5*time.Minute), 2600*time.Millisecond)
				w.RequireState(&r)
				require.LessOrEqual(t, g.busiest(), 2*oracle.Requests, "of two informers")
				for range 100 {
					time.Sleep(3100 * time.Millisecond)
					c := i.Status().Condition
					if breaks && after <= 2*time.Second { // the next watch has to wait for a moment
						require.Contains(t, []informer.ConditionReason{informer.ReasonCurrent, informer.ReasonServerUnreachable}, c.Reason)
						continue
					}
					require.Equal(t, informer.ReasonCurrent, c.Reason)
					require.Contains(t, c.Message, fmt.Sprintf("ends watches after %v", after))
					if after >= 4*time.Second {
						require.Less(t, age(i), 20*time.Second)
					}
				}
				require.Len(t, w.Lists(), 2, "one each")
			})
		}
	}
}

// Changes that come all the time do not prove how new the state is, but a bookmark does.
func TestCurrentAsOfOfBusyResourceBehindGateway(t *testing.T) {
	g := &gateway{after: 8 * time.Second}
	harness.Bubble(t, informertest.Options{Wrap: g.wrap}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(1)...)
		i := harness.RunningAuto(w, informer.InformerConfig{Handler: &harness.Recorder{}})
		for n := range 2000 {
			time.Sleep(300 * time.Millisecond)
			w.UpdatePod(harness.Keys(1)[0], fmt.Sprint(n))
			if n > 200 {
				require.Less(t, age(i), 20*time.Second)
			}
		}
	})
}

// withTimeout is a configuration of the server with a Timeout.
func withTimeout(w *harness.World, timeout time.Duration) *rest.Config {
	config := w.Config()
	config.Timeout = timeout
	return config
}

// The Timeout of the client's configuration ends no watch, whoever reads it.
func TestTimeoutOfConfigurationEndsNoWatch(t *testing.T) {
	for _, timeout := range []time.Duration{2 * time.Second, 5 * time.Second, 9 * time.Second} {
		harness.BubbleRun(t, timeout.String(), informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreateKubeSystem()
			w.CreatePods(harness.Keys(3)...)
			lister := harness.ListerOf(t, withTimeout(w, timeout))
			var r, handled harness.Recorder
			i := harness.RunningAuto(w, informer.InformerConfig{ListerWatcher: lister, Handler: &r})
			shared := harness.Share(w, informer.InformerConfig{ListerWatcher: lister})
			harness.AddHandler(t, shared, &handled)
			t.Cleanup(harness.Start(shared.RunWithContext))
			theirs := cache.NewStore(cache.MetaNamespaceKeyFunc)
			reflector := cache.NewReflector(lister, &unstructured.Unstructured{}, theirs, 0)
			t.Cleanup(harness.Start(reflector.RunWithContext))
			time.Sleep(time.Minute)
			tells := func(key string) bool {
				_, told := r.State()[key]
				_, toldShared := handled.State()[key]
				_, stored, err := theirs.GetByKey(key)
				require.NoError(t, err)
				return told && toldShared && stored
			}
			require.Less(t, latest(w, tells, 5*time.Minute), 100*time.Millisecond)
			require.LessOrEqual(t, i.Status().Counts.Watches.Ended+i.Status().Counts.Watches.Failed, int64(1))
			require.Less(t, age(i), 70*time.Second)
			watches := 0
			for _, request := range w.Requests() {
				if request.Verb == "watch" {
					watches++
				}
			}
			require.LessOrEqual(t, watches, 5)
		})
	}
}

// The Timeout holds for the head of a list, but not for its body, which may take as long as it
// comes.
func TestTimeoutOfConfigurationHoldsForHeadsOfLists(t *testing.T) {
	var head time.Duration
	trickles := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if harness.IsWatch(r) || r.URL.Path != "/api/v1/pods" || r.URL.Query().Get("limit") == "1" {
			return true
		}
		time.Sleep(head)
		w.Header().Set("Content-Type", "application/json")
		text := harness.ListJSON(`{"metadata":{"namespace":"a","name":"1","uid":"u","resourceVersion":"9"}}`)
		for part := range strings.SplitAfterSeq(text, ",") {
			_, _ = io.WriteString(w, part)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(3 * time.Second)
		}
		return false
	})
	harness.Bubble(t, informertest.Options{Wrap: trickles}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(20)...)
		lister := harness.ListerOf(t, withTimeout(w, 5*time.Second))
		i := harness.Follow(w, informer.InformerConfig{ListerWatcher: lister, Handler: &harness.Recorder{}})
		w.RunFor(i, 40*time.Second)
		require.True(t, i.HasSynced())

		head = 6 * time.Second
		var f harness.Failures
		i = harness.Follow(w, informer.InformerConfig{ListerWatcher: lister, Handler: &harness.Recorder{}, ErrorHandler: f.Handle})
		w.RunFor(i, 40*time.Second)
		require.False(t, i.HasSynced())
		require.Equal(t, 5*time.Second, harness.ErrorAs[*informer.StallError](t, f.Errors()[0]).Silence)
	})
}

// The Timeout of another client ends its watches. No change is held up, and the condition says so.
func TestTimeoutOfForeignClientIsTold(t *testing.T) {
	for _, timeout := range []time.Duration{2 * time.Second, 5 * time.Second, 9 * time.Second} {
		harness.BubbleRun(t, timeout.String(), informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(3)...)
			client, err := dynamic.NewForConfig(withTimeout(w, timeout))
			require.NoError(t, err)
			lw := &cache.ListWatch{
				ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
					return client.Resource(harness.Pods).List(ctx, opts)
				},
				WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
					return client.Resource(harness.Pods).Watch(ctx, opts)
				},
			}
			var r harness.Recorder
			i := harness.RunningAuto(w, informer.InformerConfig{ListerWatcher: lw, Handler: &r})
			time.Sleep(time.Minute)
			tells := func(key string) bool { _, told := r.State()[key]; return told }
			require.LessOrEqual(t, latest(w, tells, 5*time.Minute), 2600*time.Millisecond)
			require.Contains(t, i.Status().Condition.Message, "a timeout of the client")
		})
	}
}
