package controllerruntime_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/cookiejar"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/controllerruntime"
	"github.com/rvinformer/informer/objectcache"
)

func ignore(context.Context, *toolscache.Reflector, error) {}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	off := false
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	loosePod := &unstructured.Unstructured{}
	loosePod.SetGroupVersionKind(podKind)
	for refusal, c := range map[string]struct {
		opts cache.Options
		own  controllerruntime.Options
	}{
		"cache.Options.HTTPClient has a Jar": {opts: cache.Options{HTTPClient: &http.Client{Jar: jar}}},
		"cache.Options.HTTPClient has a CheckRedirect": {opts: cache.Options{
			HTTPClient: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return nil }},
		}},
		"cache.Options.NewInformer brings informers of its own": {
			opts: cache.Options{NewInformer: toolscache.NewSharedIndexInformer},
			own:  controllerruntime.Options{Objects: objectcache.Options{HotBytes: 1}},
		},
		"ByObject has two entries of /v1, Kind=Pod": {
			opts: cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {}, loosePod: {}}},
		},
		"GroupVersionKind of *unstructured.Unstructured in ByObject": {
			opts: cache.Options{ByObject: map[client.Object]cache.ByObject{&unstructured.Unstructured{}: {}}},
		},
		"/v1, Kind=Node is not namespaced, and has ByObject.Namespaces": {
			opts: cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Node{}: {Namespaces: map[string]cache.Config{"one": {}}}}},
		},
		"scope of /v1, Kind=Endpoints in ByObject": { // the server has none
			opts: cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Endpoints{}: {}}},
		},
		"Options.Objects.ResyncPeriod: set SyncPeriod": {
			own: controllerruntime.Options{Objects: objectcache.Options{ResyncPeriod: time.Hour}},
		},
		"Options.ByObject[/v1, Kind=Pod].Transform: set DefaultTransform or ByObject": {
			own: controllerruntime.Options{ByObject: map[client.Object]objectcache.Options{
				&corev1.Pod{}: {Transform: cache.TransformStripManagedFields()},
			}},
		},
		"Options.Objects.Snapshot: one store cannot keep the objects of several informers": {
			own: controllerruntime.Options{Objects: objectcache.Options{Snapshot: informer.FileCheckpoint("unused")}},
		},
		"Options.Objects.Indexers: call IndexField": {
			own: controllerruntime.Options{Objects: objectcache.Options{Indexers: toolscache.Indexers{}}},
		},
		"Options.Objects.ErrorHandler and DefaultWatchErrorHandler": {
			opts: cache.Options{DefaultWatchErrorHandler: ignore},
			own:  controllerruntime.Options{Objects: objectcache.Options{ErrorHandler: func(*informer.Reflector, error) {}}},
		},
		"Options.Objects: StallTimeout is -1s": {
			own: controllerruntime.Options{Objects: objectcache.Options{StallTimeout: -time.Second}},
		},
		"Options.Objects.ListMode is a watch-list, which needs the bookmarks": {
			opts: cache.Options{DefaultEnableWatchBookmarks: &off},
			own:  controllerruntime.Options{Objects: objectcache.Options{ListMode: informer.ListModeWatchList}},
		},
		"Options.ByObject has two entries of /v1, Kind=Pod": {
			own: controllerruntime.Options{ByObject: map[client.Object]objectcache.Options{&corev1.Pod{}: {}, loosePod: {}}},
		},
		"GroupVersionKind of *unstructured.Unstructured in Options.ByObject": {
			own: controllerruntime.Options{ByObject: map[client.Object]objectcache.Options{&unstructured.Unstructured{}: {}}},
		},
	} {
		bubbleRun(t, refusal, func(t *testing.T, b *bench) {
			_, err := controllerruntime.NewCacheWithOptions(c.own)(b.server.Config(), c.opts)
			require.ErrorContains(t, err, "controllerruntime: "+refusal)
		})
	}
	_, err = controllerruntime.NewCache(nil, cache.Options{})
	require.EqualError(t, err, "controllerruntime: the rest.Config is nil")
	_, err = controllerruntime.NewCache(&rest.Config{Host: "::"}, cache.Options{})
	require.Error(t, err)
}

func TestFieldThatAKindLacksIsAnErrorOfItsInformer(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.start(cache.Options{}, controllerruntime.Options{Objects: objectcache.Options{Keep: []string{"spec.nodeName"}}})
		require.ErrorContains(t, b.cache.List(t.Context(), &corev1.NodeList{}), `informer of /v1, Kind=Node: `)
		require.NoError(t, b.cache.List(t.Context(), &corev1.PodList{}))
	})
}

