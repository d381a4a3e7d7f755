package informer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// before lets a test act when a request arrives, before the server answers it.
// The request is answered by the server if act returns true.
func before(act func(w http.ResponseWriter, r *http.Request) bool) func(http.Handler) http.Handler {
	return func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if act(w, r) {
				server.ServeHTTP(w, r)
			}
		})
	}
}

func isWatch(r *http.Request) bool   { return r.URL.Query().Get("watch") != "" }
func continues(r *http.Request) bool { return r.URL.Query().Get("continue") != "" }
func keys(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("a/%04d", i))
	}
	return all
}
func follow(w *world, c informer.InformerConfig) informer.ResourceVersionInformer {
	if c.ListerWatcher == nil {
		c.ListerWatcher = w.lister()
	}
	if c.ErrorHandler == nil {
		// Not the default: utilruntime.HandleError sleeps between two errors, by a
		// clock that it shares with other bubbles.
		c.ErrorHandler = (&failures{}).handle
	}
	return informer.NewResourceVersionInformer("pods", c)
}

func TestRule1ObjectsArriveBeforeTheNextPageDoes(t *testing.T) {
	secondPage := make(chan struct{})
	hold := before(func(_ http.ResponseWriter, r *http.Request) bool {
		if continues(r) {
			<-secondPage
		}
		return true
	})
	bubble(t, informertest.Options{Wrap: hold}, func(t *testing.T, w *world) {
		secondPage = make(chan struct{}) // of this bubble
		w.create("a/1", "a/2", "a/3")
		var r recorder
		i := follow(w, informer.InformerConfig{Handler: &r, WatchListPageSize: 2})
		defer start(i.RunWithContext)()
		synctest.Wait()
		require.Equal(t, []string{"add a/1 initial", "add a/2 initial"}, r.events())
		require.False(t, i.HasSynced())
		require.Equal(t, informer.PhaseListing, i.Status().Phase)
		close(secondPage)
		synctest.Wait()
		require.True(t, i.HasSynced())
		w.requireState(&r)
	})
}

// An expired token starts the generation again; the second time, the list is
// taken whole. Nothing is deleted on the way.
func TestRule2ExpiredTokens(t *testing.T) {
	var w *world
	expireAll := before(func(_ http.ResponseWriter, r *http.Request) bool {
		if continues(r) {
			w.update("z/1", fmt.Sprint(w.ResourceVersion()))
			w.Compact()
		}
		return true
	})
	bubble(t, informertest.Options{Wrap: expireAll}, func(t *testing.T, world *world) {
		w = world
		w.create("a/1", "a/2", "a/3", "z/1")
		var r recorder
		i := follow(w, informer.InformerConfig{Handler: &r, WatchListPageSize: 2})
		defer start(i.RunWithContext)()
		synctest.Wait()
		require.Equal(t, []string{
			"list limit=2", "list limit=2 continue",
			"list limit=2", "list limit=2 continue",
			"list", "watch rv=" + w.ResourceVersion(),
		}, w.verbs())
		require.Equal(t, []string{"add a/1 initial", "add a/2 initial", "sync a/1", "sync a/2", "sync a/1", "sync a/2", "add a/3 initial", "add z/1 initial"}, r.events())
		require.True(t, i.HasSynced())
		w.requireState(&r)
	})
}

// cutting writes part of an answer and then breaks the connection.
type cutting struct {
	http.ResponseWriter
	left int
}

func (c *cutting) Write(b []byte) (int, error) {
	if len(b) < c.left {
		c.left -= len(b)
		return c.ResponseWriter.Write(b)
	}
	_, _ = c.ResponseWriter.Write(b[:c.left])
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

func TestRule2APageCutShortIsAskedForAgain(t *testing.T) {
	var cut atomic.Bool
	cutOnce := func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if continues(r) && cut.CompareAndSwap(false, true) {
				w = &cutting{ResponseWriter: w, left: 200}
			}
			server.ServeHTTP(w, r)
		})
	}
	bubble(t, informertest.Options{Wrap: cutOnce}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2", "a/3", "a/4", "a/5")
		var r recorder
		var f failures
		i := follow(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.handle, WatchListPageSize: 2})
		defer start(i.RunWithContext)()
		<-i.HasSyncedChecker().Done()
		synctest.Wait()
		require.Equal(t, []string{
			"list limit=2", "list limit=2 continue", "list limit=2 continue", "list limit=2 continue",
			"watch rv=" + w.ResourceVersion(),
		}, w.verbs())
		errs, _ := f.all()
		require.Len(t, errs, 1)
		w.requireState(&r)
		require.Len(t, r.events(), 5, "each object once")
	})
}

