package controllerruntime_test

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
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/rvinformer/informer/controllerruntime"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
)

func nodeName(obj client.Object) []string { return []string{obj.(*corev1.Pod).Spec.NodeName} }

// podLists are lists of 100 pods in one namespace and 30 in another, with how many objects they have.
var podLists = map[string]struct {
	opts []client.ListOption
	n    int
}{
	"all":                          {nil, 130},
	"namespace":                    {[]client.ListOption{client.InNamespace("two")}, 30},
	"labels":                       {[]client.ListOption{client.MatchingLabels{"team": "blue"}}, 13},
	"labels in a namespace":        {[]client.ListOption{client.MatchingLabels{"team": "blue"}, client.InNamespace("one")}, 10},
	"index":                        {[]client.ListOption{client.MatchingFields{"spec.nodeName": "node-two"}}, 30},
	"two indexes":                  {[]client.ListOption{client.MatchingFields{"spec.nodeName": "node-two", "n": "7"}}, 1},
	"two indexes, no object":       {[]client.ListOption{client.MatchingFields{"spec.nodeName": "node-two", "n": "77"}}, 0},
	"index in a namespace":         {[]client.ListOption{client.MatchingFields{"n": "7"}, client.InNamespace("one")}, 1},
	"index, labels, namespace":     {[]client.ListOption{client.MatchingFields{"n": "20"}, client.MatchingLabels{"team": "blue"}, client.InNamespace("two")}, 1},
	"limit":                        {[]client.ListOption{client.Limit(7)}, 7},
	"limit beyond one namespace":   {[]client.ListOption{client.Limit(103)}, 103},
	"limit of objects that match":  {[]client.ListOption{client.Limit(3), client.MatchingLabels{"team": "blue"}}, 3},
	"nothing":                      {[]client.ListOption{client.MatchingLabels{"team": "red"}}, 0},
	"limit of more than there are": {[]client.ListOption{client.Limit(99), client.InNamespace("two")}, 30},
}

func TestListDecodesNothingButWhatMatches(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.pods("one", 100)
		b.pods("two", 30)
		b.make(cache.Options{}, controllerruntime.Options{Objects: objectcache.Options{HotBytes: -1}})
		require.NoError(t, b.cache.IndexField(t.Context(), &corev1.Pod{}, "spec.nodeName", nodeName))
		require.NoError(t, b.cache.IndexField(t.Context(), &corev1.Pod{}, "n", func(obj client.Object) []string { return []string{obj.GetLabels()["n"]} }))
		b.run()
		for name, list := range podLists {
			store := b.store(&corev1.Pod{})
			before := store.Decoded()
			var pods corev1.PodList
			require.NoError(t, b.cache.List(t.Context(), &pods, list.opts...), name)
			require.Len(t, pods.Items, list.n, name)
			require.NotNil(t, pods.Items, name)
			require.EqualValues(t, list.n, store.Decoded()-before, "%s: objects decoded", name)
		}
	})
}

// encodedAndDecoded runs test over a cache of one pod that keeps its objects encoded, and over one that
// keeps them decoded.
func encodedAndDecoded(t *testing.T, test func(t *testing.T, b *bench)) {
	for name, own := range map[string]controllerruntime.Options{"encoded": {}, "decoded": keptDecoded} {
		bubbleRun(t, name, func(t *testing.T, b *bench) {
			b.pods("one", 1)
			b.start(cache.Options{}, own)
			test(t, b)
		})
	}
}

func TestEachFormIsReadWithItsKind(t *testing.T) {
	encodedAndDecoded(t, func(t *testing.T, b *bench) {
		key := client.ObjectKey{Namespace: "one", Name: "pod-0"}
		for range 2 { // the second time from what is kept decoded
			var typed corev1.Pod
			typed.Spec.Hostname = "of before"
			require.NoError(t, b.cache.Get(t.Context(), key, &typed))
			require.Equal(t, podKind, typed.GroupVersionKind())
			require.Equal(t, "node-one", typed.Spec.NodeName)
			require.Empty(t, typed.Spec.Hostname, "what was in the object before")

			var loose unstructured.Unstructured
			loose.SetGroupVersionKind(podKind)
			require.NoError(t, b.cache.Get(t.Context(), key, &loose))
			require.Equal(t, podKind, loose.GroupVersionKind())
			nodeName, _, _ := unstructured.NestedString(loose.Object, "spec", "nodeName")
			require.Equal(t, "node-one", nodeName)

			var metadata metav1.PartialObjectMetadata
			metadata.SetGroupVersionKind(podKind)
			require.NoError(t, b.cache.Get(t.Context(), key, &metadata))
			require.Equal(t, podKind, metadata.GroupVersionKind())
			require.Equal(t, "pod-0", metadata.Labels["name"])
			metadata.Labels["name"] = "changed by its reader"
		}
		var typed corev1.PodList
		require.NoError(t, b.cache.List(t.Context(), &typed))
		require.Equal(t, podKind, typed.Items[0].GroupVersionKind())
		require.Equal(t, "continue-not-supported", typed.Continue)

		var loose unstructured.UnstructuredList
		loose.SetGroupVersionKind(podKind.GroupVersion().WithKind("PodList"))
		require.NoError(t, b.cache.List(t.Context(), &loose))
		require.Equal(t, podKind, loose.Items[0].GroupVersionKind())

		var metadata metav1.PartialObjectMetadataList
		metadata.SetGroupVersionKind(podKind.GroupVersion().WithKind("PodList"))
		require.NoError(t, b.cache.List(t.Context(), &metadata))
		require.Equal(t, podKind, metadata.Items[0].GroupVersionKind())
		require.Equal(t, "pod-0", metadata.Items[0].Labels["name"])
	})
}

