package compat_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// target is a store of some kind, and what it says that the server has.
type target struct {
	store cache.ReflectorStore
	state func() map[string]string
	// stop ends what the target runs.
	stop func()
}

func plain(store cache.Store) target {
	return target{store, func() map[string]string { return harness.Contents(store) }, func() {}}
}

// popped is a queue that is emptied into known.
func popped(queue cache.Queue, known cache.Store) target {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			_, err := queue.Pop(func(obj interface{}, _ bool) error { return harness.Apply(known, obj) })
			if errors.Is(err, cache.ErrFIFOClosed) {
				return
			}
		}
	}()
	return target{queue, func() map[string]string { return harness.Contents(known) }, func() { queue.Close(); <-done }}
}

// targets are the kinds of stores that a Reflector can feed.
var targets = map[string]func() target{
	"store": func() target { return plain(cache.NewStore(cache.MetaNamespaceKeyFunc)) },
	"indexer": func() target {
		indexer, _ := informer.NewNamespaceKeyedIndexerAndReflector(&harness.Tap{}, nil, 0)
		return plain(indexer)
	},
	"store with unusual keys": func() target {
		return plain(cache.NewStore(func(obj interface{}) (string, error) {
			u, ok := obj.(*unstructured.Unstructured)
			if !ok {
				return "", fmt.Errorf("no key for a %T", obj)
			}
			return "uid:" + string(u.GetUID()), nil
		}))
	},
	"bare store": func() target {
		j := &harness.Journal{}
		return target{j, j.State, func() {}}
	},
	"generation store": func() target {
		j := &harness.Journal{}
		return target{generations{j}, j.State, func() {}}
	},
	"DeltaFIFO": func() target {
		known := harness.NewStore()
		return popped(cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: known, EmitDeltaTypeReplaced: true}), known)
	},
	"RealFIFO": func() target {
		known := harness.NewStore()
		return popped(cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{KeyFunction: cache.DeletionHandlingMetaNamespaceKeyFunc, KnownObjects: known}), known)
	},
	"atomic RealFIFO": func() target {
		return popped(cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{AtomicEvents: true, UnlockWhileProcessing: true, EmitDeltaTypeBookmark: true}), harness.NewStore())
	},
}

func TestReflectorKeepsEveryStoreInStep(t *testing.T) {
	for name, makeTarget := range targets {
		for _, streamed := range []bool{false, true} {
			for _, forced := range []bool{false, true} {
				harness.BubbleRun(t, fmt.Sprintf("%s/streamed=%t/forced=%t", name, streamed, forced), informertest.Options{}, func(t *testing.T, w *harness.World) {
					harness.Reported(t)
					w.CreatePods("a/1", "a/2", "a/3", "b/1", "b/2")
					lw := harness.TapOn(w.Lister())
					lw.OnWatch = func(_ context.Context, n int, _ metav1.ListOptions) (watch.Interface, error) {
						if n == 2 { // what happens now, no watch tells
							w.DeletePods("a/1", "b/1")
							w.CreatePods("b/1", "c/1")
							w.UpdatePod("a/2", "unseen")
							w.Compact()
						}
						return nil, harness.ErrPass
					}
					to := makeTarget()
					defer to.stop()
					r := informer.NewReflector(lw, &unstructured.Unstructured{}, to.store, 0)
					r.StreamHandleForPaginatedList, r.ForcePaginatedList, r.WatchListPageSize = streamed, forced, 2
					defer harness.Start(r.RunWithContext)()
					agrees := func() {
						t.Helper()
						synctest.Wait()
						want := w.Versions()
						require.Equal(t, want, to.state())
						require.True(t, r.HasInitializedSynced())
						require.Equal(t, w.ResourceVersion(), r.LastSyncResourceVersion())
					}
					agrees()
					w.UpdatePod("a/3", "changed")
					w.DeletePods("b/2")
					w.CreatePods("d/1")
					agrees()
					w.CloseClientConnections()
					time.Sleep(time.Minute)
					require.Equal(t, 2, count(lw.Requests(), func(s string) bool { return strings.HasPrefix(s, "list") && !strings.Contains(s, "continue") }), "the set was listed again")
					agrees()
				})
			}
		}
	}
}

func count(all []string, is func(string) bool) (n int) {
	for _, s := range all {
		if is(s) {
			n++
		}
	}
	return n
}

func TestIndexerOfTheReflectorHasANamespaceIndex(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2", "b/1")
		indexer, r := informer.NewNamespaceKeyedIndexerAndReflector(w.Lister(), &unstructured.Unstructured{}, 0)
		defer harness.Settle(r.RunWithContext)()
		keys, err := indexer.IndexKeys(cache.NamespaceIndex, "a")
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"a/1", "a/2"}, keys)
		require.Equal(t, w.ResourceVersion(), indexer.LastStoreSyncResourceVersion())
	})
}

func TestStreamedListIsStoredPageByPageAndThenSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := cache.NewStore(cache.MetaNamespaceKeyFunc)
		require.NoError(t, store.Add(harness.Pod("a/old", "1")))
		proceed := make(chan struct{})
		lw := &harness.Tap{OnWatch: harness.Watches(harness.Open())}
		lw.OnList = func(_ context.Context, n int, _ metav1.ListOptions) (runtime.Object, error) {
			if n == 1 {
				return harness.List("5", "next", harness.Pod("a/1", "2"), harness.Pod("a/2", "3")), nil
			}
			<-proceed
			return harness.List("5", "", harness.Pod("a/3", "4")), nil
		}
		r := informer.NewReflector(lw, nil, store, 0)
		r.StreamHandleForPaginatedList = true
		defer harness.Settle(r.RunWithContext)()
		require.Equal(t, map[string]string{"a/old": "1", "a/1": "2", "a/2": "3"}, harness.Contents(store), "the first page is there while the second is read")
		require.False(t, r.HasInitializedSynced())
		require.Empty(t, r.LastSyncResourceVersion())
		close(proceed)
		synctest.Wait()
		require.Equal(t, map[string]string{"a/1": "2", "a/2": "3", "a/3": "4"}, harness.Contents(store))
		require.True(t, r.HasInitializedSynced())
		require.Equal(t, "5", r.LastSyncResourceVersion())
		require.Equal(t, "5", store.LastStoreSyncResourceVersion())
	})
}