// relist cuts the watch and makes the server forget the past, so that the
// informer has to list again, and waits until it may have.
func (w *world) relist() {
	w.down(func() {})
}

// down does what happens while the informer has no connection. It has to list
// again then.
func (w *world) down(meanwhile func()) {
	w.blocked.Lock()
	w.CloseClientConnections()
	synctest.Wait()
	meanwhile()
	w.create("zz/relist")
	w.remove("zz/relist")
	w.Compact()
	w.blocked.Unlock()
	time.Sleep(time.Minute)
}

func TestRule3ASweepCoversWhatStillWaits(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2", "a/3")
		release := make(chan struct{})
		var r recorder
		r.before = func(string) { <-release }
		i := follow(w, informer.InformerConfig{Handler: &r})
		defer start(i.RunWithContext)()
		synctest.Wait() // a/1 is in the handler, a/2 and a/3 wait

		w.down(func() {
			w.remove("a/1", "a/2") // in the handler, and waiting
			w.create("a/4")
		})
		require.False(t, i.HasSynced())
		close(release)
		synctest.Wait()
		require.True(t, i.HasSynced())
		w.requireState(&r)
		require.Equal(t, []string{"add a/1 initial", "add a/3 initial", "add a/4", "delete a/1 unknown"}, r.events(),
			"a/2 came and went before it could be told")
	})
}

func TestRule4StorageMovesAfterTheHandler(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1")
		storage := informer.NewResourceVersionStorage()
		hold := make(chan struct{})
		var r recorder
		r.before = func(call string) {
			if call == "update a/1" {
				<-hold
			}
		}
		i := follow(w, informer.InformerConfig{Handler: &r, Storage: storage})
		defer start(i.RunWithContext)()
		synctest.Wait()
		first, _, _ := storage.GetByKey("a/1")
		acknowledged := i.Status().ResourceVersion
		require.Equal(t, w.ResourceVersion(), acknowledged)

		w.update("a/1", "changed")
		w.create("a/2")
		synctest.Wait()
		now, _, _ := storage.GetByKey("a/1")
		require.Equal(t, first, now, "the handler has not returned")
		require.Equal(t, acknowledged, i.Status().ResourceVersion)
		require.Equal(t, 2, i.Status().Queued)
		require.Positive(t, i.Status().QueuedBytes)
		require.Equal(t, w.ResourceVersion(), i.LastSyncResourceVersion())

		close(hold)
		synctest.Wait()
		require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion)
		require.Zero(t, i.Status().Queued)
		require.Zero(t, i.Status().QueuedBytes)
		versions, err := w.ResourceVersions(pods, "")
		require.NoError(t, err)
		for key, rv := range storage.All() {
			require.Equal(t, versions[key], rv)
		}
		require.Equal(t, len(versions), storage.Len())
	})
}

// With several workers, calls of one key never overlap and never change order.
func TestRule5OrderPerKey(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(20)...)
		var mu sync.Mutex
		inside := map[string]int{}
		most := 0
		var r recorder
		r.before = func(call string) {
			k := strings.Fields(call)[1]
			mu.Lock()
			inside[k]++
			require.Equal(t, 1, inside[k], "two calls of %s at once", k)
			most = max(most, len(inside))
			mu.Unlock()
			time.Sleep(time.Duration(len(call)) * time.Millisecond)
			mu.Lock()
			delete(inside, k)
			mu.Unlock()
		}
		i := follow(w, informer.InformerConfig{Handler: &r, Workers: 4})
		stop := start(i.RunWithContext)
		defer stop()
		for round := range 30 {
			k := keys(20)[round%20]
			w.update(k, fmt.Sprint(round))
			if round%3 == 0 {
				w.remove(k)
				w.create(k)
			}
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		w.requireState(&r)
		require.Equal(t, 4, most, "workers side by side")
	})
}

func TestRule5NoDeleteIsLost(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(40)...)
		var r recorder
		r.before = func(string) { time.Sleep(20 * time.Millisecond) }
		i := follow(w, informer.InformerConfig{Handler: &r})
		defer start(i.RunWithContext)()
		time.Sleep(30 * time.Millisecond)
		// Most of these still wait as objects of the list.
		w.remove(keys(20)...)
		time.Sleep(time.Minute)
		w.requireState(&r)
		require.Len(t, r.state(), 20)
	})
}

