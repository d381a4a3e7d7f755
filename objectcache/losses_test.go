package objectcache_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
)

// Widget is a typed custom resource with lists and maps on several levels.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	hollowPart        `json:",inline"`
	Parts             []hollowPart             `json:"parts,omitempty"`
	ByName            map[string][]*hollowPart `json:"byName,omitempty"`
	Here              *hollowPart              `json:"here,omitempty"`
}

type hollowPart struct {
	List  []string          `json:"list,omitempty"`
	Map   map[string]string `json:"map,omitempty"`
	Bytes []byte            `json:"bytes,omitempty"`
	Big   uint64            `json:"big,omitempty"`
}

func (h *Widget) DeepCopyObject() runtime.Object { c := *h; return &c }

// noError fails the test on each error.
func noError(t *testing.T) informer.WatchErrorHandler {
	return func(_ *informer.Reflector, err error) { assert.NoError(t, err) }
}

// kept is what client-go's cache and ours have of what lw lists, behind the same transform.
func kept(t *testing.T, theirs, ours cache.ListerWatcher, example runtime.Object, transform cache.TransformFunc, key string) (want, got any) {
	t.Helper()
	reference := cache.NewSharedIndexInformer(theirs, example, 0, nil)
	require.NoError(t, reference.SetTransform(transform))
	i := newInformer(ours, example, objectcache.Options{Transform: transform, ErrorHandler: noError(t)})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { reference.RunWithContext(ctx) })
	running.Go(func() { i.RunWithContext(ctx) })
	synctest.Wait()
	want, exists, err := reference.GetStore().GetByKey(key)
	require.NoError(t, err)
	require.True(t, exists)
	got, exists, err = i.GetStore().GetByKey(key)
	require.NoError(t, err)
	require.True(t, exists)
	cancel()
	running.Wait()
	return want, got
}

// Empty lists and maps come back from behind a Transform as from client-go's cache: not nil.
func TestEmptyListsAndMapsStayBehindTransform(t *testing.T) {
	same := func(obj any) (any, error) { return obj, nil }
	empty := func() map[string]any {
		return map[string]any{"list": []any{}, "map": map[string]any{}, "bytes": "", "big": int64(1 << 62)}
	}
	widget := empty()
	widget["apiVersion"], widget["kind"] = "example.com/v1", "Widget"
	widget["metadata"] = map[string]any{"namespace": "a", "name": "b", "labels": map[string]any{}, "finalizers": []any{}}
	widget["parts"] = []any{empty(), map[string]any{}}
	widget["byName"] = map[string]any{"x": []any{empty(), nil}, "y": []any{}}
	widget["here"] = empty()
	opts := informertest.Options{}

	bubbleRun(t, "unstructured", opts, func(t *testing.T, w *world) {
		_, err := w.Create(widgetsResource, &unstructured.Unstructured{Object: widget})
		require.NoError(t, err)
		client, err := dynamic.NewForConfig(w.Config())
		require.NoError(t, err)
		lists, err := informer.NewDynamicListerWatcherFactory(w.Config())
		require.NoError(t, err)
		want, got := kept(t, &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return client.Resource(widgetsResource).List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return client.Resource(widgetsResource).Watch(ctx, o)
			},
		}, lists.ForResource("", widgetsResource), &unstructured.Unstructured{}, same, "a/b")
		require.Equal(t, want, got)
		require.Equal(t, map[string]any{}, got.(*unstructured.Unstructured).Object["map"])
	})
	bubbleRun(t, "custom", opts, func(t *testing.T, w *world) {
		created, err := w.Create(widgetsResource, &unstructured.Unstructured{Object: widget})
		require.NoError(t, err)
		want := &Widget{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(created.Object, want))
		want.TypeMeta = metav1.TypeMeta{}
		require.Equal(t, []string{}, want.List)
		lists, err := informer.NewDynamicListerWatcherFactory(w.Config())
		require.NoError(t, err)
		i := newInformer(lists.ForResource("", widgetsResource), &Widget{}, objectcache.Options{Transform: same, ErrorHandler: noError(t)})
		defer w.run(i)()
		got, _, err := i.GetStore().GetByKey("a/b")
		require.NoError(t, err)
		want.Bytes, want.Parts[0].Bytes, want.ByName["x"][0].Bytes, want.Here.Bytes = []byte{}, []byte{}, []byte{}, []byte{}
		require.Equal(t, want, got)
		if s := i.Store(); s != nil {
			u := &unstructured.Unstructured{}
			_, err = s.GetInto("a/b", u)
			require.NoError(t, err)
			require.Equal(t, "Widget", u.GetKind())
		}
	})
	emptied := func(obj any) (any, error) {
		pod := obj.(*corev1.Pod)
		pod.Annotations, pod.Spec.Tolerations, pod.Spec.Volumes = map[string]string{}, []corev1.Toleration{}, nil
		return pod, nil
	}
	for _, content := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		bubbleRun(t, content, opts, func(t *testing.T, w *world) {
			w.create("a/b")
			config := w.Config()
			config.ContentType = content
			client, err := kubernetes.NewForConfig(config)
			require.NoError(t, err)
			lists, err := informer.NewDynamicListerWatcherFactory(config)
			require.NoError(t, err)
			for _, transform := range []cache.TransformFunc{same, emptied} {
				want, got := kept(t, &cache.ListWatch{
					ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
						return client.CoreV1().Pods("").List(ctx, o)
					},
					WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
						return client.CoreV1().Pods("").Watch(ctx, o)
					},
				}, lists.ForResource("", pods), &corev1.Pod{}, transform, "a/b")
				want.(*corev1.Pod).TypeMeta = metav1.TypeMeta{}
				require.Equal(t, want, got)
			}
		})
	}
}

// partly is a message with fields that its generated code has no place for.
type partly struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	Note              string             `json:"note,omitempty"`
	Parts             []corev1.Container `json:"parts,omitempty" protobuf:"bytes,2,rep,name=parts"`
	Secret            string             `json:"-"`
}

func (p *partly) DeepCopyObject() runtime.Object { c := *p; return &c }
func (p *partly) Reset()                         { *p = partly{} }
func (p *partly) Marshal() ([]byte, error) {
	return (&corev1.Pod{ObjectMeta: p.ObjectMeta}).Marshal()
}
func (p *partly) Unmarshal(b []byte) error {
	var pod corev1.Pod
	err := pod.Unmarshal(b)
	p.ObjectMeta = pod.ObjectMeta
	return err
}

// A value that protobuf has no place for is kept, as by client-go, or refused.
func TestFieldsThatProtobufHasNoPlaceForAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &partly{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", ResourceVersion: "1"}, Note: "kept"}
		source := fcache.NewFakeControllerSource()
		source.Add(p)
		want, got := kept(t, source, source, &partly{}, func(obj any) (any, error) { return obj, nil }, "a/b")
		require.Equal(t, want, got)

		source.Shutdown()
	})
	s := objectcache.NewStore(&partly{}, nil, objectcache.StoreOptions{})
	secret := &partly{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Secret: "s"}
	require.ErrorContains(t, s.Add(secret), "partly.Secret")
	binding := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	require.NoError(t, s.Add(binding))
	got, _, err := s.GetByKey("a")
	require.NoError(t, err)
	require.Equal(t, binding, got)
}