func TestStreamedListDropsTheFormerObjectOfANameFromAStoreKeyedByUID(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		harness.SynctestRun(t, fmt.Sprintf("streamed=%t", streamed), func(t *testing.T) {
			store := cache.NewStore(func(obj interface{}) (string, error) {
				return string(obj.(*unstructured.Unstructured).GetUID()), nil
			})
			require.NoError(t, store.Add(harness.WithUID(harness.Pod("a/1", "1"), "former")))
			lw := &harness.Tap{OnList: harness.Lists(harness.List("3", "", harness.WithUID(harness.Pod("a/1", "2"), "latter"))), OnWatch: harness.Watches(harness.Open())}
			r := informer.NewReflector(lw, nil, store, 0)
			r.StreamHandleForPaginatedList = streamed
			defer harness.Settle(r.RunWithContext)()
			require.Equal(t, []string{"latter"}, store.ListKeys())
		})
	}
}

func TestB2ExpiredContinueTokenDeletesNothingAlive(t *testing.T) {
	for name, makeTarget := range targets {
		for _, streamed := range []bool{false, true} {
			harness.BubbleRun(t, fmt.Sprintf("%s/streamed=%t", name, streamed), informertest.Options{}, func(t *testing.T, w *harness.World) {
				harness.Reported(t)
				w.CreatePods("a/1", "a/2", "a/3", "a/4", "a/5")
				lw := harness.TapOn(w.Lister())
				expiries := 0
				lw.OnList = func(_ context.Context, _ int, opts metav1.ListOptions) (runtime.Object, error) {
					if opts.Continue != "" && expiries < 3 {
						expiries++
						w.UpdatePod("a/5", fmt.Sprint("change ", expiries))
						w.Compact()
					}
					return nil, harness.ErrPass
				}
				to := makeTarget()
				defer to.stop()
				r := informer.NewReflector(lw, &unstructured.Unstructured{}, to.store, 0)
				r.StreamHandleForPaginatedList, r.ForcePaginatedList, r.WatchListPageSize = streamed, true, 2
				defer harness.Settle(r.RunWithContext)()
				want := w.Versions()
				require.Equal(t, want, to.state())
				require.Equal(t, 2, expiries, "the third time, the list is read whole")
				asked := lw.Requests()
				require.Equal(t, "list rv= limit=0", asked[len(asked)-2])
			})
		}
	}
}

func TestB1ManyStreamedListsReadEveryObject(t *testing.T) {
	const pages, size = 4, 5
	for round := range 400 {
		store := cache.NewStore(cache.MetaNamespaceKeyFunc)
		lw := &harness.Tap{OnWatch: harness.Watches(refused(harness.Expired()))}
		lw.OnList = func(_ context.Context, n int, _ metav1.ListOptions) (runtime.Object, error) {
			next := fmt.Sprint(n)
			if n == pages {
				next = ""
			}
			page := harness.List("9", next)
			for i := range size {
				page.Items = append(page.Items, *harness.Pod(fmt.Sprintf("%d/%d", n, i), "7"))
			}
			return page, nil
		}
		r := informer.NewReflector(lw, nil, store, 0)
		r.StreamHandleForPaginatedList = true
		require.NoError(t, r.ListAndWatch(make(chan struct{})))
		require.Len(t, store.ListKeys(), pages*size, "round %d", round)
		require.Equal(t, "9", r.LastSyncResourceVersion())
	}
}