func TestRule6UnchangedIsUnchanged(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2")
		storage := informer.NewResourceVersionStorage()
		var r recorder
		i := follow(w, informer.InformerConfig{Handler: &r, Storage: storage, WatchListPageSize: 1})
		stop := start(i.RunWithContext)
		defer func() { stop() }()
		synctest.Wait()

		r.forget()
		w.relist()
		require.Equal(t, []string{"sync a/1", "sync a/2"}, r.events(), "a relist")

		stop()
		r.forget()
		w.update("a/2", "changed meanwhile")
		stop = start(i.RunWithContext)
		synctest.Wait()
		require.Equal(t, []string{"sync a/1", "update a/2"}, r.events(), "the same informer again")
		stop()

		r.forget()
		i = follow(w, informer.InformerConfig{Handler: &r, Storage: storage})
		stop = start(i.RunWithContext)
		synctest.Wait()
		require.Equal(t, []string{"sync a/1", "sync a/2"}, r.events(), "another informer, same storage")
		stop()

		r.forget()
		loaded := map[string]interface{}{}
		for key, rv := range storage.All() {
			loaded[key] = rv
		}
		fresh := informer.NewResourceVersionStorage()
		require.NoError(t, fresh.Replace(loaded))
		i = follow(w, informer.InformerConfig{Handler: &r, Storage: fresh})
		stop = start(i.RunWithContext)
		synctest.Wait()
		require.Equal(t, []string{"sync a/1", "sync a/2"}, r.events(), "a storage loaded from elsewhere")
		w.requireState(&r)
	})
}

func TestRule6UnchangedIsNotQueuedWhereNoOneListens(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2")
		transformed := 0
		config := informer.InformerConfig{
			Handler: informer.ResourceEventHandlerFuncs{AddFunc: func(interface{}) {}},
			Transform: func(obj interface{}) (interface{}, error) {
				transformed++
				return obj, nil
			},
		}
		i := follow(w, config)
		start(i.RunWithContext)()
		stop := start(i.RunWithContext)
		synctest.Wait()
		require.Equal(t, 2, transformed)
		w.relist()
		stop()
		require.Equal(t, 2, transformed)
	})
}

func TestRule7RecreatedObjects(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1")
		old, err := w.Get(pods, "a", "1")
		require.NoError(t, err)
		var tombstones []interface{}
		var r recorder
		handler := deletions{&r, &tombstones}
		i := follow(w, informer.InformerConfig{Handler: handler, ExampleObject: example("v1", "Pod")})
		stop := start(i.RunWithContext)
		defer func() { stop() }()
		synctest.Wait()
		stop()

		r.forget()
		w.remove("a/1")
		w.create("a/1")
		stop = start(i.RunWithContext)
		synctest.Wait()
		require.Equal(t, []string{"delete a/1 unknown", "add a/1 initial"}, r.events(), "recreated while the informer was down")
		require.Equal(t, &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "1", UID: old.GetUID(), ResourceVersion: old.GetResourceVersion()},
		}, lastKnown(t, tombstones[0]))

		r.forget()
		hold := make(chan struct{})
		r.before = func(call string) {
			if call == "add a/2" {
				<-hold
			}
		}
		w.create("a/2")
		synctest.Wait()
		w.remove("a/1")
		w.create("a/1")
		w.update("a/1", "and changed")
		synctest.Wait()
		close(hold)
		synctest.Wait()
		require.Equal(t, []string{"add a/2", "delete a/1", "add a/1"}, r.events(), "recreated while it waited")
		w.requireState(&r)
	})
}

// deletions keeps what a handler was told of deletions.
type deletions struct {
	*recorder
	objects *[]interface{}
}

func (d deletions) OnDelete(obj interface{}) {
	*d.objects = append(*d.objects, obj)
	d.recorder.OnDelete(obj)
}

func example(apiVersion, kind string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	return obj
}

func TestRule8AListIsNotOlderThanTheStorage(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2")
		storage := informer.NewResourceVersionStorage()
		require.NoError(t, storage.Replace(map[string]interface{}{"a/1": "2", "a/2": "3", "a/3": "opaque"}))
		var r recorder
		i := follow(w, informer.InformerConfig{Handler: &r, Storage: storage, ListMode: informer.ListModeFull})
		defer start(i.RunWithContext)()
		synctest.Wait()
		require.Equal(t, "list rv=3", w.verbs()[0])
		require.Equal(t, []string{"sync a/1", "sync a/2", "delete a/3 unknown"}, r.events())
	})
}

