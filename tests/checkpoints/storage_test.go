package checkpoints_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

var _ cache.KeyGetter = informer.NewResourceVersionStorage()

func TestStorageRemembersResourceVersions(t *testing.T) {
	s := informer.NewResourceVersionStorage()
	requireHolds := func(want map[string]string) {
		t.Helper()
		require.Equal(t, want, maps.Collect(s.All()))
		require.Equal(t, len(want), s.Len())
		keys := make([]string, 0, len(want))
		for key, rv := range want {
			keys = append(keys, key)
			item, exists, err := s.GetByKey(key)
			require.NoError(t, err)
			require.True(t, exists)
			require.Equal(t, rv, item)
		}
		require.ElementsMatch(t, keys, s.ListKeys())
	}
	requireHolds(map[string]string{})
	require.NoError(t, s.Add(harness.Pod("a/1", "2")))
	require.NoError(t, s.Add(harness.Pod("node", "3")))
	require.NoError(t, s.Update(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "1", ResourceVersion: "340282366920938463463374607431768211455"}}))
	requireHolds(map[string]string{"a/1": "2", "node": "3", "b/1": "340282366920938463463374607431768211455"})
	require.NoError(t, s.Update(harness.Pod("a/1", "opaque")))
	require.NoError(t, s.Add(cache.DeletedFinalStateUnknown{Key: "node", Obj: harness.Pod("node", "9")}))
	requireHolds(map[string]string{"a/1": "opaque", "node": "9", "b/1": "340282366920938463463374607431768211455"})

	for _, obj := range []interface{}{harness.Pod("a/1", "any"), cache.DeletedFinalStateUnknown{Key: "a/1"}, cache.ExplicitKey("a/1")} {
		rv, exists, err := s.Get(obj)
		require.NoError(t, err)
		require.True(t, exists)
		require.Equal(t, "opaque", rv)
	}
	rv, exists, err := s.Get(harness.Pod("none", "1"))
	require.NoError(t, err)
	require.False(t, exists)
	require.Empty(t, rv)
	item, exists, err := s.GetByKey("none")
	require.NoError(t, err)
	require.False(t, exists)
	require.Nil(t, item)

	require.NoError(t, s.Delete(harness.Pod("a/1", "any")))
	require.NoError(t, s.Delete(harness.Pod("a/1", "any")))
	require.NoError(t, s.Delete(cache.DeletedFinalStateUnknown{Key: "node"}))
	requireHolds(map[string]string{"b/1": "340282366920938463463374607431768211455"})
}

func TestStorageRefusesWhatHasNoKey(t *testing.T) {
	s := informer.NewResourceVersionStorage()
	require.NoError(t, s.Add(harness.Pod("a/1", "2")))
	for _, obj := range []interface{}{nil, "text", 7, &metav1.Status{}} {
		_, _, get := s.Get(obj)
		for op, err := range map[string]error{"Add": s.Add(obj), "Update": s.Update(obj), "Delete": s.Delete(obj), "Get": get} {
			var keyError cache.KeyError
			require.ErrorAs(t, err, &keyError, "%s %T", op, obj)
			require.Equal(t, obj, keyError.Obj)
			require.Error(t, keyError.Err)
		}
	}
	require.ErrorAs(t, s.Add(cache.DeletedFinalStateUnknown{Key: "a/2"}), new(cache.KeyError), "it has no version")
	require.Equal(t, map[string]string{"a/1": "2"}, maps.Collect(s.All()))
}

func TestStorageReplace(t *testing.T) {
	s := informer.NewResourceVersionStorage()
	require.NoError(t, s.Replace(map[string]interface{}{"a/1": "2", "b": ""}))
	want := map[string]string{"a/1": "2", "b": ""}
	require.Equal(t, want, maps.Collect(s.All()))
	for _, bad := range []map[string]interface{}{
		{"c/1": "3", "c/2": 4},
		{"c/1": "3", "c/2": nil},
		{"c/1": "3", "": "4"},
	} {
		require.Error(t, s.Replace(bad))
		require.Equal(t, want, maps.Collect(s.All()), "nothing changes")
	}
	require.ErrorContains(t, s.Replace(map[string]interface{}{"c/2": 4}), `"c/2"`)
	require.NoError(t, s.Replace(nil))
	require.Zero(t, s.Len())
}

// A pass that lends tells what All does, also while the storage changes, and hardly allocates.
func TestStorageLend(t *testing.T) {
	s := informer.NewResourceVersionStorage()
	const n = 10_000
	for i := range n {
		require.NoError(t, s.Add(harness.Pod(fmt.Sprintf("team-%d/web-7d9f-%d", i%7, i), fmt.Sprint(1000+i))))
	}
	require.NoError(t, s.Add(harness.Pod("a/"+strings.Repeat("long-", 100), "no number")))
	lent := map[string]string{}
	for key, version := range s.Lend() {
		_, before := lent[key]
		require.False(t, before, key)
		lent[strings.Clone(key)] = strings.Clone(version)
	}
	require.Equal(t, maps.Collect(s.All()), lent)
	passes := testing.AllocsPerRun(5, func() {
		for range s.Lend() {
		}
	})
	require.Less(t, passes, 200.0)

	seen := 0
	for key, version := range s.Lend() {
		if seen++; seen == 1 { // all change, and one goes
			for i := range n {
				require.NoError(t, s.Update(harness.Pod(fmt.Sprintf("team-%d/web-7d9f-%d", i%7, i), fmt.Sprint(5000+i))))
			}
			require.NoError(t, s.Delete(harness.Pod("team-0/web-7d9f-0", "")))
			continue
		}
		require.NotEqual(t, "team-0/web-7d9f-0", key)
		if version != "no number" {
			require.NotEqual(t, lent[key], version)
		}
	}
	require.GreaterOrEqual(t, seen, n)
}

