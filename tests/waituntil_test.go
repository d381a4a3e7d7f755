package tests_test

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
)

// put writes a pod and returns its resource version.
func (w *world) put(key, value string) (resourceVersion string) {
	w.t.Helper()
	stored, err := w.Update(pods, object(pods, key, value))
	require.NoError(w.t, err)
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
	recorder
	open chan struct{}
}

func closedGate() *gate {
	g := &gate{open: make(chan struct{})}
	g.before = func(string) { <-g.open }
	return g
}

func TestWaitUntilOwnWrite(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		r := &recorder{}
		i := follow(w, informer.InformerConfig{Handler: r})
		early := waitFor(t.Context(), i, w.ResourceVersion())
		require.False(t, early.over(), "the informer does not run yet")
		stop := start(i.RunWithContext)
		defer stop()
		require.True(t, early.over())
		require.NoError(t, early.err)
		require.Len(t, r.events(), 3)
		time.Sleep(time.Minute)
		for n := range 3 {
			rv := w.put("a/0001", fmt.Sprint(n))
			require.NoError(t, i.WaitUntil(t.Context(), rv))
			require.Equal(t, rv, r.state()["a/0001"])
			require.Equal(t, rv, i.Status().ResourceVersion)
		}
		require.NoError(t, i.WaitUntil(t.Context(), "1"), "what is older is acknowledged, too")
		w.remove("a/0002")
		require.NoError(t, i.WaitUntil(t.Context(), w.ResourceVersion()), "a deletion")
		require.NotContains(t, r.state(), "a/0002")
	})
}

func TestWaitUntilWaitsForTheHandler(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/b")
		g := closedGate()
		i := follow(w, informer.InformerConfig{Handler: g})
		stop := start(i.RunWithContext)
		defer stop()
		listed := waitFor(t.Context(), i, w.ResourceVersion())
		time.Sleep(time.Hour)
		require.False(t, listed.over(), "the handler has not returned")
		changed := waitFor(t.Context(), i, w.put("a/b", "2"))
		added := waitFor(t.Context(), i, func() string { w.create("a/c"); return w.ResourceVersion() }())
		time.Sleep(time.Minute)
		g.open <- struct{}{} // a/b as listed
		require.True(t, listed.over())
		require.False(t, changed.over() || added.over())
		g.open <- struct{}{} // a/c: it did not wait behind another call of its key
		require.False(t, changed.over())
		require.False(t, added.over(), "what is before it is not acknowledged")
		require.Equal(t, []string{"add a/b initial", "add a/c"}, g.events())
		close(g.open)
		require.True(t, changed.over() && added.over())
		require.NoError(t, errors.Join(listed.err, changed.err, added.err))
	})
}

func TestWaitUntilWaitsForAFailingBatch(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
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
		w.create("a/good")
		i := follow(w, informer.InformerConfig{BatchHandler: handler})
		stop := start(i.RunWithContext)
		defer stop()
		require.NoError(t, i.WaitUntil(t.Context(), w.ResourceVersion()))
		w.create("a/bad")
		bad := waitFor(t.Context(), i, w.ResourceVersion())
		good := waitFor(t.Context(), i, w.put("a/good", "2"))
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
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		lw := w.factory().ForResourceWithOptions("", pods, func(o *metav1.ListOptions) { o.FieldSelector = "metadata.namespace=mine" })
		w.create("mine/a")
		i := follow(w, informer.InformerConfig{Handler: &recorder{}, ListerWatcher: lw})
		stop := start(i.RunWithContext)
		defer stop()
		time.Sleep(30 * time.Second)
		w.create("others/a")
		began := time.Now()
		require.NoError(t, i.WaitUntil(t.Context(), w.ResourceVersion()))
		require.InDelta(t, 30, time.Since(began).Seconds(), 1, "the next bookmark")
	})
}

