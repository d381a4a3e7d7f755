package lists_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// A list that says its kind after its items is read as any other.
func TestListSaysItsKindAfterItsItems(t *testing.T) {
	for name, as := range map[string]runtime.Object{
		"typed": &corev1.Pod{}, "unstructured": nil, "unstructured pod": harness.ExampleObject("v1", "Pod"), "raw": &informer.RawObject{}, "metadata": &metav1.PartialObjectMetadata{},
	} {
		for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeFull, informer.ListModeAuto} {
			harness.BubbleRun(t, fmt.Sprint(name, "/", mode), informertest.Options{Wrap: harness.SortKeys}, func(t *testing.T, w *harness.World) {
				w.CreatePods("a/1", "a/2", "a/3")
				var r harness.Recorder
				var kinds []string
				see := func(obj interface{}) {
					if raw, ok := obj.(*informer.RawObject); ok {
						u, err := raw.Unstructured()
						require.NoError(t, err)
						obj = u
					}
					if u, ok := obj.(*unstructured.Unstructured); ok {
						kinds = append(kinds, u.GetAPIVersion()+" "+u.GetKind())
					}
				}
				h := informer.ResourceEventHandlerDetailedFuncs{AddFunc: func(obj interface{}, initial bool) {
					see(obj)
					r.OnAdd(obj, initial)
				}, UpdateFunc: r.OnUpdate, DeleteFunc: r.OnDelete}
				i := harness.FollowAuto(w, informer.InformerConfig{Handler: h, ExampleObject: as, ListMode: mode, WatchListPageSize: 2})
				w.Run(i)
				time.Sleep(20 * time.Second)
				w.RequireState(&r)
				require.True(t, i.HasSynced())
				require.Zero(t, i.Status().Skipped)
				require.Equal(t, informer.ReasonCurrent, i.Status().Condition.Reason)
				for _, kind := range kinds {
					require.Equal(t, "v1 Pod", kind)
				}
				w.Down(func() { w.DeletePods("a/2"); w.CreatePods("a/4") })
				time.Sleep(time.Minute)
				w.RequireState(&r)
				require.Zero(t, i.Status().Skipped)
			})
		}
	}
}

// A list whose items say no kind, and that says none of theirs, is refused as a whole.
func TestListWithoutKindOfItemsIsRefusedAsAWhole(t *testing.T) {
	for _, answer := range []string{
		`{"apiVersion":"v1","items":[%s,%s],"kind":"List","metadata":{"resourceVersion":"90"}}`,
		`{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"90"},"items":[%s,%s]}`,
		`{"apiVersion":"v1","items":[%s,%s],"kind":"Bunch","metadata":{"resourceVersion":"90"}}`,
	} {
		answer = fmt.Sprintf(answer, harness.PodJSON("8", ""), harness.PodJSON("9", ""))
		var a harness.OtherAnswer
		harness.BubbleRun(t, answer[:20], informertest.Options{Wrap: a.Wrap}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/1", "a/2")
			var r harness.Recorder
			i := harness.Running(w, informer.InformerConfig{Handler: &r})
			time.Sleep(time.Second)
			r.Forget()
			a.Set(answer)
			w.Relist()
			require.Empty(t, r.Events())
			require.Zero(t, i.Status().Skipped)
			require.ErrorIs(t, i.Status().LastError, informer.ErrNotList)
			require.ErrorContains(t, i.Status().LastError, "of which kind the items are")
			a.Set("")
			time.Sleep(time.Minute)
			w.RequireState(&r)
		})
	}
}

// An item without a kind, among others of a list that say theirs, is skipped alone.
func TestItemWithoutKindAmongOthersIsSkippedAlone(t *testing.T) {
	says := `,"kind":"Pod","apiVersion":"v1"`
	answer := fmt.Sprintf(`{"apiVersion":"v1","items":[%s,%s,%s],"kind":"List","metadata":{"resourceVersion":"90"}}`,
		harness.PodJSON("1", ""), harness.PodJSON("2", says), harness.PodJSON("3", says))
	var a harness.OtherAnswer
	a.Set(answer)
	harness.Bubble(t, informertest.Options{Wrap: a.Wrap}, func(t *testing.T, w *harness.World) {
		var r harness.Recorder
		i := harness.Running(w, informer.InformerConfig{Handler: &r})
		time.Sleep(time.Second)
		require.ElementsMatch(t, []string{"add a/2 initial", "add a/3 initial"}, r.Events())
		require.EqualValues(t, 1, i.Status().Skipped)
	})
}

// Handlers of one shared informer read such a list together.
func TestSharedListSaysItsKindAfterItsItems(t *testing.T) {
	lists := 0
	wrap := harness.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if !harness.IsWatch(r) && r.URL.Path == "/api/v1/pods" {
			lists++
		}
		return true
	})
	harness.Bubble(t, informertest.Options{Wrap: func(s http.Handler) http.Handler { return wrap(harness.SortKeys(s)) }}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2", "a/3")
		s := harness.Share(w, informer.InformerConfig{ListMode: informer.ListModePaged})
		var one, two harness.Recorder
		harness.AddHandler(t, s, &one)
		harness.AddHandler(t, s, &two)
		defer harness.Start(s.RunWithContext)()
		time.Sleep(20 * time.Second)
		w.RequireState(&one)
		w.RequireState(&two)
		require.LessOrEqual(t, lists, 3)
	})
}
