package watches_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// put writes a pod and returns its resource version.
func put(w *harness.World, key, value string) (resourceVersion string) {
	w.T.Helper()
	stored, err := w.Update(harness.Pods, harness.Object(harness.Pods, key, value))
	require.NoError(w.T, err)
	return stored.GetResourceVersion()
}

// untilCall is a call of WaitUntil.
type untilCall struct {
	done  chan struct{}
	err   error
	ended time.Time
}

type waiter interface {
	WaitUntil(ctx context.Context, resourceVersion string) error
}

// waitFor calls WaitUntil.
func waitFor(ctx context.Context, i waiter, resourceVersion string) *untilCall {
	w := &untilCall{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.err = i.WaitUntil(ctx, resourceVersion)
		w.ended = time.Now()
	}()
	return w
}

// over reports whether the call has returned, or will without time passing.
func (w *untilCall) over() bool {
	synctest.Wait()
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// gate is a handler that waits in each call until it is opened.
type gate struct {
	harness.Recorder
	open chan struct{}
}

func closedGate() *gate {
	g := &gate{open: make(chan struct{})}
	g.Before = func(string) { <-g.open }
	return g
}

func TestWaitUntilOwnWrite(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		r := &harness.Recorder{}
		i := harness.Follow(w, informer.InformerConfig{Handler: r})
		early := waitFor(t.Context(), i, w.ResourceVersion())
		require.False(t, early.over(), "the informer does not run yet")
		defer harness.Start(i.RunWithContext)()
		require.True(t, early.over())
		require.NoError(t, early.err)
		require.Len(t, r.Events(), 3)
		time.Sleep(time.Minute)
		for n := range 3 {
			rv := put(w, "a/0001", fmt.Sprint(n))
			require.NoError(t, i.WaitUntil(t.Context(), rv))
			require.Equal(t, rv, r.State()["a/0001"])
			require.Equal(t, rv, i.Status().ResourceVersion)
		}
		require.NoError(t, i.WaitUntil(t.Context(), "1"), "what is older is acknowledged, too")
		w.DeletePods("a/0002")
		require.NoError(t, i.WaitUntil(t.Context(), w.ResourceVersion()), "a deletion")
		require.NotContains(t, r.State(), "a/0002")
	})
}

func TestWaitUntilWaitsForTheHandler(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/b")
		g := closedGate()
		i := harness.Running(w, informer.InformerConfig{Handler: g})
		listed := waitFor(t.Context(), i, w.ResourceVersion())
		time.Sleep(time.Hour)
		require.False(t, listed.over(), "the handler has not returned")
		changed := waitFor(t.Context(), i, put(w, "a/b", "2"))
		added := waitFor(t.Context(), i, func() string { w.CreatePods("a/c"); return w.ResourceVersion() }())
		time.Sleep(time.Minute)
		g.open <- struct{}{} // a/b as listed
		require.True(t, listed.over())
		require.False(t, changed.over() || added.over())
		g.open <- struct{}{} // a/c: it did not wait behind another call of its key
		require.False(t, changed.over())
		require.False(t, added.over(), "what is before it is not acknowledged")
		require.Equal(t, []string{"add a/b initial", "add a/c"}, g.Events())
		close(g.open)
		require.True(t, changed.over() && added.over())
		require.NoError(t, errors.Join(listed.err, changed.err, added.err))
	})
}

func TestWaitUntilWaitsForAFailingBatch(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var mended sync.Map
		handler := informer.BatchHandlerFunc(func(_ context.Context, events []informer.Event) error {
			for _, e := range events {
				if _, ok := mended.Load(e.Key); !ok {
					return errors.New("not now")
				}
			}
			return nil
		})
		mended.Store("a/good", true)
		w.CreatePods("a/good")
		i := harness.Running(w, informer.InformerConfig{BatchHandler: handler})
		require.NoError(t, i.WaitUntil(t.Context(), w.ResourceVersion()))
		w.CreatePods("a/bad")
		bad := waitFor(t.Context(), i, w.ResourceVersion())
		good := waitFor(t.Context(), i, put(w, "a/good", "2"))
		time.Sleep(10 * time.Minute)
		require.False(t, bad.over())
		require.False(t, good.over(), "what is before it is not acknowledged")
		mended.Store("a/bad", true)
		time.Sleep(time.Minute)
		require.True(t, bad.over() && good.over())
		require.NoError(t, errors.Join(bad.err, good.err))
	})
}

