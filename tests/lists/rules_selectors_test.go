package lists_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
	"github.com/rvinformer/informer/tests/harness"
)

// selectorless is a server that ignores selectors.
func selectorless(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.ServeHTTP(w, harness.Ignoring(r, "labelSelector", "fieldSelector"))
	})
}

// labeled creates a pod with a label, or changes that.
func labeled(w *harness.World, key, app string) {
	w.T.Helper()
	obj := harness.Object(harness.Pods, key, app)
	if app != "" {
		obj.SetLabels(map[string]string{"app": app, "other": "x"})
	}
	_, err := w.Update(harness.Pods, obj)
	if err != nil {
		_, err = w.Create(harness.Pods, obj)
	}
	require.NoError(w.T, err)
}

func selecting(w *harness.World, labels, fields string) cache.ListerWatcher {
	return w.Factory().ForResourceWithOptions("", harness.Pods, func(o *metav1.ListOptions) { o.LabelSelector, o.FieldSelector = labels, fields })
}

func keysOf(r *harness.Recorder) []string { return slices.Sorted(maps.Keys(r.State())) }

// What a server sends although it does not match the selectors is not delivered, is counted, and is
// reported once.
func TestIgnoredLabelSelectorSelectsHere(t *testing.T) {
	for name, as := range map[string]runtime.Object{"typed": &corev1.Pod{}, "unstructured": nil, "raw": &informer.RawObject{}, "metadata": &metav1.PartialObjectMetadata{}} {
		for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeFull, informer.ListModeAuto} {
			for _, selector := range []string{"app=web", "app in (web, api),other", "app,app notin (db)"} {
				harness.BubbleRun(t, fmt.Sprint(name, "/", mode, "/", selector), informertest.Options{Wrap: selectorless}, func(t *testing.T, w *harness.World) {
					for n, app := range []string{"web", "db", "", "web", "db"} {
						labeled(w, fmt.Sprint("a/", n), app)
					}
					var r harness.Recorder
					var f harness.Failures
					i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
						ListerWatcher: selecting(w, selector, ""), Handler: &r, ExampleObject: as, ListMode: mode, ErrorHandler: f.Handle, WatchListPageSize: 2,
					})
					w.Run(i)
					time.Sleep(20 * time.Second)
					require.Equal(t, []string{"add a/0 initial", "add a/3 initial"}, slices.Sorted(slices.Values(r.Events())))
					require.EqualValues(t, 3, i.Status().Counts.Unselected)
					require.Zero(t, i.Status().Skipped)
					require.Equal(t, informer.ReasonCurrent, i.Status().Condition.Reason)

					r.Forget()
					labeled(w, "a/1", "db") // as before
					labeled(w, "a/5", "db")
					labeled(w, "a/3", "db") // does not match any more
					labeled(w, "a/2", "web")
					w.DeletePods("a/4")
					harness.Sleep(time.Second)
					require.Equal(t, []string{"delete a/3", "add a/2"}, r.Events())
					labeled(w, "a/3", "web")
					w.DeletePods("a/0")
					harness.Sleep(time.Second)
					require.Equal(t, []string{"a/2", "a/3"}, keysOf(&r))

					r.Forget()
					w.Down(func() { labeled(w, "a/2", "db"); labeled(w, "a/5", "web") })
					require.Equal(t, []string{"a/3", "a/5"}, keysOf(&r))
					require.NotContains(t, r.Events(), "delete a/3")
					require.Len(t, harness.Only[*informer.ItemError](&f), 1)
					require.ErrorContains(t, harness.Only[*informer.ItemError](&f)[0], "does not match the label selector")
				})
			}
		}
	}
}

// A field selector is checked as far as it is about the name and the namespace.
func TestIgnoredFieldSelectorOfNamesSelectsHere(t *testing.T) {
	harness.Bubble(t, informertest.Options{Wrap: selectorless}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2", "b/1", "c/1")
		var r harness.Recorder
		i := harness.Settled(w, informer.InformerConfig{ListerWatcher: selecting(w, "", "metadata.name=1,metadata.namespace!=c"), Handler: &r})
		w.CreatePods("a/3", "d/1")
		synctest.Wait()
		require.Equal(t, []string{"a/1", "b/1", "d/1"}, keysOf(&r))
		require.EqualValues(t, 3, i.Status().Counts.Unselected)
	})
}

// A server that obeys selectors is not suspected, whatever stops to match.
func TestObeyedSelectorIsNotReported(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		labeled(w, "a/1", "web")
		labeled(w, "a/2", "db")
		var r harness.Recorder
		i := harness.Settled(w, informer.InformerConfig{ListerWatcher: selecting(w, "app=web", ""), Handler: &r})
		labeled(w, "a/1", "db")
		labeled(w, "a/2", "web")
		synctest.Wait()
		labeled(w, "a/1", "web")
		w.DeletePods("a/2")
		synctest.Wait()
		require.Equal(t, []string{"add a/1 initial", "delete a/1", "add a/2", "add a/1", "delete a/2"}, r.Events())
		require.Zero(t, i.Status().Counts.Unselected)
		require.NoError(t, i.Status().LastError)
	})
}