func TestNewInformerBringsItsOwnCache(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.pods("one", 1)
		var made atomic.Int32
		b.start(cache.Options{NewInformer: func(lw toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
			made.Add(1)
			return toolscache.NewSharedIndexInformer(lw, example, resync, indexers)
		}}, controllerruntime.Options{})
		require.NoError(t, b.cache.Get(t.Context(), client.ObjectKey{Namespace: "one", Name: "pod-0"}, &corev1.Pod{}))
		require.EqualValues(t, 1, made.Load())
	})
}

// counting counts the requests that go through it.
type counting struct {
	http.RoundTripper
	requests atomic.Int32
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

func TestRequestsUseTheTransportOfHTTPClient(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.pods("one", 1)
		through, err := rest.HTTPClientFor(b.server.Config())
		require.NoError(t, err)
		counted := &counting{RoundTripper: through.Transport}
		b.start(cache.Options{HTTPClient: &http.Client{Transport: counted}}, controllerruntime.Options{})
		require.NoError(t, b.cache.Get(t.Context(), client.ObjectKey{Namespace: "one", Name: "pod-0"}, &corev1.Pod{}))
		require.Len(t, b.server.Requests(), int(counted.requests.Load()))
		b.stop()
		through.CloseIdleConnections()
	})
}

func TestWatchesWithoutBookmarksAskForNone(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		off := false
		b.pods("one", 1)
		b.start(cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {EnableWatchBookmarks: &off}}}, controllerruntime.Options{})
		require.NoError(t, b.cache.List(t.Context(), &corev1.PodList{}))
		require.NoError(t, b.cache.List(t.Context(), &corev1.NodeList{}))
		synctest.Wait()
		bookmarks := map[string]bool{}
		for _, r := range b.server.Requests() {
			if r.Verb == "watch" {
				bookmarks[r.GroupVersionResource.Resource] = r.Options.AllowWatchBookmarks
			}
		}
		require.Equal(t, map[string]bool{"pods": false, "nodes": true}, bookmarks)
	})
}

func TestWatchErrorHandlerIsCalled(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.inject("list,watch,watch-list 403 times=2")
		var calls atomic.Int32
		b.start(cache.Options{DefaultWatchErrorHandler: func(ctx context.Context, r *toolscache.Reflector, err error) {
			toolscache.DefaultWatchErrorHandler(ctx, r, err) // as those do that add something to it
			calls.Add(1)
		}}, controllerruntime.Options{})
		require.NoError(t, b.cache.List(t.Context(), &corev1.PodList{}))
		require.Positive(t, calls.Load())
	})
}

func TestResyncsComeWithTheSyncPeriod(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.pods("one", 3)
		hour, ten := time.Hour, 10*time.Hour
		b.start(cache.Options{SyncPeriod: &ten, ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {SyncPeriod: &hour}}}, controllerruntime.Options{})
		i, err := b.cache.GetInformer(t.Context(), &corev1.Pod{})
		require.NoError(t, err)
		var updates atomic.Int32
		_, err = i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
			if before.(client.Object).GetResourceVersion() == after.(client.Object).GetResourceVersion() {
				updates.Add(1)
			}
		}})
		require.NoError(t, err)
		time.Sleep(48 * time.Minute)
		require.Zero(t, updates.Load())
		time.Sleep(24 * time.Minute)
		synctest.Wait()
		require.EqualValues(t, 3, updates.Load())
	})
}

func TestCacheNeedsNoLeader(t *testing.T) {
	c, err := controllerruntime.NewCache(&rest.Config{Host: "http://none"}, cache.Options{})
	require.NoError(t, err)
	require.False(t, c.(interface{ NeedLeaderElection() bool }).NeedLeaderElection())
}

var errRefused = errors.New("refused")

func TestTransportErrorsKeepTheCacheAlive(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.pods("one", 1)
		through, err := rest.HTTPClientFor(b.server.Config())
		require.NoError(t, err)
		var broken atomic.Bool
		b.start(cache.Options{HTTPClient: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			if broken.Load() {
				return nil, errRefused
			}
			return through.Transport.RoundTrip(r)
		})}}, controllerruntime.Options{})
		_, err = b.cache.GetInformer(t.Context(), &corev1.Node{}) // so that the mapping is known
		require.NoError(t, err)
		broken.Store(true)
		time.AfterFunc(time.Minute, func() { broken.Store(false) })
		var pods corev1.PodList
		require.NoError(t, b.cache.List(t.Context(), &pods))
		require.Len(t, pods.Items, 1)
		b.stop()
		through.CloseIdleConnections()
	})
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