func TestListRequestRules(t *testing.T) {
	tooLarge := apierrors.NewTimeoutError("Too large resource version", 1)
	tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	oldTooLarge := apierrors.NewTimeoutError("timeout", 1)
	oldTooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: "Too large resource version"}}
	failed := errors.New("failed")
	page := func(next string) func() (runtime.Object, error) {
		return func() (runtime.Object, error) { return harness.List("5", next, harness.Pod("a/1", "2")), nil }
	}
	fails := func(err error) func() (runtime.Object, error) {
		return func() (runtime.Object, error) { return nil, err }
	}
	for name, c := range map[string]struct {
		pageSize int64
		forced   bool
		answers  []func() (runtime.Object, error)
		// asked are the lists of two passes, between which a watch expires.
		asked []string
	}{
		"default": {
			answers: []func() (runtime.Object, error){page(""), page("")},
			asked:   []string{"list rv=0 limit=500", "list rv=5 limit=0"},
		},
		"paged, from a server that pages its cache": {
			answers: []func() (runtime.Object, error){page("t"), page(""), page("t"), page("")},
			asked: []string{
				"list rv=0 limit=500", "list rv= limit=500 continue=t",
				"list rv=5 limit=500 NotOlderThan", "list rv= limit=500 continue=t",
			},
		},
		"page size": {
			pageSize: 3,
			answers:  []func() (runtime.Object, error){page("t"), page(""), page("t"), page("")},
			asked: []string{
				"list rv=0 limit=3", "list rv= limit=3 continue=t",
				"list rv=5 limit=3 NotOlderThan", "list rv= limit=3 continue=t",
			},
		},
		"forced": {
			forced:  true,
			answers: []func() (runtime.Object, error){page("t"), page(""), page("t"), page("")},
			asked: []string{
				"list rv= limit=500", "list rv= limit=500 continue=t",
				"list rv= limit=500", "list rv= limit=500 continue=t",
			},
		},
		"forced with page size": {
			forced: true, pageSize: 3,
			answers: []func() (runtime.Object, error){page(""), page("")},
			asked:   []string{"list rv= limit=3", "list rv= limit=3"},
		},
		"relist expired": {
			answers: []func() (runtime.Object, error){page(""), fails(harness.Expired()), page("")},
			asked:   []string{"list rv=0 limit=500", "list rv=5 limit=0", "list rv= limit=500"},
		},
		"relist gone": {
			pageSize: 3,
			answers:  []func() (runtime.Object, error){page(""), fails(apierrors.NewGone("gone")), page("")},
			asked:    []string{"list rv=0 limit=3", "list rv=5 limit=3 NotOlderThan", "list rv= limit=3"},
		},
		"relist too large": {
			answers: []func() (runtime.Object, error){page(""), fails(tooLarge), page("")},
			asked:   []string{"list rv=0 limit=500", "list rv=5 limit=0", "list rv= limit=500"},
		},
		"relist too large, said as servers before 1.19 do": {
			answers: []func() (runtime.Object, error){page(""), fails(oldTooLarge), page("")},
			asked:   []string{"list rv=0 limit=500", "list rv=5 limit=0", "list rv= limit=500"},
		},
		"a page that failed is asked for again": {
			pageSize: 3,
			answers:  []func() (runtime.Object, error){page("t"), fails(failed), page(""), page("")},
			asked: []string{
				"list rv=0 limit=3", "list rv= limit=3 continue=t", "list rv= limit=3 continue=t",
				"list rv=5 limit=3 NotOlderThan",
			},
		},
		"a token that is refused": {
			pageSize: 3,
			answers:  []func() (runtime.Object, error){page("t"), fails(apierrors.NewBadRequest("token")), page(""), page("")},
			asked: []string{
				"list rv=0 limit=3", "list rv= limit=3 continue=t", "list rv= limit=3",
				"list rv=5 limit=3 NotOlderThan",
			},
		},
	} {
		harness.SynctestRun(t, name, func(t *testing.T) {
			harness.Reported(t)
			lw := &harness.Tap{OnWatch: harness.Watches(refused(harness.Expired()), harness.Open())}
			lw.OnList = func(_ context.Context, n int, _ metav1.ListOptions) (runtime.Object, error) {
				return c.answers[n-1]()
			}
			r := informer.NewReflector(lw, nil, &harness.Journal{}, 0)
			r.WatchListPageSize, r.ForcePaginatedList = c.pageSize, c.forced
			defer harness.Start(r.RunWithContext)()
			time.Sleep(5 * time.Minute)
			var asked []string
			for _, s := range lw.Requests() {
				if strings.HasPrefix(s, "list") {
					asked = append(asked, s)
				}
			}
			require.Equal(t, c.asked, asked)
		})
	}
}

func TestB16ForcePaginatedListPagesEveryRelist(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		harness.Reported(t)
		keys := make([]string, 501)
		for i := range keys {
			keys[i] = fmt.Sprintf("a/%03d", i)
		}
		w.CreatePods(keys...)
		lw := harness.TapOn(w.Lister())
		lw.OnWatch = func(_ context.Context, n int, _ metav1.ListOptions) (watch.Interface, error) {
			if n <= 2 {
				return nil, harness.Expired()
			}
			return nil, harness.ErrPass
		}
		store := cache.NewStore(cache.MetaNamespaceKeyFunc)
		r := informer.NewReflector(lw, nil, store, 0)
		r.ForcePaginatedList = true
		defer harness.Start(r.RunWithContext)()
		time.Sleep(5 * time.Minute)
		require.Len(t, store.ListKeys(), 501)
		require.Equal(t, []string{
			"list limit=500", "list limit=500 continue",
			"list limit=500", "list limit=500 continue",
			"list limit=500", "list limit=500 continue",
			"watch rv=" + w.ResourceVersion(),
		}, w.Verbs())
	})
}

func TestWatchAsksForItsTimeout(t *testing.T) {
	for _, least := range []time.Duration{0, time.Minute, 20 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			want := max(least, 5*time.Minute)
			lw := &harness.Tap{OnList: harness.Lists(harness.List("5", ""))}
			seen := map[int64]bool{}
			lw.OnWatch = func(_ context.Context, n int, opts metav1.ListOptions) (watch.Interface, error) {
				require.True(t, opts.AllowWatchBookmarks)
				asked := time.Duration(*opts.TimeoutSeconds) * time.Second
				require.GreaterOrEqual(t, asked, want)
				require.Less(t, asked, 2*want)
				seen[*opts.TimeoutSeconds] = true
				if n >= 20 {
					return harness.Stream(false), nil
				}
				return harness.Stream(true, watch.Event{Type: watch.Bookmark, Object: harness.Pod("a/1", fmt.Sprint(5+n))}), nil
			}
			r := informer.NewReflector(lw, nil, &harness.Journal{}, 0)
			r.MinWatchTimeout = least
			defer harness.Start(r.RunWithContext)()
			time.Sleep(time.Hour) // each of these watches ends at once, and waits for a backoff
			synctest.Wait()
			require.Greater(t, len(seen), 5, "it is random")
			require.Equal(t, "24", r.LastSyncResourceVersion())
		})
	}
}

