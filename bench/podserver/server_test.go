package podserver

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/rvinformer/informer/bench/podserver/extra"
)

const (
	testPods   = 2345
	testEvents = 3000
)

var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// reader is one of client-go's clients.
type reader struct {
	name  string
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// readers has a client for each form.
func readers(t *testing.T, config *rest.Config) []reader {
	typed := func(contentType string) reader {
		config := rest.CopyConfig(config)
		config.ContentType = contentType
		pods := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("")
		return reader{contentType,
			func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) }, pods.Watch}
	}
	unstructured := dynamic.NewForConfigOrDie(config).Resource(podResource)
	partial := metadata.NewForConfigOrDie(config).Resource(podResource)
	return []reader{
		typed(runtime.ContentTypeJSON),
		typed(runtime.ContentTypeProtobuf),
		{"dynamic", func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return unstructured.List(ctx, o)
		}, unstructured.Watch},
		{"metadata", func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return partial.List(ctx, o) }, partial.Watch},
		metadataAsJSON(config),
	}
}

// metadataAsJSON asks for what no client of client-go asks for first.
func metadataAsJSON(config *rest.Config) reader {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
			return next.RoundTrip(r)
		})
	})
	pods := dynamic.NewForConfigOrDie(config).Resource(podResource)
	return reader{"metadata as JSON", func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		list, err := pods.List(ctx, o)
		if err == nil && list.GetKind() != "PartialObjectMetadataList" {
			err = fmt.Errorf("a list of kind %s", list.GetKind())
		}
		return list, err
	}, pods.Watch}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// pages lists a set, and calls do with each list and its items. All lists are of the set's version.
func (r reader) pages(t *testing.T, set Options, o metav1.ListOptions, do func(list runtime.Object, items []runtime.Object)) {
	for {
		list, err := r.list(t.Context(), o)
		require.NoError(t, err)
		items, err := meta.ExtractList(list)
		require.NoError(t, err)
		do(list, items)
		m, err := meta.ListAccessor(list)
		require.NoError(t, err)
		require.Equal(t, set.ListVersion(), m.GetResourceVersion())
		if o.Continue = m.GetContinue(); o.Continue == "" {
			return
		}
	}
}

// watchList opens a watch-list, calls do with its initial objects, and reads the bookmark behind
// them.
func (r reader) watchList(t *testing.T, ctx context.Context, set Options, o metav1.ListOptions, objects int, do func(runtime.Object)) watch.Interface {
	o.SendInitialEvents, o.AllowWatchBookmarks, o.ResourceVersionMatch = ptr.To(true), true, metav1.ResourceVersionMatchNotOlderThan
	w, err := r.watch(ctx, o)
	require.NoError(t, err)
	for range objects {
		event := <-w.ResultChan()
		require.Equal(t, watch.Added, event.Type)
		do(event.Object)
	}
	end := <-w.ResultChan()
	require.Equal(t, watch.Bookmark, end.Type)
	m, err := meta.Accessor(end.Object)
	require.NoError(t, err)
	require.Equal(t, "true", m.GetAnnotations()[metav1.InitialEventsAnnotationKey])
	require.Equal(t, set.ListVersion(), m.GetResourceVersion())
	return w
}

// testSet is what most tests are served.
var testSet = Options{Pods: testPods, Events: testEvents}

func started(t *testing.T, set Options) *Server {
	s, err := Start(set)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// seen are the versions of pods by key.
type seen map[string]string

func (s seen) add(t *testing.T, obj runtime.Object) {
	m, err := meta.Accessor(obj)
	require.NoError(t, err)
	require.Len(t, m.GetNamespace()+"/"+m.GetName(), 44)
	require.Len(t, m.GetUID(), 36)
	require.Len(t, m.GetManagedFields(), 2)
	if pod, ok := obj.(*corev1.Pod); ok {
		require.Len(t, pod.Spec.Containers[0].Env, 11)
		require.Equal(t, corev1.PodRunning, pod.Status.Phase)
	}
	s[m.GetNamespace()+"/"+m.GetName()] = m.GetResourceVersion()
}

func TestListsDecode(t *testing.T) {
	s := started(t, testSet)
	for _, r := range readers(t, s.Config()) {
		t.Run(r.name, func(t *testing.T) {
			for _, limit := range []int64{0, 500} {
				pods := seen{}
				r.pages(t, testSet, metav1.ListOptions{Limit: limit}, func(_ runtime.Object, items []runtime.Object) {
					for _, obj := range items {
						pods.add(t, obj)
					}
				})
				require.Len(t, pods, testPods)
			}
			one, err := r.list(t.Context(), metav1.ListOptions{Limit: 1})
			require.NoError(t, err)
			require.Equal(t, 1, meta.LenList(one))
		})
	}
}

func TestWatchListsAndBurstsDecode(t *testing.T) {
	s := started(t, testSet)
	for _, r := range readers(t, s.Config()) {
		t.Run(r.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			pods := seen{}
			w := r.watchList(t, ctx, testSet, metav1.ListOptions{}, testPods, func(obj runtime.Object) { pods.add(t, obj) })
			defer w.Stop()
			require.Len(t, pods, testPods)
			changed := seen{}
			for i := range testEvents {
				event := <-w.ResultChan()
				require.Equal(t, watch.Modified, event.Type)
				changed.add(t, event.Object)
				m, err := meta.Accessor(event.Object)
				require.NoError(t, err)
				require.Equal(t, afterChanges(i+1), m.GetResourceVersion())
			}
			require.Len(t, changed, testPods)
			for key := range changed {
				require.Contains(t, pods, key)
			}
		})
	}
}

