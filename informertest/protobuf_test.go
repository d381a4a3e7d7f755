package informertest_test

import (
	"bytes"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/informertest"
)

const (
	protobufType        = runtime.ContentTypeProtobuf
	protobufAsMetadata  = protobufType + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	protobufAsMetadatas = protobufType + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// inProtobuf configures a client that writes protobuf and accepts nothing else.
func inProtobuf(s *informertest.Server) *rest.Config {
	config := s.Config()
	config.ContentType, config.AcceptContentTypes = protobufType, protobufType
	return config
}

// clients returns typed clients of one server. The second speaks protobuf only.
func clients(t *testing.T, s *informertest.Server) (inJSON, inProto kubernetes.Interface) {
	t.Helper()
	inJSON, err := kubernetes.NewForConfig(s.Config())
	require.NoError(t, err)
	inProto, err = kubernetes.NewForConfig(inProtobuf(s))
	require.NoError(t, err)
	return inJSON, inProto
}

func TestTypedClientInProtobuf(t *testing.T) {
	s := start(t, informertest.Options{})
	inJSON, inProto := clients(t, s)
	ctx := t.Context()
	watchJSON, err := inJSON.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	defer watchJSON.Stop()
	watchProto, err := inProto.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	defer watchProto.Stop()

	in := inProto.CoreV1().Pods("a")
	for _, name := range []string{"1", "2", "3"} {
		made, err := in.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"l": "v"}},
			Spec:       corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.NotEmpty(t, made.UID)
		require.False(t, made.CreationTimestamp.IsZero())
	}
	pod, err := in.Get(ctx, "2", metav1.GetOptions{})
	require.NoError(t, err)
	stale := pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod, err = in.Update(ctx, pod, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.PodRunning, pod.Status.Phase)
	_, err = in.Update(ctx, stale, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), err)
	err = in.Delete(ctx, "3", *metav1.NewPreconditionDeleteOptions("another"))
	require.True(t, apierrors.IsConflict(err), err)
	require.NoError(t, in.Delete(ctx, "3", metav1.DeleteOptions{}))
	_, err = in.Get(ctx, "3", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), err)

	for _, opts := range []metav1.ListOptions{{}, {Limit: 1}, {LabelSelector: "none"}} {
		want, err := inJSON.CoreV1().Pods("").List(ctx, opts)
		require.NoError(t, err)
		got, err := inProto.CoreV1().Pods("").List(ctx, opts)
		require.NoError(t, err)
		require.Equal(t, want.ListMeta, got.ListMeta)
		require.Len(t, got.Items, len(want.Items))
		for i := range want.Items {
			require.Equal(t, want.Items[i], got.Items[i])
		}
	}
	for _, kind := range []watch.EventType{watch.Added, watch.Added, watch.Added, watch.Modified, watch.Deleted} {
		want, got := <-watchJSON.ResultChan(), <-watchProto.ResultChan()
		require.Equal(t, kind, want.Type)
		require.Equal(t, kind, got.Type)
		// Only JSON carries kind and apiVersion inside the object.
		want.Object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		got.Object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		require.Equal(t, want.Object, got.Object)
	}

	_, err = inProto.AppsV1().Deployments("a").Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	all, err := inProto.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, all.Items, 1)
}

// TestProtobufWire holds whole documents against what apimachinery's serializer makes of the typed
// objects.
func TestProtobufWire(t *testing.T) {
	s := five(t)
	_, err := s.Create(widgets, widget("a", "1", 7))
	require.NoError(t, err)
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	same := func(path, accept string, want runtime.Object) {
		t.Helper()
		resp := open(t, s, path, values("limit", "2"), accept)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.Equal(t, protobufType, resp.Header.Get("Content-Type"))
		var got, expected bytes.Buffer
		_, err := got.ReadFrom(resp.Body)
		require.NoError(t, err)
		require.NoError(t, serializer.Encode(want, &expected))
		require.Equal(t, expected.Bytes(), got.Bytes())
	}
	inJSON, _ := clients(t, s)
	metadatas, err := metadata.NewForConfig(s.Config())
	require.NoError(t, err)

	maps, err := inJSON.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{Limit: 2})
	require.NoError(t, err)
	maps.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	same(configMapsPath, protobufType, maps)
	none := &corev1.SecretList{TypeMeta: metav1.TypeMeta{Kind: "SecretList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	same("/api/v1/secrets", protobufType, none)
	one := maps.Items[0].DeepCopy()
	one.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	same("/api/v1/namespaces/a/configmaps/1", protobufType, one)

	partials, err := metadatas.Resource(widgets).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, partials.Items, 1)
	partials.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList"))
	same(widgetsPath, protobufAsMetadatas, partials)
	partial := partials.Items[0].DeepCopy()
	partial.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	same(widgetsPath+"/1", protobufAsMetadata, partial)
}

func TestMetadataClientGetsProtobuf(t *testing.T) {
	s := start(t, informertest.Options{})
	made, err := s.Create(widgets, widget("a", "1", 7))
	require.NoError(t, err)
	client, err := metadata.NewForConfig(s.Config())
	require.NoError(t, err)
	all, err := client.Resource(widgets).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, made.GetUID(), all.Items[0].UID)
	one, err := client.Resource(widgets).Namespace("a").Get(t.Context(), "1", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, all.Items[0].ObjectMeta, one.ObjectMeta)
	w, err := client.Resource(widgets).Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer w.Stop()
	require.Equal(t, one.ObjectMeta, (<-w.ResultChan()).Object.(*metav1.PartialObjectMetadata).ObjectMeta)

	for _, r := range s.Requests() {
		resp := open(t, s, r.Path, values("watch", strconv.FormatBool(r.Options.Watch)), r.Accept)
		require.Contains(t, resp.Header.Get("Content-Type"), protobufType, r.Verb)
	}
}