func TestListAndWatchReturns(t *testing.T) {
	failed := errors.New("failed")
	t.Run("the error of the list", func(t *testing.T) {
		lw := &harness.Tap{OnList: func(context.Context, int, metav1.ListOptions) (runtime.Object, error) { return nil, failed }}
		r := informer.NewReflector(lw, &corev1.Pod{}, &harness.Journal{}, 0)
		err := r.ListAndWatchWithContext(t.Context())
		require.ErrorIs(t, err, failed)
		require.ErrorContains(t, err, "*v1.Pod")
		require.False(t, r.HasInitializedSynced())
	})
	t.Run("the error of a list that is nil", func(t *testing.T) {
		lw := &harness.Tap{OnList: func(context.Context, int, metav1.ListOptions) (runtime.Object, error) { return nil, nil }}
		require.ErrorContains(t, informer.NewReflector(lw, nil, &harness.Journal{}, 0).ListAndWatch(nil), "nil")
	})
	t.Run("the error of a list that is none", func(t *testing.T) {
		lw := &harness.Tap{OnList: harness.Lists(&corev1.Pod{})}
		require.ErrorContains(t, informer.NewReflector(lw, nil, &harness.Journal{}, 0).ListAndWatch(nil), "*v1.Pod")
	})
	t.Run("the error of a Table", func(t *testing.T) {
		table := &metav1.Table{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"}}
		lw := &harness.Tap{OnList: harness.Lists(table)}
		store := &harness.Journal{}
		require.ErrorContains(t, informer.NewReflector(lw, nil, store, 0).ListAndWatch(nil), "Table")
		require.Empty(t, store.Events(), "nothing is deleted")
	})
	t.Run("the error of the store for a list", func(t *testing.T) {
		lw := &harness.Tap{OnList: harness.Lists(harness.List("5", ""))}
		r := informer.NewReflector(lw, nil, &harness.Journal{Fail: func(string) error { return failed }}, 0)
		err := r.ListAndWatch(nil)
		require.ErrorIs(t, err, failed)
		refusal := harness.ErrorAs[*informer.StoreError](t, err)
		require.Equal(t, "Replace", refusal.Op)
		require.False(t, r.HasInitializedSynced())
		require.Empty(t, r.LastSyncResourceVersion())
	})
	t.Run("nil when the watch has to begin from a list", func(t *testing.T) {
		lw := &harness.Tap{OnList: harness.Lists(harness.List("5", "")), OnWatch: harness.Watches(harness.Broken(harness.Expired()))}
		require.NoError(t, informer.NewReflector(lw, nil, &harness.Journal{}, 0).ListAndWatch(nil))
		require.Equal(t, []string{"list rv=0 limit=500", "watch rv=5"}, lw.Requests())
	})
	harness.SynctestRun(t, "nil when it is stopped", func(t *testing.T) {
		lw := &harness.Tap{OnList: harness.Lists(harness.List("5", "")), OnWatch: harness.Watches(harness.Open())}
		r := informer.NewReflector(lw, nil, &harness.Journal{}, 0)
		stop, result := make(chan struct{}), make(chan error)
		go func() { result <- r.ListAndWatch(stop) }()
		synctest.Wait()
		close(stop)
		require.NoError(t, <-result)
	})
	t.Run("nothing before an expired list was read again", func(t *testing.T) {
		lw := &harness.Tap{OnWatch: harness.Watches(refused(harness.Expired()))}
		lw.OnList = func(_ context.Context, n int, _ metav1.ListOptions) (runtime.Object, error) {
			if n == 1 {
				return nil, harness.Expired()
			}
			return harness.List("5", ""), nil
		}
		require.NoError(t, informer.NewReflector(lw, nil, &harness.Journal{}, 0).ListAndWatch(nil))
		require.Equal(t, []string{"list rv=0 limit=500", "list rv= limit=500", "watch rv=5"}, lw.Requests())
	})
}

func TestB6StopDuringAListDoesNotCountAsSynced(t *testing.T) {
	for name, c := range map[string]struct {
		onList func(ctx context.Context, n int, stop func()) (runtime.Object, error)
	}{
		"while the first page hangs": {func(ctx context.Context, _ int, stop func()) (runtime.Object, error) {
			stop()
			<-ctx.Done()
			return nil, ctx.Err()
		}},
		"between two pages": {func(ctx context.Context, n int, stop func()) (runtime.Object, error) {
			if n == 1 {
				return harness.List("5", "next", harness.Pod("a/1", "2")), nil
			}
			stop()
			return nil, ctx.Err()
		}},
		"while the objects of the last page are read": {func(_ context.Context, _ int, stop func()) (runtime.Object, error) {
			stop()
			return harness.List("5", "", harness.Pod("a/1", "2")), nil
		}},
	} {
		for _, streamed := range []bool{false, true} {
			harness.SynctestRun(t, fmt.Sprintf("%s/streamed=%t", name, streamed), func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				lw := &harness.Tap{}
				lw.OnList = func(ctx context.Context, n int, _ metav1.ListOptions) (runtime.Object, error) {
					return c.onList(ctx, n, cancel)
				}
				store := cache.NewStore(cache.MetaNamespaceKeyFunc)
				require.NoError(t, store.Add(harness.Pod("b/1", "1")))
				r := informer.NewReflector(lw, nil, store, 0)
				r.StreamHandleForPaginatedList = streamed
				begin := time.Now()
				require.NoError(t, r.ListAndWatchWithContext(ctx))
				r.RunWithContext(ctx)
				require.Zero(t, time.Since(begin))
				require.False(t, r.HasInitializedSynced())
				require.Empty(t, r.LastSyncResourceVersion())
				require.Contains(t, store.ListKeys(), "b/1", "nothing is deleted")
			})
		}
	}
}

func TestB6StopEndsAListThatHangsInTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered := make(chan struct{}, 1)
		s := informertest.NewServer(informertest.Options{InMemory: true, Wrap: func(http.Handler) http.Handler {
			return http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
				entered <- struct{}{}
				<-req.Context().Done()
			})
		}})
		defer s.Close()
		w := &harness.World{T: t, Server: s}
		r := informer.NewReflector(w.Lister(), nil, &harness.Journal{}, 0)
		stop := harness.Start(r.RunWithContext)
		defer stop()
		<-entered
		begin := time.Now()
		stop()
		require.Zero(t, time.Since(begin))
		require.False(t, r.HasInitializedSynced())
	})
}