// A version that no followed object has passes with a bookmark.
func TestWaitUntilABookmark(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		lw := w.Factory().ForResourceWithOptions("", harness.Pods, func(o *metav1.ListOptions) { o.FieldSelector = "metadata.namespace=mine" })
		w.CreatePods("mine/a")
		i := harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{}, ListerWatcher: lw})
		time.Sleep(30 * time.Second)
		w.CreatePods("others/a")
		began := time.Now()
		require.NoError(t, i.WaitUntil(t.Context(), w.ResourceVersion()))
		require.InDelta(t, 30, time.Since(began).Seconds(), 1, "the next bookmark")
	})
}

func TestWaitUntilAcrossABrokenWatch(t *testing.T) {
	for name, breaks := range map[string]func(w *harness.World){
		"cut":     func(w *harness.World) { w.CloseClientConnections() },
		"expired": func(w *harness.World) { w.CloseClientConnections(); w.Compact() },
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(3)...)
			r := &harness.Recorder{}
			i := harness.Running(w, informer.InformerConfig{Handler: r})
			require.NoError(t, i.WaitUntil(t.Context(), w.ResourceVersion()))
			w.Blocked.Lock()
			breaks(w)
			rv := put(w, "a/0001", "unseen")
			waits := waitFor(t.Context(), i, rv)
			time.Sleep(time.Minute)
			require.False(t, waits.over())
			w.Blocked.Unlock()
			if name == "expired" {
				w.Compact()
			}
			time.Sleep(2 * time.Minute)
			require.True(t, waits.over())
			require.NoError(t, waits.err)
			require.Equal(t, rv, r.State()["a/0001"])
		})
	}
}

// A list is acknowledged when all its pages are.
func TestWaitUntilAllPages(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(4)...)
		heal := w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"list"}, Page: informertest.LaterPages}, Effect: informertest.Hang()})
		r := &harness.Recorder{}
		i := harness.Running(w, informer.InformerConfig{Handler: r, WatchListPageSize: 2})
		first := waitFor(t.Context(), i, "1")
		time.Sleep(time.Minute)
		require.Len(t, r.Events(), 2)
		require.False(t, first.over(), "what the other page has is not known")
		require.Zero(t, i.Status().CurrentAsOf)
		heal()
		time.Sleep(time.Minute)
		require.True(t, first.over())
		require.NoError(t, first.err)
	})
}

func TestWaitUntilRefusesVersionsWithoutOrder(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}})
		for _, rv := range []string{"", "0", "-1", "1.5", "010", "v-1", "１"} {
			err := i.WaitUntil(t.Context(), rv)
			require.ErrorIs(t, err, informer.ErrUnorderedVersion, rv)
			of := harness.ErrorAs[*informer.WaitError](t, err)
			require.Equal(t, rv, of.ResourceVersion)
			require.ErrorContains(t, err, `"pods"`)
		}
	})
}

func TestWaitUntilAtAServerWithoutOrder(t *testing.T) {
	harness.Bubble(t, informertest.Options{OpaqueVersions: true}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/b")
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}})
		early := waitFor(t.Context(), i, "7")
		require.False(t, early.over())
		defer harness.Start(i.RunWithContext)()
		require.True(t, early.over(), "the versions of the server say nothing of 7")
		require.ErrorIs(t, early.err, informer.ErrUnorderedVersion)
		require.ErrorIs(t, i.WaitUntil(t.Context(), w.ResourceVersion()), informer.ErrUnorderedVersion)
	})
}

