package compat_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/tests/harness"
)

// pages answers lists with two pages of pods.
func pages(_ context.Context, _ int, opts metav1.ListOptions) (runtime.Object, error) {
	if opts.Continue == "" {
		return harness.List("5", "next", harness.Pod("a/1", "2"), harness.Pod("a/2", "3")), nil
	}
	return harness.List("5", "", harness.Pod("a/3", "4")), nil
}

func TestGenerationStoreIsCalledInOrder(t *testing.T) {
	failed := errors.New("failed")
	stranger := harness.Object(harness.Widgets, "a/wrong", "")
	nameless := harness.Pod("a/1", "8")
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
				return harness.List("5", "", harness.Pod("a/1", "2"), stranger, harness.Pod("a/2", "3"), nameless, harness.Pod("a/3", "4")), nil
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
					return nil, harness.Expired()
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
		harness.SynctestRun(t, name, func(t *testing.T) {
			errs := harness.Reported(t)
			did := false
			j := &harness.Journal{Held: c.held, Fail: func(call string) error {
				if call == c.fail && !did {
					did = true
					return failed
				}
				return nil
			}}
			lw := &harness.Tap{OnList: pages}
			if c.onList != nil {
				lw.OnList = c.onList
			}
			lw.OnWatch = harness.Watches(harness.Open(
				watch.Event{Type: watch.Added, Object: harness.Pod("b/1", "6")},
				watch.Event{Type: watch.Modified, Object: harness.Pod("b/1", "7")},
				watch.Event{Type: watch.Deleted, Object: harness.Pod("b/1", "8")},
			))
			r := informer.NewReflector(lw, harness.Object(harness.Pods, "a/0", ""), generations{j}, 0)
			defer harness.Start(r.RunWithContext)()
			harness.Sleep(time.Minute)
			require.Equal(t, c.want, j.Events())
			require.Len(t, errs(), c.errs)
			state := map[string]string{"a/1": "2", "a/2": "3", "a/3": "4"}
			if c.fail == "item a/2" {
				delete(state, "a/2")
			}
			require.Equal(t, state, j.State())
			require.Equal(t, "8", r.LastSyncResourceVersion())
		})
	}
}

func TestGenerationIsAbandonedByStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		j := &harness.Journal{Held: map[string]string{"b/1": "1"}}
		lw := &harness.Tap{}
		lw.OnList = func(ctx context.Context, n int, opts metav1.ListOptions) (runtime.Object, error) {
			if n == 2 {
				cancel()
			}
			return pages(ctx, n, opts)
		}
		r := informer.NewReflector(lw, nil, generations{j}, 0)
		r.RunWithContext(ctx)
		require.Equal(t, "abandon", j.Events()[len(j.Events())-1])
		require.Contains(t, j.State(), "b/1")
		require.False(t, r.HasInitializedSynced())
	})
}

// waiting is a generation store whose Item waits for its context.
type waiting struct {
	*harness.Journal
	entered chan struct{}
}

func (w waiting) BeginGeneration(context.Context) (informer.Generation, error) {
	return waitingPass{&pass{w.Journal, map[string]bool{}, false}, w.entered}, nil
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
		errs := harness.Reported(t)
		store := waiting{&harness.Journal{}, make(chan struct{})}
		lw := &harness.Tap{OnList: pages}
		stop := harness.Start(informer.NewReflector(lw, nil, store, 0).RunWithContext)
		<-store.entered
		stop()
		require.Equal(t, []string{"abandon"}, store.Events())
		require.Empty(t, errs(), "stopping is no failure")
	})
}

var _ interface {
	cache.ReflectorBookmarkStore
	informer.ResourceVersionUpdater
} = bookmarked{}

// bookmarked is a journal that wants to know resource versions.
type bookmarked struct{ *harness.Journal }

func (b bookmarked) Bookmark(rv string) error {
	return b.Note("bookmark "+rv, func(map[string]string) {})
}

func (b bookmarked) UpdateResourceVersion(rv string) {
	_ = b.Note("version "+rv, func(map[string]string) {})
}

// generations is a journal that takes lists as they arrive.
type generations struct{ *harness.Journal }

func (g generations) BeginGeneration(context.Context) (informer.Generation, error) {
	return &pass{g.Journal, map[string]bool{}, false}, g.Note("begin", func(map[string]string) {})
}

type pass struct {
	*harness.Journal
	shown   map[string]bool
	partial bool
}

func (p *pass) Item(_ context.Context, obj interface{}) error {
	p.shown[harness.Key(obj)] = true
	return p.Put("item", obj)
}

func (p *pass) Skipped(key string) {
	p.shown[key] = true
	p.partial = p.partial || key == ""
	_ = p.Note("skipped "+key, func(map[string]string) {})
}

func (p *pass) End(_ context.Context, rv string) error {
	return p.Note("end "+rv, func(held map[string]string) {
		maps.DeleteFunc(held, func(key, _ string) bool { return !p.partial && !p.shown[key] })
	})
}

func (p *pass) Abandon() { _ = p.Note("abandon", func(map[string]string) {}) }