func TestB7StopEndsABackoffAtOnce(t *testing.T) {
	failed := errors.New("failed")
	for name, lw := range map[string]*harness.Tap{
		"of a list":                    {OnList: func(context.Context, int, metav1.ListOptions) (runtime.Object, error) { return nil, failed }},
		"of a watch that is refused":   {OnList: harness.Lists(harness.List("5", "")), OnWatch: harness.Watches(refused(failed))},
		"of a watch with no room":      {OnList: harness.Lists(harness.List("5", "")), OnWatch: harness.Watches(harness.Broken(apierrors.NewTooManyRequests("later", 300)))},
		"of a watch that breaks":       {OnList: harness.Lists(harness.List("5", "")), OnWatch: harness.Watches(harness.Broken(failed))},
		"of a watch that ends at once": {OnList: harness.Lists(harness.List("5", "")), OnWatch: harness.Watches(func() (watch.Interface, error) { return harness.Stream(true), nil })},
	} {
		harness.SynctestRun(t, name, func(t *testing.T) {
			harness.Reported(t)
			r := informer.NewReflector(lw, nil, &harness.Journal{}, 0)
			stop := harness.Start(r.RunWithContext)
			defer stop()
			synctest.Wait() // in the backoff: nothing else waits for time to pass
			begin := time.Now()
			stop()
			require.Zero(t, time.Since(begin))
		})
	}
}

func TestWatchGoesOnFromTheNewestVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		harness.Reported(t)
		lw := &harness.Tap{OnList: harness.Lists(harness.List("5", "", harness.Pod("a/1", "2"))), OnWatch: harness.Watches(
			func() (watch.Interface, error) {
				return harness.Stream(true, watch.Event{Type: watch.Modified, Object: harness.Pod("a/1", "6")}, watch.Event{Type: watch.Bookmark, Object: harness.Pod("a/0", "8")}), nil
			},
			harness.Broken(apierrors.NewTooManyRequests("later", 1), watch.Event{Type: watch.Added, Object: harness.Pod("a/2", "9")}),
			harness.Open(watch.Event{Type: watch.Deleted, Object: harness.Pod("a/1", "11")}),
		)}
		store := bookmarked{&harness.Journal{}}
		r := informer.NewReflector(lw, nil, store, 0)
		defer harness.Start(r.RunWithContext)()
		time.Sleep(time.Minute)
		// A bookmark shows that 8 has no more events; 9 may have more, so the watch begins before it.
		require.Equal(t, []string{"list rv=0 limit=500", "watch rv=5", "watch rv=8", "watch rv=8"}, lw.Requests())
		require.Equal(t, []string{
			"replace 5 a/1", "version 5",
			"update a/1", "version 6", "version 8", "bookmark 8",
			"add a/2", "version 9",
			"delete a/1", "version 11",
		}, store.Events())
		require.Equal(t, "11", r.LastSyncResourceVersion())
	})
}

func TestBookmarksReachAStoreOfClientGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lw := &harness.Tap{OnList: harness.Lists(harness.List("5", "", harness.Pod("a/1", "2"))), OnWatch: harness.Watches(harness.Open(watch.Event{Type: watch.Bookmark, Object: harness.Pod("a/0", "8")}))}
		store := cache.NewStore(cache.MetaNamespaceKeyFunc)
		defer harness.Start(informer.NewReflector(lw, nil, store, 0).RunWithContext)()
		synctest.Wait()
		require.Equal(t, "8", store.LastStoreSyncResourceVersion())
		require.Equal(t, map[string]string{"a/1": "2"}, harness.Contents(store))
	})
}

func TestVeryShortWatch(t *testing.T) {
	short := func() (watch.Interface, error) { return harness.Stream(true), nil }
	synctest.Test(t, func(t *testing.T) {
		errs := harness.Reported(t)
		lw := &harness.Tap{OnList: harness.Lists(harness.List("5", "")), OnWatch: harness.Watches(short, short, harness.Open())}
		defer harness.Start(informer.NewNamedReflector("short", lw, nil, &harness.Journal{}, 0).RunWithContext)()
		time.Sleep(time.Minute)
		require.Equal(t, []string{"list rv=0 limit=500", "watch rv=5", "watch rv=5", "list rv=5 limit=0", "watch rv=5"}, lw.Requests())
		require.Len(t, errs(), 2)
		for _, err := range errs() {
			require.Equal(t, &cache.VeryShortWatchError{Name: "short"}, err)
		}
	})
}

func TestB17MaxInternalErrorRetryDurationIsHonoured(t *testing.T) {
	broke := apierrors.NewInternalError(errors.New("oops"))
	for _, retry := range []time.Duration{0, 10 * time.Second, 50 * time.Second, 3 * time.Minute} {
		harness.SynctestRun(t, retry.String(), func(t *testing.T) {
			harness.Reported(t)
			var lists []time.Time
			lw := &harness.Tap{OnWatch: harness.Watches(harness.Broken(broke))}
			lw.OnList = func(context.Context, int, metav1.ListOptions) (runtime.Object, error) {
				lists = append(lists, time.Now())
				return harness.List("5", ""), nil
			}
			r := informer.NewReflector(lw, nil, &harness.Journal{}, 0)
			r.MaxInternalErrorRetryDuration = retry
			stop := harness.Start(r.RunWithContext)
			defer stop()
			time.Sleep(time.Hour)
			stop()
			require.Greater(t, len(lists), 1, "a watch that breaks for ever is a new list in the end")
			for i := 1; i < min(len(lists), 5); i++ {
				pause := lists[i].Sub(lists[i-1])
				require.GreaterOrEqual(t, pause, retry)
				require.LessOrEqual(t, pause, retry+2*time.Minute) // a backoff before the last watch, one after it
			}
		})
	}
}

func TestResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lw := &harness.Tap{OnList: harness.Lists(harness.List("5", "", harness.Pod("a/1", "2"))), OnWatch: harness.Watches(harness.Open())}
		store := &harness.Journal{}
		r := informer.NewReflector(lw, nil, store, time.Minute)
		asked := 0
		r.ShouldResync = func() bool { asked++; return asked != 2 }
		defer harness.Start(r.RunWithContext)()
		harness.Sleep(4*time.Minute + time.Second)
		require.Equal(t, 4, asked)
		require.Equal(t, []string{"replace 5 a/1", "resync", "resync", "resync"}, store.Events())
	})
}

func TestResyncErrorEndsTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errs := harness.Reported(t)
		failed := errors.New("failed")
		lw := &harness.Tap{OnList: harness.Lists(harness.List("5", "", harness.Pod("a/1", "2"))), OnWatch: harness.Watches(harness.Open())}
		store := &harness.Journal{Fail: func(call string) error {
			if call == "resync" {
				return failed
			}
			return nil
		}}
		defer harness.Start(informer.NewReflector(lw, nil, store, time.Minute).RunWithContext)()
		time.Sleep(90 * time.Second)
		require.Equal(t, []string{"list rv=0 limit=500", "watch rv=5", "watch rv=5"}, lw.Requests())
		require.Len(t, errs(), 1)
		require.ErrorIs(t, errs()[0], failed)
		refusal := harness.ErrorAs[*informer.StoreError](t, errs()[0])
		require.Equal(t, "Resync", refusal.Op)
	})
}

func TestUnreadableItemsAreReportedAndSkipped(t *testing.T) {
	example := harness.Object(harness.Pods, "a/0", "")
	stranger := harness.Object(harness.Widgets, "a/wrong", "")
	stranger.SetResourceVersion("7")
	nameless := harness.Pod("a/1", "8")
	nameless.SetName("")
	synctest.Test(t, func(t *testing.T) {
		errs := harness.Reported(t)
		lw := &harness.Tap{OnList: harness.Lists(harness.List("5", "", harness.Pod("a/1", "2"), stranger, harness.Pod("a/2", "3"))), OnWatch: harness.Watches(harness.Open(
			watch.Event{Type: watch.Added, Object: stranger},
			watch.Event{Type: watch.Added, Object: nameless},
			watch.Event{Type: watch.Added, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "typed"}}},
			watch.Event{Type: watch.Added, Object: &metav1.Status{}},
			watch.Event{Type: watch.Added},
			watch.Event{Type: "STRANGE", Object: harness.Pod("a/3", "9")},
			watch.Event{Type: watch.Added, Object: harness.Pod("a/4", "10")},
		))}
		store := &harness.Journal{}
		r := informer.NewReflector(lw, example, store, 0)
		defer harness.Settle(r.RunWithContext)()
		require.Equal(t, []string{"add a/1", "add a/2", "add a/4"}, store.Events())
		require.Equal(t, "10", r.LastSyncResourceVersion())
		var got []informer.ItemError
		for _, err := range errs() {
			item := harness.ErrorAs[*informer.ItemError](t, err)
			require.Error(t, item.Err)
			got = append(got, informer.ItemError{Index: item.Index, Watch: item.Watch, Key: item.Key})
		}
		require.Equal(t, []informer.ItemError{
			{Index: 1, Key: "a/wrong"},
			{Index: 0, Watch: true, Key: "a/wrong"},
			{Index: 1, Watch: true},
			{Index: 2, Watch: true, Key: "typed"},
			{Index: 3, Watch: true},
			{Index: 4, Watch: true},
			{Index: 5, Watch: true},
		}, got)
	})
}

func TestObjectsOfAnotherGoTypeAreSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errs := harness.Reported(t)
		page := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}, Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}}
		lw := &harness.Tap{OnList: harness.Lists(page), OnWatch: harness.Watches(harness.Open())}
		store := cache.NewStore(cache.MetaNamespaceKeyFunc)
		defer harness.Start(informer.NewReflector(lw, &corev1.ConfigMap{}, store, 0).RunWithContext)()
		synctest.Wait()
		require.Empty(t, store.List())
		require.Len(t, errs(), 1)
		require.ErrorContains(t, errs()[0], "*v1.ConfigMap")
	})
}

// A store is told of a deletion by the object. If that cannot be decoded, the list that follows the
// watch finds the deletion.
func TestUndecodableDeletionIsFoundByTheListAfterTheWatch(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		harness.BubbleRun(t, fmt.Sprintf("streamed=%t", streamed), informertest.Options{}, func(t *testing.T, w *harness.World) {
			errs := harness.Reported(t)
			w.CreatePods("a/1", "a/2")
			store := cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc)
			r := informer.NewReflector(w.Lister(), &corev1.Pod{}, store, 0)
			r.StreamHandleForPaginatedList = streamed
			defer harness.Settle(r.RunWithContext)()
			require.ElementsMatch(t, []string{"a/1", "a/2"}, store.ListKeys())
			w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch"}}, Effect: informertest.Mistyped(1), Times: 1})
			w.DeletePods("a/1")
			time.Sleep(10 * time.Second)
			require.Len(t, errs(), 1)
			w.CloseClientConnections()
			harness.Sleep(10 * time.Second)
			require.Equal(t, []string{"a/2"}, store.ListKeys())
			require.Len(t, w.Lists(), 2)
		})
	}
}

// What the store has of an object that a list shows, but not readably, stays.
func TestAListDeletesNothingThatItCouldNotRead(t *testing.T) {
	stranger := harness.Object(harness.Widgets, "a/1", "")
	nameless := harness.Pod("a/1", "8")
	nameless.SetName("")
	for _, streamed := range []bool{false, true} {
		for name, unreadable := range map[string]*unstructured.Unstructured{"of another kind": stranger, "without a name": nameless} {
			for _, kind := range []string{"store", "store with unusual keys"} {
				harness.SynctestRun(t, fmt.Sprintf("%s/%s/streamed=%t", kind, name, streamed), func(t *testing.T) {
					errs := harness.Reported(t)
					to := targets[kind]()
					require.NoError(t, to.store.Add(harness.WithUID(harness.Pod("a/1", "2"), "uid-1")))
					listed := harness.WithUID(harness.Pod("a/2", "3"), "uid-2")
					lw := &harness.Tap{OnList: harness.Lists(harness.List("5", "", unreadable, listed)), OnWatch: harness.Watches(harness.Open())}
					r := informer.NewReflector(lw, harness.Object(harness.Pods, "a/0", ""), to.store, 0)
					r.StreamHandleForPaginatedList = streamed
					defer harness.Settle(r.RunWithContext)()
					require.Equal(t, map[string]string{"a/1": "2", "a/2": "3"}, to.state())
					require.Len(t, errs(), 1)
				})
			}
		}
	}
}