func TestReaderMayChangeWhatItRead(t *testing.T) {
	encodedAndDecoded(t, func(t *testing.T, b *bench) {
		key := client.ObjectKey{Namespace: "one", Name: "pod-0"}
		for range 3 {
			var p corev1.Pod
			require.NoError(t, b.cache.Get(t.Context(), key, &p))
			require.Equal(t, "pod-0", p.Labels["name"])
			p.Labels["name"] = "changed"
			var all corev1.PodList
			require.NoError(t, b.cache.List(t.Context(), &all))
			require.Equal(t, "pod-0", all.Items[0].Labels["name"])
			all.Items[0].Labels["name"] = "changed"
		}
	})
}

func TestUnsafeReadersShareObjects(t *testing.T) {
	yes := true
	for name, c := range map[string]struct {
		opts cache.Options
		get  []client.GetOption
		list []client.ListOption
	}{
		"by option of the cache": {opts: cache.Options{DefaultUnsafeDisableDeepCopy: &yes}},
		"by kind":                {opts: cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {UnsafeDisableDeepCopy: &yes}}}},
		"by read":                {get: []client.GetOption{client.UnsafeDisableDeepCopy}, list: []client.ListOption{client.UnsafeDisableDeepCopy}},
	} {
		bubbleRun(t, name, func(t *testing.T, b *bench) {
			b.pods("one", 3)
			b.start(c.opts, controllerruntime.Options{})
			var first, second corev1.Pod
			key := client.ObjectKey{Namespace: "one", Name: "pod-1"}
			require.NoError(t, b.cache.Get(t.Context(), key, &first, c.get...))
			require.NoError(t, b.cache.Get(t.Context(), key, &second, c.get...))
			require.Equal(t, podKind, second.GroupVersionKind())
			first.Labels["shared"] = "yes"
			require.Equal(t, "yes", second.Labels["shared"])
			before := b.store(&corev1.Pod{}).Decoded()
			var listed corev1.PodList
			require.NoError(t, b.cache.List(t.Context(), &listed, append(c.list, client.MatchingLabels{"name": "pod-1"})...))
			require.Equal(t, "yes", listed.Items[0].Labels["shared"])
			require.Equal(t, podKind, listed.Items[0].GroupVersionKind())
			require.Equal(t, before, b.store(&corev1.Pod{}).Decoded(), "the object was decoded already")
		})
	}
}

func TestReadsFailAsInControllerRuntime(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.pods("one", 1)
		b.make(cache.Options{DefaultNamespaces: map[string]cache.Config{"one": {}, "two": {}}}, controllerruntime.Options{})
		var p corev1.Pod
		err := b.cache.Get(t.Context(), client.ObjectKey{Namespace: "one", Name: "pod-0"}, &p)
		require.ErrorAs(t, err, new(*cache.ErrCacheNotStarted))
		b.run()

		err = b.cache.Get(t.Context(), client.ObjectKey{Namespace: "one", Name: "missing"}, &p)
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		require.EqualError(t, err, `Pod "missing" not found`)
		err = b.cache.Get(t.Context(), client.ObjectKey{Namespace: "three", Name: "pod-0"}, &p)
		require.EqualError(t, err, "unable to get: three/pod-0 because of unknown namespace for the cache")

		var all corev1.PodList
		err = b.cache.List(t.Context(), &all, client.InNamespace("three"))
		require.EqualError(t, err, "unable to list: three because of unknown namespace for the cache")
		err = b.cache.List(t.Context(), &all, client.Continue("token"))
		require.EqualError(t, err, "continue list option is not supported by the cache")
		for _, selector := range []fields.Selector{fields.OneTermNotEqualSelector("a", "b"), fields.Everything()} {
			err = b.cache.List(t.Context(), &all, client.MatchingFieldsSelector{Selector: selector})
			require.EqualError(t, err, "non-exact field matches are not supported by the cache")
		}
		err = b.cache.List(t.Context(), &all, client.MatchingFields{"a": "b"})
		require.EqualError(t, err, "Index with name field:a does not exist")
		require.Error(t, b.cache.Get(t.Context(), client.ObjectKey{Name: "x"}, &unstructured.Unstructured{}), "without a kind")
	})
}