// A server whose versions went back, as after a restore, is noticed: what
// differs is told although its versions are lower.
func TestRule8ARestoredServer(t *testing.T) {
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeFull} {
		t.Run(mode.String(), func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
				w.SetResourceVersion(500)
				w.create("a/1", "a/2")
				var r recorder
				i := follow(w, informer.InformerConfig{Handler: &r, ListMode: mode})
				defer start(i.RunWithContext)()
				synctest.Wait()

				w.SetResourceVersion(100)
				w.update("a/1", "as it was long ago")
				w.remove("a/2")
				w.create("a/3")
				w.CloseClientConnections()
				time.Sleep(time.Hour)
				w.requireState(&r)
				require.Contains(t, r.events(), "update a/1")

				w.update("a/1", "and life goes on")
				synctest.Wait()
				w.requireState(&r)
				require.Zero(t, i.Status().Stale)
			})
		})
	}
}

// script is a ListerWatcher of functions, for what no server would say.
type script struct {
	list  func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error)
	watch func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

func (s script) lw() cache.ListerWatcher {
	return &cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
}

// versioned is a pod in a version.
func versioned(key, rv string) *unstructured.Unstructured {
	obj := object(pods, key, "")
	obj.SetResourceVersion(rv)
	return obj
}

func listOf(rv string, objs ...*unstructured.Unstructured) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{Object: map[string]interface{}{"apiVersion": "v1", "kind": "PodList"}}
	list.SetResourceVersion(rv)
	for _, obj := range objs {
		list.Items = append(list.Items, *obj)
	}
	return list
}

// listing always lists objs in version rv.
func listing(rv string, objs ...*unstructured.Unstructured) func(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return func(context.Context, metav1.ListOptions) (runtime.Object, error) { return listOf(rv, objs...), nil }
}

func TestRule8StaleEventsAreDroppedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := watch.NewFake()
		var r recorder
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: script{
				list:  listing("10", versioned("a/1", "7"), versioned("a/2", "8")),
				watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return events, nil },
			}.lw(),
			Handler: &r,
		})
		defer start(i.RunWithContext)()
		synctest.Wait()
		r.forget()
		events.Modify(versioned("a/1", "6"))
		events.Modify(versioned("a/1", "7"))
		events.Delete(versioned("a/2", "5"))
		synctest.Wait()
		require.Empty(t, r.events())
		require.EqualValues(t, 3, i.Status().Stale)
		require.Equal(t, "10", i.LastSyncResourceVersion())

		events.Modify(versioned("a/1", "100")) // longer is later
		events.Delete(versioned("a/2", "8"))   // a deletion in the version that it ended
		synctest.Wait()
		require.Equal(t, []string{"update a/1", "delete a/2"}, r.events())
		require.EqualValues(t, 3, i.Status().Stale)
	})
}

// silent answers watches with a header, perhaps a bookmark, and silence.
func silent(bookmark string) func(http.Handler) http.Handler {
	return before(func(w http.ResponseWriter, r *http.Request) bool {
		if !isWatch(r) {
			return true
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte(bookmark))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return false
	})
}

func TestRule10ASilentWatchIsStartedAnew(t *testing.T) {
	const bookmark = `{"type":"BOOKMARK","object":{"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"9"}}}` + "\n"
	for _, test := range []struct {
		name         string
		bookmark     string
		stallTimeout time.Duration
		least, most  time.Duration
		resumeAt     string
	}{
		{"after a bookmark", bookmark, 0, 150 * time.Second, 150 * time.Second, "9"},
		{"before one, the time asked for and a margin", "", 0, 15*time.Minute + 30*time.Second, 30*time.Minute + 30*time.Second, "2"},
		{"StallTimeout", "", 42 * time.Second, 42 * time.Second, 42 * time.Second, "2"},
		{"StallTimeout after a bookmark", bookmark, 42 * time.Second, 42 * time.Second, 42 * time.Second, "9"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, informertest.Options{Wrap: silent(test.bookmark)}, func(t *testing.T, w *world) {
				w.create("a/1")
				var r recorder
				var f failures
				i := follow(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.handle, StallTimeout: test.stallTimeout})
				defer start(i.RunWithContext)()
				synctest.Wait()
				time.Sleep(test.least - time.Second)
				synctest.Wait()
				require.Len(t, w.Requests(), 2)
				time.Sleep(test.most - test.least + 2*time.Second)
				synctest.Wait()
				require.Equal(t, []string{"list limit=500", "watch rv=2", "watch rv=" + test.resumeAt}, w.verbs())
				errs, _ := f.all()
				require.Len(t, errs, 1)
				var stalled *informer.StallError
				require.ErrorAs(t, errs[0], &stalled)
				require.NoError(t, i.Status().LastError, "the next watch has started")
			})
		})
	}
}

