package tests_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// onWatches is a fault of the next watch that has a readable event.
func onWatches(effect informertest.Effect) informertest.Fault {
	return informertest.Fault{Match: informertest.Match{Verbs: []string{"watch", "watch-list"}}, Effect: effect, Times: 1}
}

// An event of a watch that says no resource version is not taken for a state. A list tells what is
// true.
func TestWatchEventWithoutResourceVersionIsFollowedByAList(t *testing.T) {
	for name, example := range map[string]runtime.Object{"unstructured": nil, "raw": &informer.RawObject{}, "metadata": &metav1.PartialObjectMetadata{}} {
		for change, act := range map[string]func(w *world){
			"created": func(w *world) { w.create("a/new") },
			"updated": func(w *world) { w.update("a/0001", "changed") },
			"deleted": func(w *world) { w.remove("a/0001") },
		} {
			for mode, listMode := range map[string]informer.ListMode{"auto": informer.ListModeAuto, "paged": informer.ListModePaged} {
				t.Run(fmt.Sprint(name, " ", change, " ", mode), func(t *testing.T) {
					bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
						w.create(keys(3)...)
						var r recorder
						var f failures
						i := auto(w, informer.InformerConfig{ListMode: listMode, ExampleObject: example, Handler: &r, ErrorHandler: f.handle})
						defer start(i.RunWithContext)()
						time.Sleep(20 * time.Second)
						w.ResetRequests()
						w.Inject(onWatches(informertest.Unversioned(1)))
						act(w)
						synctest.Wait()
						w.requireState(&r)
						require.Equal(t, "list limit=500", w.verbs()[0])
						require.EqualValues(t, 1, i.Status().Skipped)
						errs, _ := f.all()
						require.Len(t, errs, 1)
						var item *informer.ItemError
						require.ErrorAs(t, errs[0], &item)
						require.NotEmpty(t, item.Key)
						require.ErrorContains(t, errs[0], "no resource version")

						w.update("a/0002", "changed")
						synctest.Wait()
						w.requireState(&r)
					})
				})
			}
		}
	}
}

// Initial events without resource versions end the watch-list, and the set is read in pages.
func TestInitialEventWithoutResourceVersionIsFollowedByAList(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		w.Inject(onWatches(informertest.Unversioned(2)))
		var r recorder
		var f failures
		i := auto(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.handle})
		defer start(i.RunWithContext)()
		synctest.Wait()
		require.True(t, i.HasSynced())
		w.requireState(&r)
		require.Equal(t, []string{"watch-list", "list limit=500", "watch rv=4"}, w.verbs())
		require.ErrorContains(t, i.Status().Fallback, "no resource version")
		require.EqualValues(t, 1, i.Status().Skipped)
	})
}

// The ListerWatchers of others, such as fakes, may give objects no versions.
func TestEventsOfOthersNeedNoResourceVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		var f failures
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: script{list: listing("5", pod("a/1", "")), watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				return stream(false, watch.Event{Type: watch.Added, Object: pod("a/2", "")}), nil
			}}.lw(), Handler: &r, ErrorHandler: f.handle,
		})
		defer start(i.RunWithContext)()
		synctest.Wait()
		require.Equal(t, []string{"add a/1 initial", "add a/2"}, r.events())
		errs, _ := f.all()
		require.Empty(t, errs)
	})
}