func TestClusterScopedKindsIgnoreNamespaces(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.create(nodeResource, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
		b.start(cache.Options{DefaultNamespaces: map[string]cache.Config{"one": {}, "two": {}}}, controllerruntime.Options{})
		var node corev1.Node
		require.NoError(t, b.cache.Get(t.Context(), client.ObjectKey{Namespace: "any", Name: "n"}, &node))
		var nodes corev1.NodeList
		require.NoError(t, b.cache.List(t.Context(), &nodes))
		require.Len(t, nodes.Items, 1)
	})
}

func TestListOfPointersIsFilled(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		scheme := runtime.NewScheme()
		// The Go type has another name than the kind.
		scheme.AddKnownTypeWithName(widgetKind, &controllertest.UnconventionalListType{})
		scheme.AddKnownTypeWithName(widgetKind.GroupVersion().WithKind("WidgetList"), &controllertest.UnconventionalListTypeList{})
		metav1.AddToGroupVersion(scheme, widgetKind.GroupVersion())
		b.create(widgetResource, &controllertest.UnconventionalListType{
			TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "one", Name: "w"},
			Spec:       "spec",
		})
		b.start(cache.Options{Scheme: scheme}, controllerruntime.Options{})
		var list controllertest.UnconventionalListTypeList
		require.NoError(t, b.cache.List(t.Context(), &list))
		require.Len(t, list.Items, 1)
		require.Equal(t, "spec", list.Items[0].Spec)
		require.Equal(t, widgetKind, list.Items[0].GroupVersionKind())
	})
}

func TestReaderFailsWithoutInformer(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.pods("one", 1)
		b.start(cache.Options{ReaderFailOnMissingInformer: true}, controllerruntime.Options{})
		b.server.ResetRequests()
		missing := &cache.ErrResourceNotCached{}
		require.ErrorAs(t, b.cache.List(t.Context(), &corev1.PodList{}), &missing)
		require.Equal(t, podKind, missing.GVK)
		require.ErrorAs(t, b.cache.Get(t.Context(), client.ObjectKey{Namespace: "one", Name: "pod-0"}, &corev1.Pod{}), &missing)
		require.Empty(t, b.server.Requests())

		_, err := b.cache.GetInformer(t.Context(), &corev1.Pod{})
		require.NoError(t, err)
		var pods corev1.PodList
		require.NoError(t, b.cache.List(t.Context(), &pods))
		require.Equal(t, []string{"one/pod-0"}, names(pods))
		require.NoError(t, b.cache.RemoveInformer(t.Context(), &corev1.Pod{}))
		require.ErrorAs(t, b.cache.List(t.Context(), &pods), &missing)
	})
}

func TestReaderWaitsUntilTheInformerHasSynced(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.pods("one", 1)
		heal := b.inject("list,watch,watch-list 403")
		b.start(cache.Options{}, controllerruntime.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := b.cache.List(ctx, &corev1.PodList{})
		require.True(t, apierrors.IsTimeout(err), "%v", err)
		require.ErrorContains(t, err, "failed waiting for *v1.Pod Informer to sync")
		heal()
		var pods corev1.PodList
		require.NoError(t, b.cache.List(t.Context(), &pods))
		require.Len(t, pods.Items, 1)
	})
}

func TestReadOfAKindWithoutListFailsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.server.AddResource(informertest.Resource{GroupVersionResource: podResource.GroupVersion().WithResource("bindings"), Kind: "Binding", Namespaced: true})
		b.start(cache.Options{}, controllerruntime.Options{})
		began := time.Now()
		err := b.cache.Get(t.Context(), client.ObjectKey{Namespace: "one", Name: "pod-0"}, &corev1.Binding{})
		require.True(t, runtime.IsNotRegisteredError(err), "%v", err)
		require.ErrorContains(t, err, `"BindingList"`)
		_, err = b.cache.GetInformer(t.Context(), &corev1.Binding{})
		require.True(t, runtime.IsNotRegisteredError(err), "%v", err)
		require.Zero(t, time.Since(began))
	})
}

