package e2e

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/e2e/cluster"
)

// gathered keeps the newest object of every name, as a typed one.
type gathered[T runtime.Object] struct {
	typed func(t *testing.T, obj T) *corev1.Pod
	t     *testing.T

	mu   sync.Mutex
	pods map[string]*corev1.Pod
}

func (g *gathered[T]) put(obj T) {
	pod := g.typed(g.t, obj)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pods[pod.Name] = pod
}

func (g *gathered[T]) handler() informer.ResourceEventHandler {
	return informer.TypedResourceEventHandlerFuncs[T]{
		AddFunc:    g.put,
		UpdateFunc: func(_, obj T) { g.put(obj) },
		DeleteFunc: func(obj informer.DeletedObject[T]) {
			g.mu.Lock()
			defer g.mu.Unlock()
			delete(g.pods, runtime.Object(obj.Object).(metav1.Object).GetName())
		},
	}
}

// is reports whether what was gathered is want.
func (g *gathered[T]) is(want map[string]*corev1.Pod) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.pods) != len(want) {
		return false
	}
	for name, pod := range want {
		if g.pods[name] == nil || g.pods[name].ResourceVersion != pod.ResourceVersion {
			return false
		}
	}
	return true
}

// In every form, in lists, watch-lists and watches, pods are those that a typed
// client gets.
func TestFormsAreThoseOfATypedClient(t *testing.T) {
	decode := func(t *testing.T, raw *informer.RawObject) *corev1.Pod {
		pod := &corev1.Pod{}
		require.NoError(t, raw.Decode(pod))
		require.Equal(t, "Pod", pod.Kind)
		pod.TypeMeta = metav1.TypeMeta{}
		return pod
	}
	typed := func(_ *testing.T, pod *corev1.Pod) *corev1.Pod { return pod }
	asked := func(t *testing.T, config *rest.Config) *rest.Config {
		config = rest.CopyConfig(config)
		config.ContentType = runtime.ContentTypeProtobuf
		return config
	}
	unasked := func(_ *testing.T, config *rest.Config) *rest.Config { return config }
	for _, mode := range sample([]informer.ListMode{informer.ListModeWatchList, informer.ListModePaged}, 1) {
		t.Run("raw JSON, "+mode.String(), func(t *testing.T) {
			testForm(t, mode, unasked, &informer.RawObject{}, func(t *testing.T, raw *informer.RawObject) *corev1.Pod {
				require.Equal(t, runtime.ContentTypeJSON, raw.ContentType())
				return decode(t, raw)
			})
		})
		t.Run("raw protobuf, "+mode.String(), func(t *testing.T) {
			testForm(t, mode, asked, &informer.RawObject{}, func(t *testing.T, raw *informer.RawObject) *corev1.Pod {
				require.Equal(t, runtime.ContentTypeProtobuf, raw.ContentType())
				_, kind, err := scheme.Codecs.UniversalDeserializer().Decode(raw.Bytes(), nil, nil)
				require.NoError(t, err)
				require.Equal(t, "Pod", kind.Kind)
				return decode(t, raw)
			})
		})
		t.Run("typed, "+mode.String(), func(t *testing.T) { testForm(t, mode, unasked, &corev1.Pod{}, typed) })
	}
}

func testForm[T runtime.Object](t *testing.T, mode informer.ListMode, configure func(*testing.T, *rest.Config) *rest.Config, example T, see func(*testing.T, T) *corev1.Pod) {
	ctx := testContext(t)
	c := usual.Get(t)
	objects := newPods(ctx, t, c, 300)
	g := &gathered[T]{typed: see, t: t, pods: map[string]*corev1.Pod{}}
	s := start(ctx, t, newMirror(nil), informer.InformerConfig{
		ListerWatcher: source(t, configure(t, c.Config()), objects), ExampleObject: example, ListMode: mode,
		WatchListPageSize: 70, Handler: g.handler(),
	})
	require.Eventually(t, s.informer.HasSynced, time.Minute, 10*time.Millisecond)
	requireGathered(ctx, t, c, objects, g)
	for i := range 20 {
		require.NoError(t, objects.Delete(ctx, cluster.Name(i)))
	}
	requireGathered(ctx, t, c, objects, g)
	require.Equal(t, mode, s.informer.Status().ListMode)
	require.Empty(t, s.reported())
}

// requireGathered waits until what was gathered is what a typed client lists, and
// compares the objects.
func requireGathered[T runtime.Object](ctx context.Context, t *testing.T, c *cluster.Cluster, objects *cluster.Objects, g *gathered[T]) {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config())
	require.NoError(t, err)
	want := map[string]*corev1.Pod{}
	list, err := client.CoreV1().Pods(objects.Namespace).List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.NoError(t, meta.EachListItem(list, func(obj runtime.Object) error {
		want[obj.(*corev1.Pod).Name] = obj.(*corev1.Pod)
		return nil
	}))
	require.Eventually(t, func() bool { return g.is(want) }, time.Minute, 10*time.Millisecond)
	g.mu.Lock()
	defer g.mu.Unlock()
	require.Equal(t, want, g.pods)
}
