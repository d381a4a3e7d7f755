package lists_test

import (
	"context"
	"fmt"
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

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// A wrong answer without objects deletes nothing, and is asked for again.
func TestRule2WrongListDeletesNothing(t *testing.T) {
	const bookmark = `{"type":"BOOKMARK","object":{"kind":"Secret","apiVersion":"v1","metadata":{"resourceVersion":"90","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"
	forms := map[string]runtime.Object{
		"typed": &corev1.Pod{}, "unstructured": nil, "unstructured pod": harness.ExampleObject("v1", "Pod"), "raw": &informer.RawObject{}, "metadata": &metav1.PartialObjectMetadata{},
	}
	for name, answer := range map[string]string{
		"of another kind":            `{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"90"},"items":[]}`,
		"with objects of that":       `{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"90"},"items":[{"metadata":{"name":"s","namespace":"a","resourceVersion":"1","uid":"u"}}]}`,
		"of no kind of list":         `{"kind":"ErrorPage","metadata":{"resourceVersion":"90"},"items":[]}`,
		"without a resource version": `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}`,
		"a table":                    `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"90"},"columnDefinitions":[],"items":[],"rows":[]}`,
	} {
		for form, as := range forms {
			if form == "metadata" && name != "without a resource version" && name != "a table" && name != "of no kind of list" {
				continue // a list does not say the kind of its metadata
			}
			for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeFull, informer.ListModeWatchList} {
				t.Run(fmt.Sprint(name, "/", form, "/", mode), func(t *testing.T) {
					var a harness.OtherAnswer
					harness.Bubble(t, informertest.Options{Wrap: a.Wrap}, func(t *testing.T, w *harness.World) {
						w.CreatePods("a/1", "a/2")
						var r harness.Recorder
						i := harness.Running(w, informer.InformerConfig{Handler: &r, ExampleObject: as, ListMode: mode})
						time.Sleep(11 * time.Second)
						require.True(t, i.HasSynced())
						r.Forget()
						if a.Set(answer); mode == informer.ListModeWatchList {
							a.Set(bookmark)
						}
						w.Compact()
						w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch", "watch-list"}}, Effect: informertest.ErrorEvent(410), Times: 1})
						time.Sleep(9 * time.Second)
						require.Empty(t, r.Events())
						require.Error(t, i.Status().LastError)
						a.Set("")
						w.DeletePods("a/1")
						time.Sleep(2 * time.Minute)
						w.RequireState(&r)
						require.NoError(t, i.Status().LastError)
					})
				})
			}
		}
	}
}

// An informer that knows nothing yet is not synced by an answer that is no list.
func TestRule2WrongFirstListIsNotComplete(t *testing.T) {
	for name, as := range map[string]runtime.Object{"typed": &corev1.Pod{}, "unstructured": nil, "raw": &informer.RawObject{}, "metadata": &metav1.PartialObjectMetadata{}} {
		t.Run(name, func(t *testing.T) {
			var a harness.OtherAnswer
			a.Set(`{"kind":"ErrorPage","items":[]}`)
			harness.Bubble(t, informertest.Options{Wrap: a.Wrap}, func(t *testing.T, w *harness.World) {
				w.CreatePods("a/1")
				var r harness.Recorder
				i := harness.Running(w, informer.InformerConfig{Handler: &r, ExampleObject: as})
				time.Sleep(time.Minute)
				require.False(t, i.HasSynced())
				require.ErrorIs(t, i.Status().LastError, informer.ErrNotList)
				a.Set("")
				time.Sleep(time.Minute)
				w.RequireState(&r)
			})
		})
	}
}

// What a list may be called: by the kind of its objects, "List", or, by the definition of a custom
// resource, otherwise. Its objects tell then, and once they have, an empty one counts too.
func TestRule2ListsOfOtherNames(t *testing.T) {
	const (
		pod    = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"1","namespace":"a","resourceVersion":"2","uid":"u"}}`
		others = 11 * time.Second
	)
	lists := map[string]string{
		"kind first": `{"kind":%[2]q,"apiVersion":"v1","metadata":{"resourceVersion":%[3]q},"items":[%[1]s]}`,
		"kind last":  `{"apiVersion":"v1","items":[%s],"kind":%q,"metadata":{"resourceVersion":%q}}`,
	}
	for _, kind := range []string{"List", "PodList", "Pods"} {
		for name, as := range map[string]runtime.Object{"typed": &corev1.Pod{}, "unstructured": nil, "unstructured pod": harness.ExampleObject("v1", "Pod"), "raw": &informer.RawObject{}} {
			for order, list := range lists {
				t.Run(kind+"/"+name+"/"+order, func(t *testing.T) {
					var a harness.OtherAnswer
					a.Set(fmt.Sprintf(list, pod, kind, "2"))
					harness.Bubble(t, informertest.Options{Wrap: a.Wrap}, func(t *testing.T, w *harness.World) {
						w.CreatePods("a/1")
						var r harness.Recorder
						harness.Running(w, informer.InformerConfig{Handler: &r, ExampleObject: as})
						time.Sleep(others)
						require.Equal(t, []string{"add a/1 initial"}, r.Events())
						a.Set(fmt.Sprintf(list, "", kind, "2"))
						w.Compact()
						w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch", "watch-list"}}, Effect: informertest.ErrorEvent(410), Times: 1})
						time.Sleep(others)
						require.Equal(t, []string{"add a/1 initial", "delete a/1 unknown"}, r.Events())
					})
				})
			}
		}
	}
}

