package lists_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// An item that cannot be read is reported with its place, the rest of the list
// goes on, and nothing that may be that item is deleted.
func TestAListWithAnUnreadableItem(t *testing.T) {
	huge := `,"data":"` + strings.Repeat("x", 17<<20) + `"`
	for _, test := range []struct {
		name, item string
		says       string
	}{
		{"malformed", `{"metadata":{"namespace":"a","name":"2",,}}`, "malformed"},
		{"nameless", `{"metadata":{"namespace":"a"}}`, "without a name"},
		{"of wrong types", `{"metadata":{"namespace":"a","name":"2","resourceVersion":{}}}`, "malformed"},
		{"no object", `"2"`, "malformed"},
		{"oversized", harness.PodJSON("2", huge), "too large"},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := harness.ListJSON(harness.PodJSON("1", ""), test.item, harness.PodJSON("3", ""))
			harness.Bubble(t, informertest.Options{Wrap: harness.Answering("application/json", body)}, func(t *testing.T, w *harness.World) {
				storage := informer.NewResourceVersionStorage()
				require.NoError(t, storage.Replace(map[string]interface{}{"a/2": "4", "a/4": "4"}))
				var r harness.Recorder
				var f harness.Failures
				i := harness.Follow(w, informer.InformerConfig{Handler: &r, Storage: storage, ErrorHandler: f.Handle})
				stop := harness.Synced(i)
				stop()
				require.Equal(t, []string{"add a/1 initial", "add a/3 initial"}, r.Events())
				skipped := harness.ErrorAs[*informer.ItemError](t, f.Errors()[0])
				require.Equal(t, 1, skipped.Index)
				require.ErrorContains(t, skipped, test.says)
				require.EqualValues(t, 1, i.Status().Skipped)
			})
		})
	}
}

// What only a decoder finds is reported with the key of the object and the offset in it.
func TestUndecodableUnstructuredObjectIsSkipped(t *testing.T) {
	for name, test := range map[string]struct{ kind, rest, says string }{
		"no kind":         {"List", "", `list item 1 "a/2" skipped: object without a kind`},
		"escape":          {"PodList", `,"spec":{"a":"\q"}`, `list item 1 "a/2" skipped: malformed object at byte 118: an invalid escape in this string`},
		"number":          {"PodList", `,"spec":{"a":1e999}`, `list item 1 "a/2" skipped: malformed object at byte 118: a number out of range`},
		"control":         {"PodList", ",\"spec\":{\"a\":\"\t\"}", `list item 1 "a/2" skipped: malformed object at byte 119: a control character in a string`},
		"no kind, number": {"List", `,"spec":{"a":1e999}`, `list item 1 "a/2" skipped: malformed object at byte 105: a number out of range`},
	} {
		t.Run(name, func(t *testing.T) {
			whole := `,"kind":"Pod","apiVersion":"v1"`
			body := strings.Replace(harness.ListJSON(harness.PodJSON("1", whole), harness.PodJSON("2", test.rest), harness.PodJSON("3", whole)), "PodList", test.kind, 1)
			harness.Bubble(t, informertest.Options{Wrap: harness.Answering("application/json", body)}, func(t *testing.T, w *harness.World) {
				var r harness.Recorder
				var f harness.Failures
				i := harness.Follow(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.Handle, ExampleObject: &unstructured.Unstructured{}})
				stop := harness.Synced(i)
				stop()
				require.Equal(t, []string{"add a/1 initial", "add a/3 initial"}, r.Events())
				skipped := harness.ErrorAs[*informer.ItemError](t, f.Errors()[0])
				require.EqualError(t, skipped, test.says)
				require.EqualValues(t, 1, i.Status().Skipped)
			})
		})
	}
}

// A body that is no list fails the request, which is tried again; nothing is
// deleted for it.
func TestAnAnswerThatIsNoList(t *testing.T) {
	for name, body := range map[string]string{
		"HTML":         "<html><body>Please log in</body></html>",
		"null":         "null",
		"nothing":      "",
		"an array":     "[]",
		"a Status":     `{"kind":"Status","apiVersion":"v1","status":"Failure"}`,
		"cut":          harness.ListJSON(harness.PodJSON("1", ""))[:150],
		"a Table":      `{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[]}`,
		"more after":   harness.ListJSON() + "{}",
		"only a start": "{",
		"no kind":      `{"items":[],"metadata":{"resourceVersion":"9"}}`,
	} {
		harness.BubbleRun(t, name, informertest.Options{Wrap: harness.Answering("application/json", body)}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/1")
			storage := informer.NewResourceVersionStorage()
			require.NoError(t, storage.Replace(map[string]interface{}{"a/1": w.ResourceVersion()}))
			var r harness.Recorder
			var f harness.Failures
			i := harness.Settled(w, informer.InformerConfig{Handler: &r, Storage: storage, ErrorHandler: f.Handle})
			require.False(t, i.HasSynced())
			require.Error(t, i.Status().LastError)
			time.Sleep(time.Minute)
			require.True(t, i.HasSynced())
			for _, call := range r.Events() {
				require.NotContains(t, call, "delete")
			}
			w.RequireState(&r)
		})
	}
}

