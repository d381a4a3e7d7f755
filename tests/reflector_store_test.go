package tests_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
)

// pages answers lists with two pages of pods.
func pages(_ context.Context, _ int, opts metav1.ListOptions) (runtime.Object, error) {
	if opts.Continue == "" {
		return list("5", "next", pod("a/1", "2"), pod("a/2", "3")), nil
	}
	return list("5", "", pod("a/3", "4")), nil
}

func TestGenerationStoreIsCalledInOrder(t *testing.T) {
	failed := errors.New("failed")
	stranger := object(widgets, "a/wrong", "")
	nameless := pod("a/1", "8")
	nameless.SetName("")
	for name, c := range map[string]struct {
		onList func(ctx context.Context, n int, opts metav1.ListOptions) (runtime.Object, error)
		fail   string // the first such call fails
		held   map[string]string
		want   []string
		errs   int
	}{
		"a list and a watch": {
			want: []string{"begin", "item a/1", "item a/2", "item a/3", "end 5", "add b/1", "update b/1", "delete b/1"},
		},
		"what was not shown": {
			held: map[string]string{"a/1": "1", "a/old": "1"},
			want: []string{"begin", "item a/1", "item a/2", "item a/3", "end 5", "add b/1", "update b/1", "delete b/1"},
		},
		"unreadable objects": {
			onList: func(context.Context, int, metav1.ListOptions) (runtime.Object, error) {
				return list("5", "", pod("a/1", "2"), stranger, pod("a/2", "3"), nameless, pod("a/3", "4")), nil
			},
			want: []string{"begin", "item a/1", "skipped a/wrong", "item a/2", "item a/3", "skipped ", "end 5", "add b/1", "update b/1", "delete b/1"},
			errs: 2,
		},
		"a page that fails": {
			onList: func(ctx context.Context, n int, opts metav1.ListOptions) (runtime.Object, error) {
				if n == 2 {
					return nil, failed
				}
				return pages(ctx, n, opts)
			},
			want: []string{"begin", "item a/1", "item a/2", "item a/3", "end 5", "add b/1", "update b/1", "delete b/1"},
			errs: 1,
		},
		"an expired token": {
			onList: func(ctx context.Context, n int, opts metav1.ListOptions) (runtime.Object, error) {
				if n == 2 {
					return nil, expired()
				}
				return pages(ctx, n, opts)
			},
			want: []string{"begin", "item a/1", "item a/2", "abandon", "begin", "item a/1", "item a/2", "item a/3", "end 5", "add b/1", "update b/1", "delete b/1"},
		},
		"an error of BeginGeneration": {
			fail: "begin",
			want: []string{"begin", "item a/1", "item a/2", "item a/3", "end 5", "add b/1", "update b/1", "delete b/1"},
			errs: 1,
		},
		"an error of Item": {
			fail: "item a/2",
			want: []string{"begin", "item a/1", "item a/3", "end 5", "add b/1", "update b/1", "delete b/1"},
			errs: 1,
		},
		"an error of End": {
			fail: "end 5",
			want: []string{"begin", "item a/1", "item a/2", "item a/3", "begin", "item a/1", "item a/2", "item a/3", "end 5", "add b/1", "update b/1", "delete b/1"},
			errs: 1,
		},
		"errors in the watch": {
			fail: "update b/1",
			want: []string{"begin", "item a/1", "item a/2", "item a/3", "end 5", "add b/1", "delete b/1"},
			errs: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				errs := reported(t)
				did := false
				j := &journal{held: c.held, fail: func(call string) error {
					if call == c.fail && !did {
						did = true
						return failed
					}
					return nil
				}}
				lw := &tap{onList: pages}
				if c.onList != nil {
					lw.onList = c.onList
				}
				lw.onWatch = watches(open(
					watch.Event{Type: watch.Added, Object: pod("b/1", "6")},
					watch.Event{Type: watch.Modified, Object: pod("b/1", "7")},
					watch.Event{Type: watch.Deleted, Object: pod("b/1", "8")},
				))
				r := informer.NewReflector(lw, object(pods, "a/0", ""), generations{j}, 0)
				defer start(r.RunWithContext)()
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, c.want, j.events())
				require.Len(t, errs(), c.errs)
				state := map[string]string{"a/1": "2", "a/2": "3", "a/3": "4"}
				if c.fail == "item a/2" {
					delete(state, "a/2")
				}
				require.Equal(t, state, j.state())
				require.Equal(t, "8", r.LastSyncResourceVersion())
			})
		})
	}
}

func TestGenerationIsAbandonedByStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		j := &journal{held: map[string]string{"b/1": "1"}}
		lw := &tap{}
		lw.onList = func(ctx context.Context, n int, opts metav1.ListOptions) (runtime.Object, error) {
			if n == 2 {
				cancel()
			}
			return pages(ctx, n, opts)
		}
		r := informer.NewReflector(lw, nil, generations{j}, 0)
		r.RunWithContext(ctx)
		require.Equal(t, "abandon", j.events()[len(j.events())-1])
		require.Contains(t, j.state(), "b/1")
		require.False(t, r.HasInitializedSynced())
	})
}

// waiting is a generation store whose Item waits for its context.
type waiting struct {
	*journal
	entered chan struct{}
}

func (w waiting) BeginGeneration(context.Context) (informer.Generation, error) {
	return waitingPass{&pass{w.journal, map[string]bool{}, false}, w.entered}, nil
}

type waitingPass struct {
	*pass
	entered chan struct{}
}

func (p waitingPass) Item(ctx context.Context, _ interface{}) error {
	close(p.entered)
	<-ctx.Done()
	return ctx.Err()
}

func TestStopEndsAGenerationStoreThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errs := reported(t)
		store := waiting{&journal{}, make(chan struct{})}
		lw := &tap{onList: pages}
		stop := start(informer.NewReflector(lw, nil, store, 0).RunWithContext)
		<-store.entered
		stop()
		require.Equal(t, []string{"abandon"}, store.events())
		require.Empty(t, errs(), "stopping is no failure")
	})
}

var _ interface {
	cache.ReflectorBookmarkStore
	informer.ResourceVersionUpdater
} = bookmarked{}
