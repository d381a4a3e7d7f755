package podserver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/internal/testkit/samples"
)

// sampleReaders are clients of all that samples are served as.
func sampleReaders(t *testing.T, config *rest.Config) map[string]reader {
	all := map[string]reader{}
	for _, r := range readers(t, config)[:3] {
		all[r.name] = r
	}
	releases := dynamic.NewForConfigOrDie(config).Resource(samples.ReleaseResource)
	all["releases"] = reader{"releases", func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return releases.List(ctx, o)
	}, releases.Watch}
	return all
}

// sample is object i as a reader sees it.
func sample(t *testing.T, form string, i int) runtime.Object {
	if form == "releases" {
		return SampleCluster.Release(i, 0)
	}
	pod := SampleCluster.Pod(i, 0)
	if form != "dynamic" {
		return pod
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	require.NoError(t, err)
	return &unstructured.Unstructured{Object: object}
}

func requireSample(t *testing.T, form string, i int, got runtime.Object) {
	want := sample(t, form, i)
	w, err := meta.Accessor(want)
	require.NoError(t, err)
	g, err := meta.Accessor(got)
	require.NoError(t, err)
	require.Equal(t, w.GetResourceVersion(), g.GetResourceVersion())
	if form != "dynamic" { // which has fields without a value in another way
		got.GetObjectKind().SetGroupVersionKind(want.GetObjectKind().GroupVersionKind())
		require.True(t, equality.Semantic.DeepEqual(want, got), "object %d", i)
	}
}

func TestSamplesAreListedAndWatched(t *testing.T) {
	set := Options{Pods: 1203, Samples: true}
	s := started(t, set)
	for name, r := range sampleReaders(t, s.Config()) {
		t.Run(name, func(t *testing.T) {
			i := 0
			r.pages(t, set, metav1.ListOptions{Limit: 500}, func(_ runtime.Object, items []runtime.Object) {
				for _, obj := range items {
					requireSample(t, name, i, obj)
					i++
				}
			})
			require.Equal(t, set.Pods, i)

			i = 0
			r.watchList(t, t.Context(), set, metav1.ListOptions{}, set.Pods, func(obj runtime.Object) {
				requireSample(t, name, i, obj)
				i++
			}).Stop()
		})
	}
}

func TestSamplesHaveNoMetadataAlone(t *testing.T) {
	s := started(t, Options{Pods: 1, Samples: true})
	_, err := readers(t, s.Config())[4].list(t.Context(), metav1.ListOptions{})
	require.ErrorContains(t, err, "no form of the Accept header is known")
}

func TestSampleOptions(t *testing.T) {
	_, err := Start(Options{Pods: 1, Samples: true, Events: 1})
	require.ErrorContains(t, err, "samples do not change")
	s := started(t, Options{Pods: 2, Samples: true, Resources: []string{"services"}})
	list, err := dynamic.NewForConfigOrDie(s.Config()).Resource(schema.GroupVersionResource{Version: "v1", Resource: "services"}).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 2)
}