// A page whose answer is cut is read again. What only the first reading could not decode is stored
// as the second one shows it.
func TestPageThatIsReadAgainIsStored(t *testing.T) {
	pod := func(name, resourceVersion, spec string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"a","uid":"uid-%s","resourceVersion":%q},"spec":%s}`, name, name, resourceVersion, spec)
	}
	page := func(next string, items ...string) string {
		return fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"50","continue":%q},"items":[%s]}`, next, strings.Join(items, ","))
	}
	for _, streamed := range []bool{false, true} {
		t.Run(fmt.Sprintf("streamed=%t", streamed), func(t *testing.T) {
			var cuts atomic.Int64
			answer := harness.Before(func(rw http.ResponseWriter, r *http.Request) bool {
				if harness.IsWatch(r) || !strings.HasSuffix(r.URL.Path, "/pods") {
					return true
				}
				rw.Header().Set("Content-Type", "application/json")
				text := page("next", pod("1", "41", "{}"))
				switch {
				case !harness.Continues(r):
				case cuts.Add(1) == 1:
					text = page("", pod("2", "42", "[true]"), pod("3", "43", "{}"))
					text = text[:strings.Index(text, `"name":"3"`)]
				default:
					text = page("", pod("2", "42", "{}"), pod("3", "43", "{}"))
				}
				_, _ = io.WriteString(rw, text)
				return false
			})
			harness.Bubble(t, informertest.Options{Wrap: answer}, func(t *testing.T, w *harness.World) {
				harness.Reported(t)
				store := cache.NewStore(cache.MetaNamespaceKeyFunc)
				require.NoError(t, store.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "2", UID: "uid-2", ResourceVersion: "7"}}))
				r := informer.NewReflector(w.Lister(), &corev1.Pod{}, store, 0)
				r.ForcePaginatedList, r.StreamHandleForPaginatedList = true, streamed
				defer harness.Start(r.RunWithContext)()
				harness.Sleep(time.Minute)
				stored := map[string]string{}
				for _, obj := range store.List() {
					stored[obj.(*corev1.Pod).Name] = obj.(*corev1.Pod).ResourceVersion
				}
				require.Equal(t, map[string]string{"1": "41", "2": "42", "3": "43"}, stored)
			})
		})
	}
}

func TestStopWhileTheStoreBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		store := &harness.Journal{Fail: func(call string) error {
			if call == "add a/1" {
				<-release
			}
			return nil
		}}
		lw := &harness.Tap{OnList: harness.Lists(harness.List("5", "")), OnWatch: harness.Watches(harness.Open(watch.Event{Type: watch.Added, Object: harness.Pod("a/1", "6")}, watch.Event{Type: watch.Added, Object: harness.Pod("a/2", "7")}))}
		r := informer.NewReflector(lw, nil, store, 0)
		stopped := make(chan struct{})
		stop := harness.Settle(r.RunWithContext)
		defer stop()
		go func() { defer close(stopped); stop() }()
		synctest.Wait()
		select {
		case <-stopped:
			t.Fatal("Run returned before the store did")
		default:
		}
		close(release)
		<-stopped
		require.NotContains(t, store.Events(), "add a/2")
	})
}

func TestB5StoreErrorsLeakNothing(t *testing.T) {
	failed := errors.New("failed")
	for name, wrap := range map[string]func(j *harness.Journal) cache.ReflectorStore{
		"bare":        func(j *harness.Journal) cache.ReflectorStore { return j },
		"generations": func(j *harness.Journal) cache.ReflectorStore { return generations{j} },
		"streamed":    func(j *harness.Journal) cache.ReflectorStore { return listed{j} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // which fails when a goroutine is left
				errs := harness.Reported(t)
				page := harness.List("5", "next")
				for i := range 50 {
					page.Items = append(page.Items, *harness.Pod(fmt.Sprintf("a/%d", i), "2"))
				}
				lw := &harness.Tap{OnWatch: harness.Watches(harness.Open(watch.Event{Type: watch.Added, Object: harness.Pod("b/1", "6")}, watch.Event{Type: watch.Modified, Object: harness.Pod("b/1", "7")}, watch.Event{Type: watch.Deleted, Object: harness.Pod("b/1", "8")}))}
				lw.OnList = func(_ context.Context, _ int, opts metav1.ListOptions) (runtime.Object, error) {
					if opts.Continue == "" {
						return page.DeepCopy(), nil
					}
					return harness.List("5", "", harness.Pod("z/1", "2")), nil
				}
				var off atomic.Bool
				store := wrap(&harness.Journal{Fail: func(string) error {
					if off.Load() {
						return nil
					}
					return failed
				}})
				r := informer.NewReflector(lw, nil, store, 0)
				r.StreamHandleForPaginatedList = true
				defer harness.Start(r.RunWithContext)()
				time.Sleep(5 * time.Minute)
				require.NotEmpty(t, errs())
				for _, err := range errs() {
					require.ErrorIs(t, err, failed)
					refusal := harness.ErrorAs[*informer.StoreError](t, err)
					require.NotEmpty(t, refusal.Op)
				}
				off.Store(true)
				time.Sleep(5 * time.Minute)
				require.True(t, r.HasInitializedSynced(), "it goes on when the store does")
			})
		})
	}
}

