package servers_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// both lists and watches, and ends the watch.
func both(t *testing.T, lw cache.ListerWatcher, opts metav1.ListOptions) *unstructured.UnstructuredList {
	t.Helper()
	listed, err := lw.List(opts)
	require.NoError(t, err)
	watching, err := lw.Watch(metav1.ListOptions{ResourceVersion: listed.(*unstructured.UnstructuredList).GetResourceVersion()})
	require.NoError(t, err)
	stopWatching(watching)
	return listed.(*unstructured.UnstructuredList)
}

func stopWatching(w watch.Interface) {
	w.Stop()
	for range w.ResultChan() {
	}
}

func TestDynamicListerWatcherIsNamespaced(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "b/1", "b/2")
		for namespace, want := range map[string]int{"": 3, "a": 1, "b": 2, "c": 0} {
			w.ResetRequests()
			require.Len(t, both(t, w.Factory().ForResource(namespace, harness.Pods), metav1.ListOptions{}).Items, want)
			for _, r := range w.Requests() {
				require.Equal(t, namespace, r.Namespace)
				require.Equal(t, harness.Pods, r.GroupVersionResource)
			}
			require.Len(t, w.Requests(), 2)
		}
		lw := w.Factory().ForResource("", harness.Pods)
		require.Implements(t, (*cache.ListerWatcherWithContext)(nil), lw)
		_, err := w.Factory().ForResource("a", harness.Widgets).List(metav1.ListOptions{})
		require.NoError(t, err)
	})
}

func TestTweakChangesListsAndWatches(t *testing.T) {
	tweak := func(opts *metav1.ListOptions) {
		opts.LabelSelector = "app=x"
		opts.Limit = 99
		opts.Continue = "mine"
	}
	for name, makeLister := range map[string]func(w *harness.World) cache.ListerWatcher{
		"ForResourceWithOptions": func(w *harness.World) cache.ListerWatcher {
			return w.Factory().ForResourceWithOptions("a", harness.Pods, tweak)
		},
		"NewFilteredListerWatcher": func(w *harness.World) cache.ListerWatcher {
			return informer.NewFilteredListerWatcher(w.Factory().ForResource("a", harness.Pods), tweak)
		},
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/1", "a/2")
			lw := makeLister(w)
			both(t, lw, metav1.ListOptions{Limit: 2})
			listed, err := lw.(cache.ListerWatcherWithContext).ListWithContext(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			require.Empty(t, listed.(*unstructured.UnstructuredList).Items)
			watching, err := lw.(cache.ListerWatcherWithContext).WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: w.ResourceVersion()})
			require.NoError(t, err)
			stopWatching(watching)
			require.Len(t, w.Requests(), 4)
			for i, r := range w.Requests() {
				require.Equal(t, "app=x", r.Options.LabelSelector)
				require.Empty(t, r.Options.Continue)
				require.Equal(t, map[bool]int64{true: 2}[i == 0], r.Options.Limit)
			}
		})
	}
}

func TestNoTweakIsNoChange(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2", "a/3")
		for _, lw := range []cache.ListerWatcher{
			w.Factory().ForResourceWithOptions("", harness.Pods, nil),
			informer.NewFilteredListerWatcher(w.Factory().ForResource("", harness.Pods), nil),
		} {
			first := both(t, lw, metav1.ListOptions{Limit: 2})
			require.Len(t, first.Items, 2)
			require.Len(t, both(t, lw, metav1.ListOptions{Limit: 2, Continue: first.GetContinue()}).Items, 1)
		}
	})
}

func TestB17WatchesOfTheFactoryAreLong(t *testing.T) {
	for name, makeLister := range map[string]func(w *harness.World) cache.ListerWatcher{
		"ForResource": func(w *harness.World) cache.ListerWatcher { return w.Factory().ForResource("", harness.Pods) },
		"ForResourceWithOptions": func(w *harness.World) cache.ListerWatcher {
			return w.Factory().ForResourceWithOptions("", harness.Pods, func(*metav1.ListOptions) {})
		},
		"filtered": func(w *harness.World) cache.ListerWatcher {
			return informer.NewFilteredListerWatcher(w.Factory().ForResource("", harness.Pods), nil)
		},
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			lw := makeLister(w)
			seen := map[int64]bool{}
			for i := range 20 {
				seconds := int64(1)
				opts := metav1.ListOptions{ResourceVersion: w.ResourceVersion(), TimeoutSeconds: &seconds}
				var watching watch.Interface
				var err error
				if i%2 == 0 {
					watching, err = lw.Watch(opts)
				} else {
					watching, err = lw.(cache.ListerWatcherWithContext).WatchWithContext(t.Context(), opts)
				}
				require.NoError(t, err)
				stopWatching(watching)
				require.Equal(t, int64(1), seconds, "the caller's own is not changed")
			}
			for _, r := range w.Requests() {
				asked := time.Duration(*r.Options.TimeoutSeconds) * time.Second
				require.GreaterOrEqual(t, asked, 15*time.Minute)
				require.Less(t, asked, 30*time.Minute)
				seen[*r.Options.TimeoutSeconds] = true
			}
			require.Greater(t, len(seen), 5, "it is random")
		})
	}
}

func TestContextEndsARequestThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered, left := make(chan struct{}, 2), make(chan struct{}, 2)
		s := informertest.NewServer(informertest.Options{InMemory: true, Wrap: func(http.Handler) http.Handler {
			return http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
				entered <- struct{}{}
				<-req.Context().Done()
				left <- struct{}{}
			})
		}})
		defer s.Close()
		w := &harness.World{T: t, Server: s}
		filteredToo := informer.NewFilteredListerWatcher(w.Factory().ForResource("", harness.Pods), func(*metav1.ListOptions) {})
		for _, lw := range []cache.ListerWatcher{w.Factory().ForResource("", harness.Pods), filteredToo} {
			for _, ask := range []func(ctx context.Context) error{
				func(ctx context.Context) error {
					_, err := lw.(cache.ListerWatcherWithContext).ListWithContext(ctx, metav1.ListOptions{})
					return err
				},
				func(ctx context.Context) error {
					_, err := lw.(cache.ListerWatcherWithContext).WatchWithContext(ctx, metav1.ListOptions{})
					return err
				},
			} {
				ctx, cancel := context.WithCancel(t.Context())
				result := make(chan error)
				go func() { result <- ask(ctx) }()
				<-entered
				begin := time.Now()
				cancel()
				require.ErrorIs(t, <-result, context.Canceled)
				<-left
				require.Zero(t, time.Since(begin))
			}
		}
	})
}

func TestListOfAMissingResourceIsAnErrorAndNil(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		missing := harness.Pods
		missing.Resource = "missing"
		listed, err := w.Factory().ForResource("", missing).List(metav1.ListOptions{})
		require.Error(t, err)
		require.True(t, listed == nil, "not a nil in an interface")
	})
}

func TestFactoryOfABadConfig(t *testing.T) {
	for _, config := range []*rest.Config{
		{Host: "http://bad host/"},
		{Host: "https://host", TLSClientConfig: rest.TLSClientConfig{CAFile: "/does/not/exist"}},
	} {
		factory, err := informer.NewDynamicListerWatcherFactory(config)
		require.Error(t, err)
		require.Nil(t, factory)
	}
}

func TestFactoryWithoutAConfigIsAnError(t *testing.T) {
	factory, err := informer.NewDynamicListerWatcherFactory(nil)
	require.ErrorContains(t, err, "the rest.Config is nil")
	require.Nil(t, factory)
}

func TestFactoryCopiesItsConfig(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		config := w.Config()
		factory, err := informer.NewDynamicListerWatcherFactory(config)
		require.NoError(t, err)
		config.Host = "http://elsewhere.invalid"
		require.Len(t, both(t, factory.ForResource("", harness.Pods), metav1.ListOptions{}).Items, 1)
	})
}

// plainLister has no methods with a context.
type plainLister struct{ asked []metav1.ListOptions }

func (l *plainLister) List(opts metav1.ListOptions) (runtime.Object, error) {
	l.asked = append(l.asked, opts)
	return harness.List("5", ""), nil
}

func (l *plainLister) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	l.asked = append(l.asked, opts)
	return harness.Stream(false), nil
}

func TestListerWithoutContextIsEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lw := &plainLister{}
		r := informer.NewReflector(informer.NewFilteredListerWatcher(lw, func(opts *metav1.ListOptions) { opts.FieldSelector = "x" }), nil, &harness.Journal{}, 0)
		stop := harness.Settle(r.RunWithContext)
		stop()
		require.Len(t, lw.asked, 2)
		require.Equal(t, "x", lw.asked[0].FieldSelector)
		require.Equal(t, "x", lw.asked[1].FieldSelector)
		require.True(t, r.HasInitializedSynced())
	})
}

func TestFactoryRefusesANamespaceThatIsNone(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		factory := w.Factory()
		var f harness.Failures
		harness.Settled(w, informer.InformerConfig{ListerWatcher: factory.ForResource("a/../b", harness.Pods), Handler: &harness.Recorder{}, ErrorHandler: f.Handle})
		require.ErrorContains(t, f.Errors()[0], `namespace "a/../b" of a list of pods`)
		require.Empty(t, w.Requests())
	})
}

// The QPS of the configuration is that of each ListerWatcher, whether its lists are decoded or
// read off the wire.
func TestEachListerWatcherHasTheQPSForItself(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(1)...)
		config := w.Config()
		config.QPS, config.Burst = 0.1, 1
		factory, err := informer.NewDynamicListerWatcherFactory(config)
		require.NoError(t, err)
		one, other := factory.ForResource("", harness.Pods), factory.ForResource("", harness.Pods)
		began := time.Now()
		for _, lw := range []cache.ListerWatcher{one, other} {
			_, err := lw.List(metav1.ListOptions{})
			require.NoError(t, err)
		}
		require.Less(t, time.Since(began), time.Second)

		i := harness.Running(w, informer.InformerConfig{ListerWatcher: one, Handler: &harness.Recorder{}})
		time.Sleep(9 * time.Second)
		require.False(t, i.HasSynced())
		time.Sleep(2 * time.Second)
		require.True(t, i.HasSynced())
		_, err = other.List(metav1.ListOptions{})
		require.NoError(t, err)
		require.Less(t, time.Since(began), 12*time.Second)
		_, err = other.List(metav1.ListOptions{})
		require.NoError(t, err)
		require.Greater(t, time.Since(began), 20*time.Second)
	})
}