// Handlers of a shared informer, an object cache, a ListerWatcher of others, an audit, a redelivery
// and a checkpoint see only what is selected.
func TestIgnoredSelectorOfOtherInformers(t *testing.T) {
	fill := func(w *harness.World) {
		labeled(w, "a/1", "web")
		labeled(w, "a/2", "db")
		labeled(w, "a/3", "web")
	}
	change := func(w *harness.World) {
		labeled(w, "a/3", "db")
		labeled(w, "a/4", "db")
		labeled(w, "a/5", "web")
		harness.Sleep(time.Second)
	}
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeAuto} {
		harness.BubbleRun(t, fmt.Sprint("shared/", mode), informertest.Options{Wrap: selectorless}, func(t *testing.T, w *harness.World) {
			fill(w)
			s := harness.Share(w, informer.InformerConfig{ListerWatcher: selecting(w, "app=web", ""), ListMode: mode})
			var one, two harness.Recorder
			harness.AddHandler(t, s, &one)
			harness.AddHandler(t, s, &two)
			defer harness.Start(s.RunWithContext)()
			harness.Sleep(time.Second)
			change(w)
			require.Equal(t, []string{"a/1", "a/5"}, keysOf(&one))
			require.Equal(t, []string{"a/1", "a/5"}, keysOf(&two))
			require.NotContains(t, one.Events(), "add a/2 initial")
			require.Positive(t, s.Status().Counts.Unselected)
		})
	}
	for _, decoded := range []bool{false, true} {
		harness.BubbleRun(t, fmt.Sprint("objectcache/", decoded), informertest.Options{Wrap: selectorless}, func(t *testing.T, w *harness.World) {
			fill(w)
			i := objectcache.NewSharedIndexInformerWithOptions(selecting(w, "app=web", ""), &corev1.Pod{}, objectcache.Options{Decoded: decoded})
			defer harness.Start(i.RunWithContext)()
			harness.Sleep(time.Second)
			require.Equal(t, []string{"a/1", "a/3"}, slices.Sorted(slices.Values(i.GetStore().ListKeys())))
			change(w)
			require.Equal(t, []string{"a/1", "a/5"}, slices.Sorted(slices.Values(i.GetStore().ListKeys())))
		})
	}
	harness.BubbleRun(t, "of others", informertest.Options{Wrap: selectorless}, func(t *testing.T, w *harness.World) {
		fill(w)
		own := w.Lister()
		plain := &cache.ListWatch{ListWithContextFunc: cache.ToListerWatcherWithContext(own).ListWithContext, WatchFuncWithContext: cache.ToListerWatcherWithContext(own).WatchWithContext}
		var r harness.Recorder
		i := harness.Running(w, informer.InformerConfig{Handler: &r,
			ListerWatcher: informer.NewFilteredListerWatcher(plain, func(o *metav1.ListOptions) { o.LabelSelector = "app=web" })})
		harness.Sleep(time.Second)
		change(w)
		require.Equal(t, []string{"a/1", "a/5"}, keysOf(&r))
		require.Positive(t, i.Status().Counts.Unselected)
	})
	harness.BubbleRun(t, "audit and redelivery", informertest.Options{Wrap: selectorless}, func(t *testing.T, w *harness.World) {
		fill(w)
		var r harness.Recorder
		var f harness.Failures
		i := harness.Settled(w, informer.InformerConfig{ListerWatcher: selecting(w, "app=web", ""), Handler: &r, ErrorHandler: f.Handle})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		report, err := i.Audit(ctx, informer.AuditOptions{})
		require.NoError(t, err)
		require.Zero(t, report.Differences())
		require.Equal(t, 2, report.Objects)
		require.NoError(t, i.Redeliver(ctx, informer.RedeliverOptions{}))
		harness.Sleep(time.Minute)
		require.Equal(t, []string{"a/1", "a/3"}, keysOf(&r))
		require.NotContains(t, r.Events(), "update a/2")
		require.Len(t, harness.Only[*informer.ItemError](&f), 1)
	})
	harness.BubbleRun(t, "checkpoint", informertest.Options{Wrap: selectorless}, func(t *testing.T, w *harness.World) {
		w.CreateKubeSystem()
		fill(w)
		var saved harness.MemoryCheckpoint
		var r harness.Recorder
		config := informer.InformerConfig{ListerWatcher: selecting(w, "app=web", ""), Handler: &r, Checkpoint: &saved}
		w.RunFor(harness.Follow(w, config), time.Minute)
		labeled(w, "a/3", "db")
		labeled(w, "a/5", "web")
		w.RunFor(harness.Follow(w, config), time.Minute)
		require.Equal(t, []string{"a/1", "a/5"}, keysOf(&r))
	})
}