func TestWaitUntilAcrossABrokenWatch(t *testing.T) {
	for name, breaks := range map[string]func(w *world){
		"cut":     func(w *world) { w.CloseClientConnections() },
		"expired": func(w *world) { w.CloseClientConnections(); w.Compact() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
				w.create(keys(3)...)
				r := &recorder{}
				i := follow(w, informer.InformerConfig{Handler: r})
				stop := start(i.RunWithContext)
				defer stop()
				require.NoError(t, i.WaitUntil(t.Context(), w.ResourceVersion()))
				w.blocked.Lock()
				breaks(w)
				rv := w.put("a/0001", "unseen")
				waits := waitFor(t.Context(), i, rv)
				time.Sleep(time.Minute)
				require.False(t, waits.over())
				w.blocked.Unlock()
				if name == "expired" {
					w.Compact()
				}
				time.Sleep(2 * time.Minute)
				require.True(t, waits.over())
				require.NoError(t, waits.err)
				require.Equal(t, rv, r.state()["a/0001"])
			})
		})
	}
}

// A list is acknowledged when all its pages are.
func TestWaitUntilAllPages(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(4)...)
		heal := w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"list"}, Page: informertest.LaterPages}, Effect: informertest.Hang()})
		r := &recorder{}
		i := follow(w, informer.InformerConfig{Handler: r, WatchListPageSize: 2})
		stop := start(i.RunWithContext)
		defer stop()
		first := waitFor(t.Context(), i, "1")
		time.Sleep(time.Minute)
		require.Len(t, r.events(), 2)
		require.False(t, first.over(), "what the other page has is not known")
		require.Zero(t, i.Status().CurrentAsOf)
		heal()
		time.Sleep(time.Minute)
		require.True(t, first.over())
		require.NoError(t, first.err)
	})
}

func TestWaitUntilRefusesVersionsWithoutOrder(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		i := follow(w, informer.InformerConfig{Handler: &recorder{}})
		for _, rv := range []string{"", "0", "-1", "1.5", "010", "v-1", "１"} {
			err := i.WaitUntil(t.Context(), rv)
			require.ErrorIs(t, err, informer.ErrUnorderedVersion, rv)
			var of *informer.WaitError
			require.ErrorAs(t, err, &of)
			require.Equal(t, rv, of.ResourceVersion)
			require.ErrorContains(t, err, `"pods"`)
		}
	})
}

func TestWaitUntilAtAServerWithoutOrder(t *testing.T) {
	bubble(t, informertest.Options{OpaqueVersions: true}, func(t *testing.T, w *world) {
		w.create("a/b")
		i := follow(w, informer.InformerConfig{Handler: &recorder{}})
		early := waitFor(t.Context(), i, "7")
		require.False(t, early.over())
		stop := start(i.RunWithContext)
		defer stop()
		require.True(t, early.over(), "the versions of the server say nothing of 7")
		require.ErrorIs(t, early.err, informer.ErrUnorderedVersion)
		require.ErrorIs(t, i.WaitUntil(t.Context(), w.ResourceVersion()), informer.ErrUnorderedVersion)
	})
}

// Versions have as many digits as they like.
func TestWaitUntilALargeVersion(t *testing.T) {
	const huge = "340282366920938463463374607431768211"
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		lw := largeVersions{w.lister(), huge}
		w.create("a/b")
		i := follow(w, informer.InformerConfig{Handler: &recorder{}, ListerWatcher: lw})
		stop := start(i.RunWithContext)
		defer stop()
		require.NoError(t, i.WaitUntil(t.Context(), "18446744073709551616"))
		require.NoError(t, i.WaitUntil(t.Context(), huge+w.ResourceVersion()))
		waits := waitFor(t.Context(), i, huge+"9")
		time.Sleep(10 * time.Minute)
		require.False(t, waits.over())
		for n := 0; w.put("a/b", fmt.Sprint(n)) != "9"; n++ {
			require.Less(t, n, 9)
		}
		require.True(t, waits.over())
		require.NoError(t, waits.err)
	})
}