// A slow handler holds the reading up; that is not the server's silence.
func TestRule10ASlowHandlerIsNoStall(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(1500)...)
		var r recorder
		r.before = func(string) { time.Sleep(time.Second) }
		var f failures
		i := follow(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.handle})
		defer start(i.RunWithContext)()
		<-i.HasSyncedChecker().Done()
		for _, k := range keys(1400) {
			w.update(k, "changed")
		}
		time.Sleep(time.Hour)
		w.requireState(&r)
		errs, _ := f.all()
		require.Empty(t, errs)
	})
}

// The waits between failures grow from 0.8 s to 30 s and up to as much again at
// random, and start again after two minutes of peace.
func TestRule11Backoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []time.Time
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: script{list: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				asked = append(asked, time.Now())
				return nil, apierrors.NewInternalError(errors.New("broken"))
			}}.lw(),
			Handler:      &recorder{},
			ErrorHandler: (&failures{}).handle,
		})
		stop := start(i.RunWithContext)
		time.Sleep(10 * time.Minute)
		require.Equal(t, informer.PhaseBackoff, i.Status().Phase)
		require.ErrorContains(t, i.Status().LastError, "broken")
		stop()
		least := 800 * time.Millisecond
		for n, at := range asked[1:12] {
			wait := at.Sub(asked[n])
			require.GreaterOrEqual(t, wait, least)
			require.LessOrEqual(t, wait, 2*least)
			least = min(2*least, 30*time.Second)
		}
	})
}

func TestRule11WatchFailures(t *testing.T) {
	gr := pods.GroupResource()
	tooLarge := apierrors.NewTimeoutError("Too large resource version: 10, current: 5", 1)
	tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	for _, test := range []struct {
		name string
		err  error
		want string // the requests after the failed watch
		wait time.Duration
	}{
		{"410 lists", apierrors.NewResourceExpired("gone"), "list rv= watch rv=10", 0},
		{"429 watches again, after as long as asked", apierrors.NewTooManyRequests("slow down", 70), "watch rv=10", 70 * time.Second},
		{"500 watches again", apierrors.NewInternalError(errors.New("broken")), "watch rv=10", 0},
		{"503 watches again", apierrors.NewServiceUnavailable("starting"), "watch rv=10", 0},
		{"no connection watches again", errors.New("dial tcp: connection refused"), "watch rv=10", 0},
		{"too large lists", tooLarge, "list rv= watch rv=10", 0},
		{"401 watches again", apierrors.NewUnauthorized("who?"), "watch rv=10", 0},
		{"403 watches again", apierrors.NewForbidden(gr, "", errors.New("no")), "watch rv=10", 0},
		{"404 watches again", apierrors.NewNotFound(gr, ""), "watch rv=10", 0},
		{"400 lists", apierrors.NewBadRequest("what?"), "list rv= watch rv=10", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked []string
				failed := false
				var at time.Time
				s := script{
					list: func(_ context.Context, opts metav1.ListOptions) (runtime.Object, error) {
						asked = append(asked, "list rv="+opts.ResourceVersion)
						return listOf("10", versioned("a/1", "7")), nil
					},
					watch: func(_ context.Context, opts metav1.ListOptions) (watch.Interface, error) {
						asked = append(asked, "watch rv="+opts.ResourceVersion)
						if !failed {
							failed, at = true, time.Now()
							return nil, test.err
						}
						if at != (time.Time{}) {
							require.GreaterOrEqual(t, time.Since(at), test.wait)
							at = time.Time{}
						}
						return watch.NewFake(), nil
					},
				}
				var r recorder
				var f failures
				i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: s.lw(), Handler: &r, ErrorHandler: f.handle})
				stop := start(i.RunWithContext)
				time.Sleep(70*time.Second + time.Second)
				stop()
				require.Equal(t, test.want, strings.Join(asked[2:], " "))
				errs, started := f.all()
				require.Equal(t, []error{test.err}, errs)
				require.Equal(t, 1, started)
				require.NoError(t, i.Status().LastError)
			})
		})
	}
}