// Versions have as many digits as they like.
func TestWaitUntilALargeVersion(t *testing.T) {
	const huge = "340282366920938463463374607431768211"
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		lw := largeVersions{w.Lister(), huge}
		w.CreatePods("a/b")
		i := harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{}, ListerWatcher: lw})
		require.NoError(t, i.WaitUntil(t.Context(), "18446744073709551616"))
		require.NoError(t, i.WaitUntil(t.Context(), huge+w.ResourceVersion()))
		waits := waitFor(t.Context(), i, huge+"9")
		time.Sleep(10 * time.Minute)
		require.False(t, waits.over())
		for n := 0; put(w, "a/b", fmt.Sprint(n)) != "9"; n++ {
			require.Less(t, n, 9)
		}
		require.True(t, waits.over())
		require.NoError(t, waits.err)
	})
}

func TestWaitUntilTheInformerStops(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/b")
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}})
		stop := harness.Start(i.RunWithContext)
		waits := waitFor(t.Context(), i, "1000")
		require.False(t, waits.over())
		stop()
		require.True(t, waits.over())
		require.ErrorIs(t, waits.err, informer.ErrStopped)
		rv := w.ResourceVersion()
		require.NoError(t, i.WaitUntil(t.Context(), rv), "it has acknowledged that")
		later := put(w, "a/b", "2")
		err := i.WaitUntil(t.Context(), later)
		require.ErrorIs(t, err, informer.ErrStopped)
		require.ErrorContains(t, err, fmt.Sprintf("%q", rv))

		defer harness.Settle(i.RunWithContext)()
		require.NoError(t, i.WaitUntil(t.Context(), later), "another Run goes on")
	})
}

func TestWaitUntilTheContextEnds(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/b")
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := i.WaitUntil(ctx, "7")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "no complete list yet")
		defer harness.Settle(i.RunWithContext)()
		ctx, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Hour, func() { stop(errors.New("enough")) })
		err = i.WaitUntil(ctx, "1000")
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "enough")
		require.ErrorContains(t, err, `"`+w.ResourceVersion()+`"`)
		require.NoError(t, i.WaitUntil(ctx, w.ResourceVersion()), "what is acknowledged needs no wait")
	})
}

// Whoever waits for a version of a state that is gone is told.
func TestWaitUntilARestoredServer(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreateKubeSystem()
		w.CreatePods("a/b")
		backup := w.Backup()
		for n := range 20 {
			put(w, "a/b", fmt.Sprint(n))
		}
		i := harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{}})
		require.NoError(t, i.WaitUntil(t.Context(), w.ResourceVersion()))
		time.Sleep(time.Minute)
		w.Blocked.Lock()
		w.CloseClientConnections()
		lost := put(w, "a/b", "lost")
		waits := waitFor(t.Context(), i, lost)
		w.Restore(backup)
		w.Blocked.Unlock()
		time.Sleep(5 * time.Minute)
		require.True(t, waits.over())
		require.ErrorIs(t, waits.err, informer.ErrServerRestored)
		require.NoError(t, i.WaitUntil(t.Context(), put(w, "a/b", "new")), "what is written now arrives")

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := i.WaitUntil(ctx, "20")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "the server was restored at")
	})
}

func TestWaitUntilAfterAResume(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreateKubeSystem()
		w.CreatePods(harness.Keys(3)...)
		s := &harness.MemoryCheckpoint{}
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, Checkpoint: s})
		stop := harness.Start(i.RunWithContext)
		require.NoError(t, i.WaitUntil(t.Context(), w.ResourceVersion()))
		saved := w.ResourceVersion()
		time.Sleep(time.Minute)
		stop()
		unseen := put(w, "a/0001", "unseen")

		w.Blocked.Lock()
		r := &harness.Recorder{}
		i = harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		defer harness.Start(i.RunWithContext)()
		resumed, changed := waitFor(t.Context(), i, saved), waitFor(t.Context(), i, unseen)
		time.Sleep(time.Minute)
		require.False(t, resumed.over(), "whether the server still is the one of the checkpoint is not known")
		require.Zero(t, i.Status().CurrentAsOf)
		w.Blocked.Unlock()
		time.Sleep(time.Minute)
		require.True(t, resumed.over() && changed.over())
		require.NoError(t, errors.Join(resumed.err, changed.err))
		require.Equal(t, []string{"update a/0001"}, r.Events(), "there was no list")
	})
}

