package lists_test

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
	"github.com/rvinformer/informer/tests/harness"
)

// onWatches is a fault of the next watch that has a readable event.
func onWatches(effect informertest.Effect) informertest.Fault {
	return informertest.Fault{Match: informertest.Match{Verbs: []string{"watch", "watch-list"}}, Effect: effect, Times: 1}
}

// An event of a watch that says no resource version is not taken for a state. A list tells what is
// true.
func TestWatchEventWithoutResourceVersionIsFollowedByAList(t *testing.T) {
	for name, example := range map[string]runtime.Object{"unstructured": nil, "raw": &informer.RawObject{}, "metadata": &metav1.PartialObjectMetadata{}} {
		for change, act := range map[string]func(w *harness.World){
			"created": func(w *harness.World) { w.CreatePods("a/new") },
			"updated": func(w *harness.World) { w.UpdatePod("a/0001", "changed") },
			"deleted": func(w *harness.World) { w.DeletePods("a/0001") },
		} {
			for mode, listMode := range map[string]informer.ListMode{"auto": informer.ListModeAuto, "paged": informer.ListModePaged} {
				harness.BubbleRun(t, fmt.Sprint(name, " ", change, " ", mode), informertest.Options{}, func(t *testing.T, w *harness.World) {
					w.CreatePods(harness.Keys(3)...)
					var r harness.Recorder
					var f harness.Failures
					i := harness.RunningAuto(w, informer.InformerConfig{ListMode: listMode, ExampleObject: example, Handler: &r, ErrorHandler: f.Handle})
					time.Sleep(20 * time.Second)
					w.ResetRequests()
					w.Inject(onWatches(informertest.Unversioned(1)))
					act(w)
					synctest.Wait()
					w.RequireState(&r)
					require.Equal(t, "list limit=500", w.Verbs()[0])
					require.EqualValues(t, 1, i.Status().Skipped)
					err := f.One(t)
					item := harness.ErrorAs[*informer.ItemError](t, err)
					require.NotEmpty(t, item.Key)
					require.ErrorContains(t, err, "no resource version")

					w.UpdatePod("a/0002", "changed")
					synctest.Wait()
					w.RequireState(&r)
				})
			}
		}
	}
}

// Initial events without resource versions end the watch-list, and the set is read in pages.
func TestInitialEventWithoutResourceVersionIsFollowedByAList(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		w.Inject(onWatches(informertest.Unversioned(2)))
		var r harness.Recorder
		var f harness.Failures
		i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.Handle})
		synctest.Wait()
		require.True(t, i.HasSynced())
		w.RequireState(&r)
		require.Equal(t, []string{"watch-list", "list limit=500", "watch rv=4"}, w.Verbs())
		require.ErrorContains(t, i.Status().Fallback, "no resource version")
		require.EqualValues(t, 1, i.Status().Skipped)
	})
}

// The ListerWatchers of others, such as fakes, may give objects no versions.
func TestEventsOfOthersNeedNoResourceVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r harness.Recorder
		var f harness.Failures
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: harness.Script{List: harness.Listing("5", harness.Pod("a/1", "")), Watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				return harness.Stream(false, watch.Event{Type: watch.Added, Object: harness.Pod("a/2", "")}), nil
			}}.LW(), Handler: &r, ErrorHandler: f.Handle,
		})
		defer harness.Settle(i.RunWithContext)()
		require.Equal(t, []string{"add a/1 initial", "add a/2"}, r.Events())
		require.Empty(t, f.Errors())
	})
}