func TestWaitUntilTheInformerStops(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/b")
		i := follow(w, informer.InformerConfig{Handler: &recorder{}})
		stop := start(i.RunWithContext)
		waits := waitFor(t.Context(), i, "1000")
		require.False(t, waits.over())
		stop()
		require.True(t, waits.over())
		require.ErrorIs(t, waits.err, informer.ErrStopped)
		rv := w.ResourceVersion()
		require.NoError(t, i.WaitUntil(t.Context(), rv), "it has acknowledged that")
		later := w.put("a/b", "2")
		err := i.WaitUntil(t.Context(), later)
		require.ErrorIs(t, err, informer.ErrStopped)
		require.ErrorContains(t, err, fmt.Sprintf("%q", rv))

		defer start(i.RunWithContext)()
		synctest.Wait()
		require.NoError(t, i.WaitUntil(t.Context(), later), "another Run goes on")
	})
}

func TestWaitUntilTheContextEnds(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/b")
		i := follow(w, informer.InformerConfig{Handler: &recorder{}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := i.WaitUntil(ctx, "7")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "no complete list yet")
		defer start(i.RunWithContext)()
		synctest.Wait()
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
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.createKubeSystem()
		w.create("a/b")
		backup := w.Backup()
		for n := range 20 {
			w.put("a/b", fmt.Sprint(n))
		}
		i := follow(w, informer.InformerConfig{Handler: &recorder{}})
		defer start(i.RunWithContext)()
		require.NoError(t, i.WaitUntil(t.Context(), w.ResourceVersion()))
		time.Sleep(time.Minute)
		w.blocked.Lock()
		w.CloseClientConnections()
		lost := w.put("a/b", "lost")
		waits := waitFor(t.Context(), i, lost)
		w.Restore(backup)
		w.blocked.Unlock()
		time.Sleep(5 * time.Minute)
		require.True(t, waits.over())
		require.ErrorIs(t, waits.err, informer.ErrServerRestored)
		require.NoError(t, i.WaitUntil(t.Context(), w.put("a/b", "new")), "what is written now arrives")

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := i.WaitUntil(ctx, "20")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "the server was restored at")
	})
}

func TestWaitUntilAfterAResume(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.createKubeSystem()
		w.create(keys(3)...)
		s := &memoryCheckpoint{}
		i := follow(w, informer.InformerConfig{Handler: &recorder{}, Checkpoint: s})
		stop := start(i.RunWithContext)
		require.NoError(t, i.WaitUntil(t.Context(), w.ResourceVersion()))
		saved := w.ResourceVersion()
		time.Sleep(time.Minute)
		stop()
		unseen := w.put("a/0001", "unseen")

		w.blocked.Lock()
		r := &recorder{}
		i = follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		defer start(i.RunWithContext)()
		resumed, changed := waitFor(t.Context(), i, saved), waitFor(t.Context(), i, unseen)
		time.Sleep(time.Minute)
		require.False(t, resumed.over(), "whether the server still is the one of the checkpoint is not known")
		require.Zero(t, i.Status().CurrentAsOf)
		w.blocked.Unlock()
		time.Sleep(time.Minute)
		require.True(t, resumed.over() && changed.over())
		require.NoError(t, errors.Join(resumed.err, changed.err))
		require.Equal(t, []string{"update a/0001"}, r.events(), "there was no list")
	})
}

func TestWaitUntilEachHandlerOfAShared(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(2)...)
		s := informer.NewSharedResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: w.lister(), ErrorHandler: quiet})
		err := s.WaitUntil(t.Context(), "1")
		require.ErrorIs(t, err, informer.ErrNoHandler)
		fast, slow := &recorder{}, closedGate()
		f, err := s.AddEventHandler(fast)
		require.NoError(t, err)
		l, err := s.AddEventHandler(slow)
		require.NoError(t, err)
		stop := start(s.RunWithContext)
		defer stop()
		time.Sleep(time.Minute)
		rv := w.put("a/0000", "2")
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

		gone, left := waitFor(t.Context(), l, "1000"), waitFor(t.Context(), s, w.put("a/0001", "2"))
		ended := s.RemoveHandler(l)
		<-ended
		require.True(t, gone.over() && left.over())
		require.ErrorIs(t, gone.err, informer.ErrStopped)
		require.NoError(t, left.err)
	})
}

// A handler that is removed before it has run acknowledges nothing any more.
func TestWaitUntilOfAHandlerThatNeverRan(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		s := informer.NewSharedResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: w.lister()})
		h, err := s.AddEventHandler(&recorder{})
		require.NoError(t, err)
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