func TestWaitUntilEachHandlerOfAShared(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(2)...)
		s := harness.Share(w, informer.InformerConfig{})
		err := s.WaitUntil(t.Context(), "1")
		require.ErrorIs(t, err, informer.ErrNoHandler)
		fast, slow := &harness.Recorder{}, closedGate()
		f := harness.AddHandler(t, s, fast)
		l := harness.AddHandler(t, s, slow)
		defer harness.Start(s.RunWithContext)()
		time.Sleep(time.Minute)
		rv := put(w, "a/0000", "2")
		require.NoError(t, f.WaitUntil(t.Context(), rv))
		one, all := waitFor(t.Context(), l, rv), waitFor(t.Context(), s, rv)
		time.Sleep(time.Hour)
		require.False(t, one.over() || all.over())
		require.True(t, f.Status().CurrentAsOf.After(time.Now().Add(-2*time.Minute)))
		require.Equal(t, l.Status().CurrentAsOf, s.Status().CurrentAsOf, "that of the slowest")
		require.Zero(t, l.Status().CurrentAsOf)
		close(slow.open)
		require.True(t, one.over() && all.over())
		require.NoError(t, errors.Join(one.err, all.err))

		gone, left := waitFor(t.Context(), l, "1000"), waitFor(t.Context(), s, put(w, "a/0001", "2"))
		ended := s.RemoveHandler(l)
		<-ended
		require.True(t, gone.over() && left.over())
		require.ErrorIs(t, gone.err, informer.ErrStopped)
		require.NoError(t, left.err)
	})
}

// A handler that is removed before it has run acknowledges nothing any more.
func TestWaitUntilOfAHandlerThatNeverRan(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		s := informer.NewSharedResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: w.Lister()})
		h := harness.AddHandler(t, s, &harness.Recorder{})
		waits := waitFor(t.Context(), h, "1")
		require.False(t, waits.over())
		s.RemoveHandler(h)
		require.True(t, waits.over())
		require.ErrorIs(t, waits.err, informer.ErrStopped)
	})
}

// largeVersions is a ListerWatcher whose resource versions begin with prefix.
type largeVersions struct {
	cache.ListerWatcher
	prefix string
}

func (l largeVersions) List(opts metav1.ListOptions) (runtime.Object, error) {
	list, err := l.ListerWatcher.List(l.asked(opts))
	if err != nil {
		return nil, err
	}
	if err := meta.EachListItem(list, func(obj runtime.Object) error { l.enlarge(obj.(metav1.Object)); return nil }); err != nil {
		return nil, err
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	l.enlarge(accessor)
	return list, nil
}

func (l largeVersions) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	inner, err := l.ListerWatcher.Watch(l.asked(opts))
	if err != nil {
		return nil, err
	}
	return watch.Filter(inner, func(e watch.Event) (watch.Event, bool) {
		if obj, ok := e.Object.(metav1.Object); ok {
			l.enlarge(obj)
		}
		return e, true
	}), nil
}

func (l largeVersions) asked(opts metav1.ListOptions) metav1.ListOptions {
	opts.ResourceVersion = strings.TrimPrefix(opts.ResourceVersion, l.prefix)
	return opts
}

func (l largeVersions) enlarge(of interface {
	GetResourceVersion() string
	SetResourceVersion(string)
}) {
	of.SetResourceVersion(l.prefix + of.GetResourceVersion())
}