// The items of built-in lists do not say what they are, those of custom ones do,
// and the metadata of the list stands before or after them.
func TestObjectsKnowTheirKind(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		factory := w.Factory()
		for gvr, kind := range harness.Kinds {
			for n := range 5 {
				_, err := w.Create(gvr, harness.Object(gvr, fmt.Sprintf("a/%d", n), "created"))
				require.NoError(t, err)
			}
			var got []*unstructured.Unstructured
			i := informer.NewResourceVersionInformer(gvr.Resource, informer.InformerConfig{
				ListerWatcher:     factory.ForResource("", gvr),
				ExampleObject:     harness.ExampleObject(gvr.GroupVersion().String(), kind),
				WatchListPageSize: 2,
				ErrorHandler:      harness.IgnoreErrors,
				Handler: informer.TypedResourceEventHandlerFuncs[*unstructured.Unstructured]{
					AddFunc: func(obj *unstructured.Unstructured) { got = append(got, obj) },
				},
			})
			stop := harness.Settle(i.RunWithContext)
			stop()
			require.Len(t, got, 5)
			stored, err := w.List(gvr, "")
			require.NoError(t, err)
			require.Equal(t, stored, got, "as a server has them")
		}
	})
}

func TestAnotherKindThanExpectedIsSkipped(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		var r harness.Recorder
		var f harness.Failures
		i := harness.Settled(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.Handle, ExampleObject: harness.ExampleObject("v1", "Service")})
		require.Empty(t, r.Events())
		require.EqualValues(t, 1, i.Status().Skipped)
		require.EqualError(t, f.Errors()[0], `list item 0 "a/1" skipped: is of kind /v1, Kind=Pod, expected /v1, Kind=Service`)
	})
}

// A first page that was cut is asked for again in a newer state: what it had
// shown may be gone by then.
func TestAFirstPageCutShortHasShownNothing(t *testing.T) {
	var w *harness.World
	wasCut := false
	list := func(r *http.Request) bool { return !harness.IsWatch(r) }
	cut := cutOnce(list, 500, func() {
		wasCut = true
		w.DeletePods("a/0000")
	})
	harness.Bubble(t, informertest.Options{Wrap: cut}, func(t *testing.T, world *harness.World) {
		w = world
		w.CreatePods(harness.Keys(10)...)
		storage := informer.NewResourceVersionStorage()
		var r harness.Recorder
		harness.Fill(t, w, storage, &r)
		i := harness.Follow(w, informer.InformerConfig{Handler: &r, Storage: storage})
		defer harness.Start(i.RunWithContext)()
		harness.Sleep(time.Minute)
		require.True(t, wasCut)
		w.RequireState(&r)
	})
}

// A page that was cut and read again reaches a plain store once.
func TestAPageReadAgainIsReplacedOnce(t *testing.T) {
	wasCut := false
	cut := cutOnce(harness.Continues, 500, func() { wasCut = true })
	harness.Bubble(t, informertest.Options{Wrap: cut}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(10)...)
		store := &harness.Journal{}
		r := informer.NewReflector(w.Lister(), nil, store, 0)
		r.ForcePaginatedList, r.WatchListPageSize = true, 5
		harness.Reported(t)
		defer harness.Start(r.RunWithContext)()
		harness.Sleep(time.Minute)
		require.True(t, wasCut)
		require.Equal(t, []string{"replace 11 " + strings.Join(harness.Keys(10), " ")}, store.Events())
	})
}

// The factory's requests have a user agent, as a dynamic client's do, and take JSON.
func TestRequestsOfTheFactory(t *testing.T) {
	var mu sync.Mutex
	var agents, accepted []string
	note := harness.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		agents = append(agents, r.UserAgent())
		accepted = append(accepted, r.Header.Get("Accept"))
		return true
	})
	harness.Bubble(t, informertest.Options{Wrap: note}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}})
		stop := harness.Settle(i.RunWithContext)
		stop()
		agent := rest.DefaultKubernetesUserAgent()
		require.Equal(t, []string{agent, agent}, agents)
		require.Equal(t, "application/json", accepted[0])
	})
}