func TestStorageFromManyGoroutines(t *testing.T) {
	s := informer.NewResourceVersionStorage()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 300 {
				obj := harness.Pod(fmt.Sprintf("%d/%d", g, i), fmt.Sprint(i))
				if s.Add(obj) != nil || s.Update(obj) != nil {
					t.Error("not stored")
				}
				if rv, exists, err := s.Get(obj); err != nil || !exists || rv != fmt.Sprint(i) {
					t.Error("not found")
				}
				if i%2 == 0 && s.Delete(obj) != nil {
					t.Error("not deleted")
				}
				if i%50 == 0 {
					s.ListKeys()
					for range s.All() {
					}
					_, _ = s.SizeBytes(), s.Len()
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, 8*150, s.Len())
}

func TestStorageSizeBytes(t *testing.T) {
	s := informer.NewResourceVersionStorage()
	empty := s.SizeBytes()
	const n = 1000
	for i := range n {
		require.NoError(t, s.Add(harness.Pod(fmt.Sprintf("namespace/name-%04d", i), "123456")))
	}
	full := s.SizeBytes()
	perObject := (full - empty) / n
	require.GreaterOrEqual(t, perObject, int64(len("123456")), "it counts what it holds")
	require.LessOrEqual(t, perObject, int64(400))
	for i := range n {
		require.NoError(t, s.Update(harness.Pod(fmt.Sprintf("namespace/name-%04d", i), "654321")))
	}
	require.Equal(t, full, s.SizeBytes(), "an update of one length costs nothing")
	require.NoError(t, s.Replace(nil))
	require.Equal(t, empty, s.SizeBytes())
}

// The zero value of a storage is an empty one, for all that can be asked of it.
func TestZeroStorage(t *testing.T) {
	for name, use := range map[string]func(s *informer.ResourceVersionStorage){
		"Add": func(s *informer.ResourceVersionStorage) {
			require.NoError(t, s.Add(harness.PartialObject("a", "1", "7", "")))
		},
		"Replace": func(s *informer.ResourceVersionStorage) {
			require.NoError(t, s.Replace(map[string]interface{}{"a/1": "7"}))
		},
		"ReadFrom": func(s *informer.ResourceVersionStorage) {
			full := informer.NewResourceVersionStorage()
			require.NoError(t, full.Add(harness.PartialObject("a", "1", "7", "")))
			var b bytes.Buffer
			_, err := full.WriteTo(&b)
			require.NoError(t, err)
			_, err = s.ReadFrom(&b)
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var s informer.ResourceVersionStorage
			require.Zero(t, s.Len())
			require.Zero(t, s.SizeBytes())
			require.Empty(t, s.ListKeys())
			require.Empty(t, maps.Collect(s.All()))
			_, exists, err := s.GetByKey("a/1")
			require.NoError(t, err)
			require.False(t, exists)
			require.NoError(t, s.Delete(harness.PartialObject("a", "1", "7", "")))
			_, err = s.WriteTo(io.Discard)
			require.NoError(t, err)
			use(&s)
			require.Equal(t, map[string]string{"a/1": "7"}, maps.Collect(s.All()))
		})
	}
}

// An informer takes the zero value of a storage.
func TestAnInformerTakesAZeroStorage(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		var s informer.ResourceVersionStorage
		r := &harness.Recorder{}
		w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Storage: &s, Checkpoint: &harness.MemoryCheckpoint{}}))
		synctest.Wait()
		require.Equal(t, r.State(), maps.Collect(s.All()))
		require.Equal(t, 3, s.Len())
	})
}

// Another informer of a Storage lists nothing older than what the one before has read, which may be
// a deletion that the Storage knows nothing of.
func TestStorageRemembersWhatWasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := informer.NewResourceVersionStorage()
		var asked []string
		run := func(watches func() (watch.Interface, error)) {
			lw := &harness.Tap{OnWatch: func(context.Context, int, metav1.ListOptions) (watch.Interface, error) { return watches() }}
			lw.OnList = func(_ context.Context, _ int, opts metav1.ListOptions) (runtime.Object, error) {
				asked = append(asked, opts.ResourceVersion)
				return harness.List("5", "", harness.Pod("a/1", "2"), harness.Pod("a/2", "3")), nil
			}
			i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
				ListerWatcher: lw, Handler: &harness.Recorder{}, Storage: storage, ListMode: informer.ListModeFull, ErrorHandler: harness.IgnoreErrors,
			})
			stop := harness.Start(i.RunWithContext)
			time.Sleep(time.Second)
			stop()
		}
		run(harness.Open(watch.Event{Type: watch.Deleted, Object: harness.Pod("a/1", "9")}))
		run(harness.Open())
		require.Equal(t, []string{"0", "9"}, asked)
		require.NoError(t, storage.Replace(map[string]interface{}{"a/2": "3"}))
		run(harness.Open())
		require.Equal(t, []string{"0", "9", "3"}, asked, "what a program says counts")
	})
}