func TestAWatchFromAVersionGoesOn(t *testing.T) {
	s := started(t, testSet)
	var versions []string
	for event := range watchBurst(t, s.Config(), afterChanges(testEvents-1)) {
		versions = append(versions, event.Object.(*corev1.Pod).ResourceVersion)
	}
	require.Equal(t, []string{testSet.LastVersion()}, versions)
}

// watchBurst watches from a version. The server ends the watch after its burst.
func watchBurst(t *testing.T, config *rest.Config, since string) <-chan watch.Event {
	w, err := kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient().Get().Resource("pods").
		Param("watch", "true").Param("resourceVersion", since).Param(extra.EndParameter, extra.EndBurst).Watch(t.Context())
	require.NoError(t, err)
	return w.ResultChan()
}

// afterChanges is the version that the n-th change makes.
func afterChanges(n int) string { return strconv.Itoa(listVersion + n) }

// TestAPastIsListedAndWatched holds a server with a past against one without, and
// against what it tells a client that knows the latter.
func TestAPastIsListedAndWatched(t *testing.T) {
	const changed = 23
	set := Options{Pods: testPods, Changed: changed, Events: 2}
	config := started(t, set).Config()
	list, err := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, afterChanges(changed), list.ResourceVersion)
	listed := map[string]string{} // version by key, of those that differ
	for i, pod := range list.Items {
		if before := Pod(i, testPods); pod.ResourceVersion != before.ResourceVersion {
			require.Equal(t, before.UID, pod.UID)
			listed[pod.Namespace+"/"+pod.Name] = pod.ResourceVersion
		}
	}
	require.Len(t, listed, changed)

	watched := func(since string) (keys, versions []string) {
		for event := range watchBurst(t, config, since) {
			require.Equal(t, watch.Modified, event.Type)
			pod := event.Object.(*corev1.Pod)
			keys, versions = append(keys, pod.Namespace+"/"+pod.Name), append(versions, pod.ResourceVersion)
		}
		return keys, versions
	}
	keys, versions := watched(afterChanges(0))
	require.Len(t, keys, changed+set.Events)
	for i, key := range keys[:changed] {
		require.Equal(t, listed[key], versions[i])
	}
	_, versions = watched(list.ResourceVersion)
	require.Equal(t, []string{afterChanges(changed + 1), set.LastVersion()}, versions)
	_, versions = watched(set.LastVersion())
	require.Empty(t, versions)
}

func TestANamespaceIsEmpty(t *testing.T) {
	s := started(t, testSet)
	list, err := kubernetes.NewForConfigOrDie(s.Config()).CoreV1().Pods("team").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, list.Items)
	require.Equal(t, testSet.ListVersion(), list.ResourceVersion)
}

func TestPodIsWhatIsServed(t *testing.T) {
	s := started(t, testSet)
	list, err := kubernetes.NewForConfigOrDie(s.Config()).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, i := range []int{0, 1, testPods - 1} {
		want := Pod(i, testPods)
		want.TypeMeta = metav1.TypeMeta{}
		require.True(t, equality.Semantic.DeepEqual(*want, list.Items[i]), "pod %d", i)
	}
}

func TestPodsAreAsLargeAsPromised(t *testing.T) {
	require.InDelta(t, 4700, forms()[[2]bool{false, false}].templateOf[listed].size(), 150)
	require.InDelta(t, 3100, forms()[[2]bool{true, false}].templateOf[listed].size(), 150)
}

func TestUsage(t *testing.T) {
	f, err := StartFleet([]Options{testSet}, 0, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	before, err := extra.Control(t.Context(), f.Control(), extra.UsagePath)
	require.NoError(t, err)
	_, err = kubernetes.NewForConfigOrDie(f.Servers[0].Config()).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	after, err := extra.Control(t.Context(), f.Control(), extra.UsagePath)
	require.NoError(t, err)
	require.Greater(t, after.Bytes-before.Bytes, int64(3000*testPods))
	require.Equal(t, int64(1), after.Requests-before.Requests)
	require.GreaterOrEqual(t, after.CPU, before.CPU)
}

// A pod is found by its name, as an informer asks for one that it knows.
func TestFieldSelectorFindsAPod(t *testing.T) {
	s, err := Start(Options{Pods: 20, Plain: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	pods := kubernetes.NewForConfigOrDie(s.Config()).CoreV1().Pods("")
	all, err := pods.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, pod := range all.Items {
		found, err := pods.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + pod.Name + ",metadata.namespace=" + pod.Namespace})
		require.NoError(t, err)
		require.Len(t, found.Items, 1)
		require.Equal(t, pod.UID, found.Items[0].UID)
	}
	none, err := pods.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=a,metadata.namespace=b"})
	require.NoError(t, err)
	require.Empty(t, none.Items)
	_, err = pods.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=a"})
	require.ErrorContains(t, err, "only a name and a namespace are known here")
}