// accepting returns a configuration whose clients send another Accept header than they would.
func accepting(s *informertest.Server, accept string) *rest.Config {
	config := s.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return header{next, accept} })
	return config
}

type header struct {
	next   http.RoundTripper
	accept string
}

func (h header) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Accept", h.accept)
	return h.next.RoundTrip(req)
}

func TestCustomResourcesHaveNoProtobuf(t *testing.T) {
	gadgets := informertest.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "gadgets"}, Kind: "Gadget"}
	s := start(t, informertest.Options{})
	s.AddResource(gadgets) // not custom, but of no known type
	_, err := s.Create(widgets, widget("a", "1", 7))
	require.NoError(t, err)
	for gvr, n := range map[schema.GroupVersionResource]int{widgets: 1, gadgets.GroupVersionResource: 0} {
		client, err := dynamic.NewForConfig(accepting(s, protobufType+",application/json"))
		require.NoError(t, err)
		all, err := client.Resource(gvr).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, all.Items, n)
		w, err := client.Resource(gvr).Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		w.Stop()
		for _, watch := range []string{"false", "true"} {
			resp := open(t, s, "/apis/"+gvr.Group+"/v1/"+gvr.Resource, values("watch", watch), protobufType)
			require.Equal(t, http.StatusNotAcceptable, resp.StatusCode)
		}
	}
}

func TestWatchListInProtobuf(t *testing.T) {
	s := five(t)
	_, client := clients(t, s)
	yes := true
	w, err := client.CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
	})
	require.NoError(t, err)
	defer w.Stop()
	for range 5 {
		e := <-w.ResultChan()
		require.Equal(t, watch.Added, e.Type)
		require.NotEmpty(t, e.Object.(*corev1.ConfigMap).Data)
	}
	end := <-w.ResultChan()
	require.Equal(t, watch.Bookmark, end.Type)
	bookmark := end.Object.(*corev1.ConfigMap)
	require.Equal(t, "6", bookmark.ResourceVersion)
	require.Equal(t, map[string]string{metav1.InitialEventsAnnotationKey: "true"}, bookmark.Annotations)
	create(t, s, configMap("c", "live", "y"))
	require.Equal(t, "live", (<-w.ResultChan()).Object.(*corev1.ConfigMap).Name)

	resp := open(t, s, configMapsPath, values("watch", "1"), protobufType)
	require.Equal(t, protobufType+";stream=watch", resp.Header.Get("Content-Type"))
	s.Compact()
	old, err := client.CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: "3"})
	require.NoError(t, err)
	defer old.Stop()
	e := <-old.ResultChan()
	require.Equal(t, watch.Error, e.Type)
	require.True(t, apierrors.IsResourceExpired(apierrors.FromObject(e.Object)), e.Object)
	_, open := <-old.ResultChan()
	require.False(t, open)
}

func TestProtobufLosesWhatTheTypeHasNot(t *testing.T) {
	s := start(t, informertest.Options{})
	_, err := s.Create(pods, &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "a", "name": "1"}, "data": "created", "spec": map[string]any{"nodeName": "n", "NodeName": "m"},
	}})
	require.NoError(t, err)
	_, client := clients(t, s)
	pod, err := client.CoreV1().Pods("a").Get(t.Context(), "1", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.PodSpec{NodeName: "n"}, pod.Spec)
}

func TestObjectsThatDoNotFitTheirType(t *testing.T) {
	s := start(t, informertest.Options{})
	create(t, s, configMap("a", "1", "good"))
	_, err := s.Create(configMaps, &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "a", "name": "2"}, "data": "no map",
	}})
	require.NoError(t, err)
	_, client := clients(t, s)
	in := client.CoreV1().ConfigMaps("a")
	refused := func(err error) {
		t.Helper()
		require.True(t, apierrors.IsInternalError(err), err)
		require.ErrorContains(t, err, "the stored ConfigMap a/2 cannot be written in protobuf: it is no *v1.ConfigMap: json: ")
	}
	_, err = in.Get(t.Context(), "1", metav1.GetOptions{})
	require.NoError(t, err)
	_, err = in.Get(t.Context(), "2", metav1.GetOptions{})
	refused(err)
	_, err = in.List(t.Context(), metav1.ListOptions{})
	refused(err)
	w, err := in.Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer w.Stop()
	require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
	e := <-w.ResultChan()
	require.Equal(t, watch.Error, e.Type)
	refused(apierrors.FromObject(e.Object))
	_, open := <-w.ResultChan()
	require.False(t, open)

	// JSON has no types, and all have metadata.
	whole, status := list(t, s, "limit", "1")
	require.Nil(t, status)
	require.Len(t, whole.Items, 1)
	for _, accept := range []string{"", protobufAsMetadatas} {
		code, body := ask(t, s, configMapsPath, nil, accept)
		require.Equal(t, http.StatusOK, code, body)
	}
}