// The lists of other ListerWatchers are told by their Go type, and by their kind if they say one.
func TestRule2WrongListOfAnotherListerWatcher(t *testing.T) {
	kind := func(kind string) *unstructured.UnstructuredList {
		list := &unstructured.UnstructuredList{}
		list.SetKind(kind)
		list.SetResourceVersion("9")
		return list
	}
	typed := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}, Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "1", ResourceVersion: "2"}}}}
	for name, test := range map[string]struct {
		as           runtime.Object
		right, wrong runtime.Object
	}{
		"typed":                {&corev1.Pod{}, typed, &corev1.SecretList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}},
		"another kind":         {&corev1.Pod{}, typed, &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "SecretList"}, ListMeta: metav1.ListMeta{ResourceVersion: "9"}}},
		"no version":           {&corev1.Pod{}, typed, &corev1.PodList{}},
		"unstructured":         {nil, harness.List("5", "", harness.Pod("a/1", "2")), kind("ErrorPage")},
		"unstructured, pods":   {harness.ExampleObject("v1", "Pod"), harness.List("5", "", harness.Pod("a/1", "2")), kind("SecretList")},
		"metadata, of another": {&metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}, Items: []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "1", ResourceVersion: "2"}}}}, &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}},
	} {
		harness.SynctestRun(t, name, func(t *testing.T) {
			lw := &harness.Tap{OnWatch: harness.Watches(harness.Broken(apierrors.NewResourceExpired("old")), harness.Open())}
			lw.OnList = func(_ context.Context, n int, _ metav1.ListOptions) (runtime.Object, error) {
				if n == 2 {
					return test.wrong, nil
				}
				return test.right.DeepCopyObject(), nil
			}
			var r harness.Recorder
			var f harness.Failures
			i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw, Handler: &r, ExampleObject: test.as, ErrorHandler: f.Handle, ListMode: informer.ListModePaged})
			defer harness.Start(i.RunWithContext)()
			time.Sleep(time.Minute)
			require.Equal(t, []string{"add a/1 initial", "sync a/1"}, r.Events())
			errs := f.Errors()
			require.ErrorIs(t, errs[len(errs)-1], informer.ErrNotList)
			require.NoError(t, i.Status().LastError)
		})
	}
}

// A server without resource versions is one that never had any.
func TestListsWithoutVersionsAreComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := [][]unstructured.Unstructured{{*harness.Pod("a/1", "")}, {}}
		lw := &harness.Tap{OnWatch: harness.Watches(func() (watch.Interface, error) { return harness.Stream(true), nil }, harness.Open())}
		lw.OnList = func(_ context.Context, n int, _ metav1.ListOptions) (runtime.Object, error) {
			return &unstructured.UnstructuredList{Items: pods[n-1]}, nil
		}
		var r harness.Recorder
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw, Handler: &r, ErrorHandler: harness.IgnoreErrors, ListMode: informer.ListModePaged})
		defer harness.Start(i.RunWithContext)()
		time.Sleep(time.Minute)
		require.Equal(t, []string{"add a/1 initial", "delete a/1 unknown"}, r.Events())
	})
}