// listed is a journal that can say what it holds, which is nothing.
type listed struct{ *harness.Journal }

func (listed) List() []interface{} { return nil }

func TestListPanicReachesTheCaller(t *testing.T) {
	lw := &harness.Tap{OnList: func(context.Context, int, metav1.ListOptions) (runtime.Object, error) { panic("oops") }}
	r := informer.NewReflector(lw, nil, &harness.Journal{}, 0)
	require.PanicsWithValue(t, "oops", func() { _ = r.ListAndWatch(nil) })
	require.PanicsWithValue(t, "oops", func() { r.Run(nil) })
}

func TestReflectorNames(t *testing.T) {
	require.Equal(t, "mine", informer.NewNamedReflector("mine", &harness.Tap{}, nil, &harness.Journal{}, 0).Name())
	require.Contains(t, informer.NewReflector(&harness.Tap{}, nil, &harness.Journal{}, 0).Name(), "reflector_test.go")
	_, r := informer.NewNamespaceKeyedIndexerAndReflector(&harness.Tap{}, nil, 0)
	require.Contains(t, r.Name(), "reflector_test.go")
}

func TestDefaultWatchErrorHandler(t *testing.T) {
	errs := harness.Reported(t)
	r := informer.NewReflector(&harness.Tap{}, &corev1.Pod{}, &harness.Journal{}, 0)
	for _, quiet := range []error{nil, io.EOF, io.ErrUnexpectedEOF, harness.Expired(), apierrors.NewGone("gone")} {
		informer.DefaultWatchErrorHandler(r, quiet)
		require.Empty(t, errs(), "%v is an everyday matter", quiet)
	}
	other := errors.New("other")
	informer.DefaultWatchErrorHandler(r, other)
	require.Equal(t, []error{other}, errs())
}

func TestStalledWatchIsStartedAnew(t *testing.T) {
	harness.SynctestRun(t, "after StallTimeout", func(t *testing.T) {
		errs := harness.Reported(t)
		lw := &harness.Tap{OnList: harness.Lists(harness.List("5", "")), OnWatch: harness.Watches(harness.Open())}
		r := informer.NewReflector(lw, nil, &harness.Journal{}, 0)
		r.StallTimeout = 10 * time.Second
		defer harness.Start(r.RunWithContext)()
		time.Sleep(25 * time.Second)
		require.Equal(t, []string{"list rv=0 limit=500", "watch rv=5", "watch rv=5", "watch rv=5"}, lw.Requests())
		stall := harness.ErrorAs[*informer.StallError](t, errs()[0])
		require.Equal(t, 10*time.Second, stall.Silence)
	})
	harness.SynctestRun(t, "by default after a bookmark", func(t *testing.T) {
		errs := harness.Reported(t)
		lw := &harness.Tap{OnList: harness.Lists(harness.List("5", "")), OnWatch: harness.Watches(harness.Open(watch.Event{Type: watch.Bookmark, Object: harness.Pod("a/0", "8")}))}
		defer harness.Start(informer.NewReflector(lw, nil, &harness.Journal{}, 0).RunWithContext)()
		time.Sleep(151 * time.Second)
		require.Equal(t, []string{"list rv=0 limit=500", "watch rv=5", "watch rv=8"}, lw.Requests())
		require.Len(t, errs(), 1)
	})
}

// A store that a list, a watch and failures of all kinds feed ends up with what
// the server has.
func TestReflectorSurvivesWhatComes(t *testing.T) {
	for seed := range uint64(20) {
		harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
			harness.Reported(t)
			var mu sync.Mutex // guards random and calm
			random, calm := rand.New(rand.NewPCG(seed, 0)), false
			w.CreatePods("a/0", "a/1", "a/2", "a/3", "a/4")
			change := func() {
				name := fmt.Sprintf("a/%d", random.IntN(8))
				switch obj, _ := w.Get(harness.Pods, "a", strings.TrimPrefix(name, "a/")); {
				case obj == nil:
					w.CreatePods(name)
				case random.IntN(2) == 0:
					w.DeletePods(name)
				default:
					w.UpdatePod(name, fmt.Sprint(random.Int()))
				}
				if random.IntN(4) == 0 {
					w.Compact()
				}
			}
			disturb := func() error {
				mu.Lock()
				defer mu.Unlock()
				if calm {
					return harness.ErrPass
				}
				change()
				if random.IntN(4) == 0 {
					return errors.New("failed")
				}
				return harness.ErrPass
			}
			lw := harness.TapOn(w.Lister())
			lw.OnList = func(context.Context, int, metav1.ListOptions) (runtime.Object, error) { return nil, disturb() }
			lw.OnWatch = func(context.Context, int, metav1.ListOptions) (watch.Interface, error) { return nil, disturb() }
			store := cache.NewStore(cache.MetaNamespaceKeyFunc)
			r := informer.NewReflector(lw, nil, store, 0)
			r.WatchListPageSize, r.StreamHandleForPaginatedList, r.ForcePaginatedList = 2, seed%2 == 0, seed%4 < 2
			stop := harness.Start(r.RunWithContext)
			defer stop()
			for range 20 {
				mu.Lock()
				pause, cut := time.Duration(random.IntN(100))*time.Second, random.IntN(2) == 0
				if !cut {
					change()
				}
				mu.Unlock()
				if cut {
					w.CloseClientConnections()
				}
				time.Sleep(pause)
			}
			mu.Lock()
			calm = true
			mu.Unlock()
			time.Sleep(5 * time.Minute)
			want := w.Versions()
			require.Equal(t, want, harness.Contents(store), "seed %d: %v", seed, slices.Compact(lw.Requests()))
			stop()
		})
	}
}

func refused(err error) func() (watch.Interface, error) {
	return func() (watch.Interface, error) { return nil, err }
}