func TestWaitSaysThatTheServerListsNoSuchKind(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		defer b.inject("list,watch,watch-list 405")()
		b.start(cache.Options{}, controllerruntime.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := b.cache.List(ctx, &corev1.PodList{})
		require.True(t, apierrors.IsTimeout(err), "%v", err)
		require.ErrorContains(t, err, "failed waiting for *v1.Pod Informer to sync: ")
		require.ErrorContains(t, err, "405")
	})
}

// A read waits for the informer to sync. If it has synced, it may also have ended.
func TestSyncedInformersAreReadOnceStopped(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.pods("namespace-1", 1)
		b.start(inMany(), controllerruntime.Options{})
		i, err := b.cache.GetInformer(t.Context(), &corev1.Pod{}, cache.BlockUntilSynced(false))
		require.NoError(t, err)
		synctest.Wait()
		require.True(t, i.HasSynced())
		b.stop()
		require.True(t, i.IsStopped())
		var pods corev1.PodList
		require.NoError(t, b.cache.List(t.Context(), &pods))
		require.Equal(t, []string{"namespace-1/pod-0"}, names(pods))
	})
}

func TestTransformedObjectsAreStored(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.pods("one", 2)
		b.start(cache.Options{
			DefaultTransform: func(obj any) (any, error) {
				obj.(client.Object).SetAnnotations(map[string]string{"by": "default"})
				return obj, nil
			},
			ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: func(obj any) (any, error) {
				obj.(client.Object).SetAnnotations(map[string]string{"by": "kind"})
				return obj, nil
			}}},
		}, controllerruntime.Options{})
		var pods corev1.PodList
		require.NoError(t, b.cache.List(t.Context(), &pods))
		require.Equal(t, "kind", pods.Items[1].Annotations["by"])
		b.create(nodeResource, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
		var node corev1.Node
		require.NoError(t, b.cache.Get(t.Context(), client.ObjectKey{Name: "n"}, &node))
		require.Equal(t, "default", node.Annotations["by"])
	})
}

func TestPrunedFieldsAreNotStored(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		p := pod("one", "p")
		p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", Operation: "Update", APIVersion: "v1"}}
		b.create(podResource, p)
		b.create(nodeResource, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{"a": "1"}}})
		b.start(cache.Options{}, controllerruntime.Options{
			Objects:  objectcache.Options{Prune: []string{"metadata.managedFields"}},
			ByObject: map[client.Object]objectcache.Options{&corev1.Node{}: {Prune: []string{"metadata.annotations"}}},
		})
		var read corev1.Pod
		require.NoError(t, b.cache.Get(t.Context(), client.ObjectKey{Namespace: "one", Name: "p"}, &read))
		require.Empty(t, read.ManagedFields)
		require.Equal(t, "node-one", read.Spec.NodeName)
		var node corev1.Node
		require.NoError(t, b.cache.Get(t.Context(), client.ObjectKey{Name: "n"}, &node))
		require.Empty(t, node.Annotations)
	})
}

// Keep of a kind holds for each form in which it is read, as far as the form has the fields.
func TestMetadataIsReadBesideFieldsThatOnlyObjectsHave(t *testing.T) {
	for name, keep := range map[string][]string{
		"some of the metadata": {"metadata.labels", "status.addresses"},
		"none of the metadata": {"status.addresses"},
	} {
		bubbleRun(t, name, func(t *testing.T, b *bench) {
			one := map[string]string{"a": "1"}
			b.create(nodeResource, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: one, Annotations: one},
				Status: corev1.NodeStatus{Phase: corev1.NodeRunning, Addresses: []corev1.NodeAddress{{Address: "10.0.0.1"}}}})
			b.start(cache.Options{}, controllerruntime.Options{ByObject: map[client.Object]objectcache.Options{&corev1.Node{}: {Keep: keep}}})
			key := client.ObjectKey{Name: "n"}
			metadata := &metav1.PartialObjectMetadata{}
			metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
			require.NoError(t, b.cache.Get(t.Context(), key, metadata))
			require.Equal(t, len(keep) == 2, metadata.Labels != nil)
			require.Empty(t, metadata.Annotations)
			var node corev1.Node
			require.NoError(t, b.cache.Get(t.Context(), key, &node))
			require.Equal(t, metadata.Labels, node.Labels)
			require.Len(t, node.Status.Addresses, 1)
			require.Empty(t, node.Status.Phase)
		})
	}
}

func ExampleNewCacheWithOptions() {
	newCache := controllerruntime.NewCacheWithOptions(controllerruntime.Options{
		Objects: objectcache.Options{
			Prune:    []string{"metadata.managedFields"},
			HotBytes: 32 << 20, // of decoded objects, for each informer
		},
	})
	fmt.Printf("%T\n", newCache) // give it to manager.Options.NewCache
	// Output: cache.NewCacheFunc
}