// An informer that is refused says so, keeps asking, and recovers.
func TestRule11ARefusedInformerRecovers(t *testing.T) {
	var allowed atomic.Bool
	forbid := before(func(w http.ResponseWriter, r *http.Request) bool {
		if !allowed.Load() {
			http.Error(w, "no", http.StatusForbidden)
			return false
		}
		return true
	})
	bubble(t, informertest.Options{Wrap: forbid}, func(t *testing.T, w *world) {
		w.create("a/1")
		var r recorder
		i := follow(w, informer.InformerConfig{Handler: &r, ErrorHandler: (&failures{}).handle})
		defer start(i.RunWithContext)()
		time.Sleep(10 * time.Minute)
		require.True(t, apierrors.IsForbidden(i.Status().LastError), "%v", i.Status().LastError)
		require.Equal(t, informer.PhaseBackoff, i.Status().Phase)
		require.False(t, i.HasSynced())
		require.Less(t, len(w.Requests()), 30, "no busy loop")
		allowed.Store(true)
		time.Sleep(2 * time.Minute)
		require.True(t, i.HasSynced())
		require.NoError(t, i.Status().LastError)
	})
}

// An event that can never be read does not keep the informer from going on.
func TestRule12AnEventThatBreaksTheWatch(t *testing.T) {
	poison := before(func(w http.ResponseWriter, r *http.Request) bool {
		if isWatch(r) && r.URL.Query().Get("resourceVersion") == "2" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"type":"MODIFIED","object":{"no":"kind"}}` + "\n"))
			return false
		}
		return true
	})
	bubble(t, informertest.Options{Wrap: poison}, func(t *testing.T, w *world) {
		w.create("a/1")
		var r recorder
		i := follow(w, informer.InformerConfig{Handler: &r, ErrorHandler: (&failures{}).handle})
		defer start(i.RunWithContext)()
		synctest.Wait()
		w.create("a/2")
		time.Sleep(10 * time.Minute)
		w.requireState(&r)
		require.Equal(t, "list limit=500 watch rv=2 watch rv=2 list limit=500 watch rv=3", strings.Join(w.verbs(), " "))
	})
}

func TestRule12AnUnreadableItemIsSkipped(t *testing.T) {
	for _, test := range []struct {
		name    string
		bad     *unstructured.Unstructured
		badKey  string
		deletes bool
	}{
		{"of which the key is known", func() *unstructured.Unstructured {
			obj := versioned("a/2", "8")
			obj.SetKind("Service")
			return obj
		}(), "a/2", true},
		{"of which nothing is known", example("v1", "Pod"), "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				storage := informer.NewResourceVersionStorage()
				require.NoError(t, storage.Replace(map[string]interface{}{"a/1": "7", "a/2": "5", "a/3": "6"}))
				var r recorder
				var f failures
				i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
					ListerWatcher: script{
						list:  listing("10", versioned("a/1", "7"), test.bad, versioned("a/4", "9")),
						watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
					}.lw(),
					ExampleObject: example("v1", "Pod"),
					Storage:       storage,
					Handler:       &r,
					ErrorHandler:  f.handle,
				})
				stop := start(i.RunWithContext)
				synctest.Wait()
				stop()
				want := []string{"sync a/1", "add a/4 initial"}
				if test.deletes {
					want = append(want, "delete a/3 unknown")
				}
				require.Equal(t, want, r.events(), "what may live is not deleted")
				require.EqualValues(t, 1, i.Status().Skipped)
				errs, _ := f.all()
				require.Len(t, errs, 1)
				var skipped *informer.ItemError
				require.ErrorAs(t, errs[0], &skipped)
				require.Equal(t, 1, skipped.Index)
				require.Equal(t, test.badKey, skipped.Key)
				require.False(t, skipped.Watch)
			})
		})
	}
}

func TestRule12ATransformThatFails(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2")
		var r recorder
		var f failures
		i := follow(w, informer.InformerConfig{
			Handler:      &r,
			ErrorHandler: f.handle,
			Transform: func(obj interface{}) (interface{}, error) {
				if key(obj) == "a/2" {
					return nil, errors.New("too ugly")
				}
				return obj, nil
			},
		})
		defer start(i.RunWithContext)()
		synctest.Wait()
		w.update("a/2", "still ugly")
		synctest.Wait()
		require.Equal(t, []string{"add a/1 initial"}, r.events())
		errs, _ := f.all()
		require.Len(t, errs, 2)
		require.EqualError(t, errs[0], `list item 1 "a/2" skipped: too ugly`)
		require.EqualError(t, errs[1], `watch event 0 "a/2" skipped: too ugly`)
		require.True(t, i.HasSynced())
	})
}

// surviving lets the process survive panics for the time of a test.
func surviving(t *testing.T) {
	utilruntime.ReallyCrash = false
	t.Cleanup(func() { utilruntime.ReallyCrash = true })
}

func TestRule13APanicIsReportedWithItsKey(t *testing.T) {
	surviving(t)
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2", "a/3")
		storage := informer.NewResourceVersionStorage()
		var r recorder
		var f failures
		panics := true
		r.before = func(call string) {
			if panics && strings.Contains(call, "a/2") {
				panic("no a/2 for me")
			}
		}
		i := follow(w, informer.InformerConfig{Handler: &r, Storage: storage, ErrorHandler: f.handle})
		defer start(i.RunWithContext)()
		synctest.Wait()
		require.Equal(t, []string{"add a/1 initial", "add a/3 initial"}, r.events())
		require.True(t, i.HasSynced(), "every call has returned")
		_, known, _ := storage.GetByKey("a/2")
		require.False(t, known, "not acknowledged")
		require.Empty(t, i.Status().ResourceVersion, "not everything is acknowledged")
		errs, _ := f.all()
		require.Len(t, errs, 1)
		var failed *informer.ProcessError
		require.ErrorAs(t, errs[0], &failed)
		require.Equal(t, "a/2", failed.Key)
		var panicked *informer.PanicError
		require.ErrorAs(t, errs[0], &panicked)
		require.Equal(t, "no a/2 for me", panicked.Value)

		panics = false
		r.forget()
		w.relist()
		require.Contains(t, r.events(), "add a/2", "the next list tells it again")
		require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion)
		w.requireState(&r)
	})
}

// A handler that panicked on an object may have taken part of it in: it hears of
// the deletion.
func TestRule13ADeletionAfterAPanic(t *testing.T) {
	surviving(t)
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		var r recorder
		r.before = func(call string) {
			if call == "add a/1" {
				panic("half done")
			}
		}
		i := follow(w, informer.InformerConfig{Handler: &r, ErrorHandler: (&failures{}).handle})
		defer start(i.RunWithContext)()
		synctest.Wait()
		w.create("a/1")
		synctest.Wait()
		w.remove("a/1")
		synctest.Wait()
		require.Equal(t, []string{"delete a/1"}, r.events())
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
			wrap := before(func(http.ResponseWriter, *http.Request) bool { moment(); return true })
			bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *world) {
				var ctx context.Context
				ctx, stop = context.WithCancel(t.Context())
				defer stop()
				w.create("a/1", "a/2", "a/3")
				var r recorder
				r.before = func(string) { moment() }
				storage := informer.NewResourceVersionStorage()
				i := follow(w, informer.InformerConfig{Handler: &r, Storage: storage, WatchListPageSize: 1})
				go func() {
					for n := range 3 {
						time.Sleep(time.Second)
						w.update("a/1", fmt.Sprint(n))
					}
					stop()
				}()
				i.RunWithContext(ctx)
				<-ctx.Done()
				for key, rv := range storage.All() {
					require.Equal(t, rv, r.state()[key], "acknowledged means told")
				}
				time.Sleep(time.Minute)

				// And Run goes on from there.
				again := start(i.RunWithContext)
				synctest.Wait()
				again()
				w.requireState(&r)
			})
		})
	}
}

func TestASecondRunBesideARunningOne(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		var f failures
		i := follow(w, informer.InformerConfig{Handler: &recorder{}, ErrorHandler: f.handle})
		stop := start(i.RunWithContext)
		synctest.Wait()
		i.RunWithContext(t.Context()) // returns
		errs, _ := f.all()
		require.Len(t, errs, 1)
		require.ErrorIs(t, errs[0], informer.ErrAlreadyRunning)
		require.Equal(t, informer.PhaseWatching, i.Status().Phase)
		stop()
	})
}
