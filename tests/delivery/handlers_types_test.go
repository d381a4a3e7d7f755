package delivery_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// typedRecorder is a typed handler that writes its calls down.
func typedRecorder[T interface {
	runtime.Object
	metav1.Object
}](r *harness.Recorder) informer.TypedResourceEventHandlerFuncs[T] {
	return informer.TypedResourceEventHandlerFuncs[T]{
		AddFunc:    func(obj T) { r.Record("add "+harness.Key(obj), obj, true) },
		UpdateFunc: func(_, obj T) { r.Record("update "+harness.Key(obj), obj, true) },
		DeleteFunc: func(d informer.DeletedObject[T]) {
			call := "delete " + d.Key
			if d.FinalStateUnknown() {
				call += " unknown"
			}
			r.Record(call, cache.ExplicitKey(d.Key), false)
		},
	}
}

func TestTypedHandlerWithoutExampleObjectIsCalled(t *testing.T) {
	for name, wrap := range map[string]func(informer.ResourceEventHandler) informer.ResourceEventHandler{
		"alone": func(h informer.ResourceEventHandler) informer.ResourceEventHandler { return h },
		"filtered": func(h informer.ResourceEventHandler) informer.ResourceEventHandler {
			return informer.FilteringResourceEventHandler{FilterFunc: func(obj interface{}) bool {
				_, ok := obj.(*corev1.Pod)
				return ok
			}, Handler: h}
		},
		"embedded": func(h informer.ResourceEventHandler) informer.ResourceEventHandler {
			return struct {
				informer.TypedResourceEventHandlerFuncs[*corev1.Pod]
			}{h.(informer.TypedResourceEventHandlerFuncs[*corev1.Pod])}
		},
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/1", "a/2")
			r := &harness.Recorder{}
			i := harness.Settled(w, informer.InformerConfig{Handler: wrap(typedRecorder[*corev1.Pod](r))})
			require.True(t, i.HasSynced())
			w.RequireState(r)
			w.UpdatePod("a/1", "changed")
			w.DeletePods("a/2")
			synctest.Wait()
			w.Down(func() { w.DeletePods("a/1") }) // a list finds it
			require.Equal(t, []string{"add a/1", "add a/2", "update a/1", "delete a/2", "delete a/1 unknown"}, r.Events()[:5])
			w.RequireState(r)
		})
	}
}

func TestTypedHandlerOfNewInformerIsCalled(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		r := &harness.Recorder{}
		i := informer.NewInformer(w.Lister(), nil, cache.NewStore(cache.MetaNamespaceKeyFunc), 0, typedRecorder[*corev1.Pod](r), nil)
		defer harness.Settle(i.RunWithContext)()
		w.DeletePods("a/1")
		synctest.Wait()
		require.Equal(t, []string{"add a/1", "delete a/1"}, r.Events())
	})
}

func TestTypedHandlerOfAnotherTypeIsRefused(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		const message = `informer "pods": the handler takes a *v1.Pod, and ExampleObject is a *unstructured.Unstructured`
		h := typedRecorder[*corev1.Pod](&harness.Recorder{})
		require.PanicsWithValue(t, message, func() {
			harness.Follow(w, informer.InformerConfig{Handler: h, ExampleObject: &unstructured.Unstructured{}})
		})
		require.PanicsWithValue(t, message, func() {
			harness.Follow(w, informer.InformerConfig{
				Handler: informer.FilteringResourceEventHandler{FilterFunc: func(interface{}) bool { return true }, Handler: h}, ExampleObject: &unstructured.Unstructured{},
			})
		})
		require.Panics(t, func() {
			informer.NewInformer(w.Lister(), &corev1.ConfigMap{}, cache.NewStore(cache.MetaNamespaceKeyFunc), 0, h, nil)
		})

		shared := informer.NewSharedResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: w.Lister()})
		_, err := shared.AddEventHandler(h)
		require.EqualError(t, err, `handler "pods/1": the handler takes a *v1.Pod, and ExampleObject is a *unstructured.Unstructured, for all handlers`)
		harness.AddHandler(t, shared, typedRecorder[*unstructured.Unstructured](&harness.Recorder{}))

		shared = informer.NewSharedResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: w.Lister(), ExampleObject: &corev1.Pod{}})
		harness.AddHandler(t, shared, h)
	})
}

// What Transform makes is checked object by object: what the handler does not take is skipped,
// and not acknowledged.
func TestTypedHandlerIsNotAcknowledgedForAnotherType(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2")
		var f harness.Failures
		r := &harness.Recorder{}
		i := harness.Settled(w, informer.InformerConfig{Handler: typedRecorder[*corev1.Pod](r), ErrorHandler: f.Handle, Transform: func(obj interface{}) (interface{}, error) {
			u := obj.(*unstructured.Unstructured)
			if u.GetName() == "2" {
				return u, nil
			}
			pod := &corev1.Pod{}
			pod.SetNamespace(u.GetNamespace())
			pod.SetName(u.GetName())
			pod.SetResourceVersion(u.GetResourceVersion())
			return pod, nil
		}})
		require.Equal(t, []string{"add a/1"}, r.Events())
		status := i.Status()
		require.Equal(t, 1, status.Objects)
		require.EqualValues(t, 1, status.Skipped)
		require.ErrorContains(t, status.SkippedError, "is a *unstructured.Unstructured, the handler takes a *v1.Pod")
		skipped := harness.Only[*informer.ItemError](&f)
		require.Len(t, skipped, 1)
		require.Equal(t, "a/2", skipped[0].Key)
	})
}

// Objects of another ListerWatcher that are of another type are skipped, not acknowledged.
func TestTypedHandlerIsNotAcknowledgedForObjectsOfAnotherListerWatcher(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		r := &harness.Recorder{}
		i := harness.Running(w, informer.InformerConfig{ListerWatcher: harness.TapOn(w.Lister()), Handler: typedRecorder[*corev1.Pod](r)})
		time.Sleep(time.Second)
		require.Zero(t, i.Status().Objects)
		require.ErrorContains(t, i.Status().SkippedError, "*v1.Pod")
		require.Empty(t, r.Events())
	})
}
