package delivery_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// richPod has fields of every kind: in arrays, maps, inlined structs and behind pointers.
func richPod() *corev1.Pod {
	pod := fullPod()
	user := int64(7)
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: &user, FSGroup: &user}
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
		Name: "d", Image: "other", Env: []corev1.EnvVar{{Name: "e", Value: "v"}},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}},
	})
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "config"}, Items: []corev1.KeyToPath{{Key: "k"}}}}}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Message: "long"}
	return pod
}

// manyFields are paths to some of them.
var manyFields = []string{"metadata.labels", "metadata.annotations.other", "spec.nodeName", "spec.containers.image", "spec.containers.resources.requests.cpu",
	"spec.securityContext.runAsUser", "spec.volumes.configMap.name", "status.phase"}

// manyFieldsOf is what these leave of a pod.
func manyFieldsOf(pod *corev1.Pod) *corev1.Pod {
	left := onlyLabelsOf(pod)
	left.Annotations = map[string]string{"other": pod.Annotations["other"]}
	left.Spec.NodeName = pod.Spec.NodeName
	for _, c := range pod.Spec.Containers {
		left.Spec.Containers = append(left.Spec.Containers, corev1.Container{Image: c.Image})
	}
	left.Spec.Containers[1].Resources.Requests = corev1.ResourceList{"cpu": pod.Spec.Containers[1].Resources.Requests["cpu"]}
	left.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: pod.Spec.SecurityContext.RunAsUser}
	left.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "config"}}}}}
	left.Status.Phase = pod.Status.Phase
	return left
}

// onlyLabelsOf is what identifies a pod, and its labels.
func onlyLabelsOf(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels}}
}

// asPod is an object in any form as a pod, without its kind.
func asPod(t *testing.T, obj runtime.Object) *corev1.Pod {
	pod := &corev1.Pod{}
	switch obj := obj.(type) {
	case *informer.RawObject:
		require.NoError(t, obj.Decode(pod))
	case *corev1.Pod:
		pod = obj.DeepCopy()
	case *metav1.PartialObjectMetadata:
		obj.DeepCopy().ObjectMeta.DeepCopyInto(&pod.ObjectMeta)
	case *unstructured.Unstructured:
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, pod))
	}
	pod.TypeMeta = metav1.TypeMeta{}
	return pod
}

// typedPods lists and watches pods as a generated client does: decoded.
func typedPods(t *testing.T, w *harness.World) cache.ListerWatcher {
	of := cache.ToListerWatcherWithContext(w.Lister())
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			got, err := of.ListWithContext(ctx, opts)
			if err != nil {
				return nil, err
			}
			list := got.(*unstructured.UnstructuredList)
			typed := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: list.GetResourceVersion(), Continue: list.GetContinue()}}
			for i := range list.Items {
				typed.Items = append(typed.Items, *asPod(t, &list.Items[i]))
			}
			return typed, nil
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			events, err := of.WatchWithContext(ctx, opts)
			if err != nil {
				return nil, err
			}
			return watch.Filter(events, func(e watch.Event) (watch.Event, bool) {
				if u, ok := e.Object.(*unstructured.Unstructured); ok && e.Type != watch.Bookmark {
					e.Object = asPod(t, u)
				}
				return e, e.Type != watch.Bookmark
			}), nil
		},
	}
}

// keepForms are the forms of objects, with what is kept of each.
func keepForms(t *testing.T) map[string]struct {
	lister  func(w *harness.World) cache.ListerWatcher
	example runtime.Object
	keep    []string
	left    func(*corev1.Pod) *corev1.Pod
} {
	wire := func(configure func(*rest.Config) *rest.Config) func(w *harness.World) cache.ListerWatcher {
		return func(w *harness.World) cache.ListerWatcher {
			return harness.ListerOf(t, configure(w.Config()))
		}
	}
	inJSON := wire(func(config *rest.Config) *rest.Config { return config })
	labels := []string{"metadata.labels"}
	return map[string]struct {
		lister  func(w *harness.World) cache.ListerWatcher
		example runtime.Object
		keep    []string
		left    func(*corev1.Pod) *corev1.Pod
	}{
		"raw":                  {inJSON, &informer.RawObject{}, manyFields, manyFieldsOf},
		"raw protobuf":         {wire(harness.Protobuf), &informer.RawObject{}, labels, onlyLabelsOf},
		"raw, not in protobuf": {wire(harness.Protobuf), &informer.RawObject{}, manyFields, manyFieldsOf},
		"metadata":             {inJSON, &metav1.PartialObjectMetadata{}, labels, onlyLabelsOf},
		"unstructured":         {inJSON, &unstructured.Unstructured{}, manyFields, manyFieldsOf},
		"typed":                {inJSON, &corev1.Pod{}, manyFields, manyFieldsOf},
		"of others":            {func(w *harness.World) cache.ListerWatcher { return struct{ cache.ListerWatcher }{w.Lister()} }, nil, manyFields, manyFieldsOf},
		"of others, typed":     {func(w *harness.World) cache.ListerWatcher { return typedPods(t, w) }, &corev1.Pod{}, manyFields, manyFieldsOf},
	}
}

// Only the named fields are kept, in every form of objects and every way that they are read.
func TestKeepInEveryForm(t *testing.T) {
	for name, test := range keepForms(t) {
		for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeFull, informer.ListModeWatchList} {
			harness.BubbleRun(t, name+"/"+mode.String(), informertest.Options{}, func(t *testing.T, w *harness.World) {
				whole := map[string]*corev1.Pod{} // by resource version
				stored := func(u *unstructured.Unstructured, err error) *unstructured.Unstructured {
					require.NoError(t, err)
					whole[u.GetResourceVersion()] = asPod(t, u)
					return u
				}
				u := stored(w.Create(harness.Pods, richPod()))
				for n := range 3 {
					pod := richPod()
					pod.Name = "other-" + string(rune('0'+n))
					stored(w.Create(harness.Pods, pod))
				}
				var seen, transformed []*corev1.Pod
				see := func(obj interface{}) {
					seen = append(seen, asPod(t, obj.(runtime.Object)))
					if raw, ok := obj.(*informer.RawObject); ok {
						want := runtime.ContentTypeJSON
						if name == "raw protobuf" {
							want = runtime.ContentTypeProtobuf
						}
						require.Equal(t, want, raw.ContentType())
						require.NotContains(t, string(raw.Bytes()), "managedFields")
					}
				}
				var f harness.Failures
				i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
					ListerWatcher: test.lister(w), ExampleObject: test.example, ErrorHandler: f.Handle, ListMode: mode, WatchListPageSize: 2, Keep: test.keep,
					Transform: func(obj interface{}) (interface{}, error) {
						transformed = append(transformed, asPod(t, obj.(runtime.Object)))
						return obj, nil
					},
					Handler: informer.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, obj interface{}) { see(obj) }, DeleteFunc: see},
				})
				defer harness.Settle(i.RunWithContext)()
				require.Len(t, seen, 4)
				u.SetLabels(map[string]string{"app": "changed"})
				u = stored(w.Update(harness.Pods, u))
				synctest.Wait()
				require.NoError(t, w.Delete(harness.Pods, "a", "pod"))
				synctest.Wait()
				require.Equal(t, seen, transformed)
				require.Len(t, seen, 6)
				deleted := whole[u.GetResourceVersion()].DeepCopy()
				deleted.ResourceVersion = seen[5].ResourceVersion
				whole[deleted.ResourceVersion] = deleted
				for _, pod := range seen {
					require.Equal(t, test.left(whole[pod.ResourceVersion]), pod)
					delete(whole, pod.ResourceVersion)
				}
				require.Empty(t, whole, "not delivered")
				require.Empty(t, f.Errors())
			})
		}
	}
}

// What is kept says its kind, and can be pruned further.
func TestKeepThenPrune(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		_, err := w.Create(harness.Pods, richPod())
		require.NoError(t, err)
		for name, example := range map[string]runtime.Object{"raw": &informer.RawObject{}, "unstructured": &unstructured.Unstructured{}, "typed": &corev1.Pod{}} {
			var got *corev1.Pod
			i := harness.Follow(w, informer.InformerConfig{ExampleObject: example, Keep: []string{"spec", "metadata.annotations"}, Prune: []string{"spec.containers", "metadata.annotations.other", "status"},
				Handler: informer.ResourceEventHandlerFuncs{AddFunc: func(obj interface{}) {
					got = asPod(t, obj.(runtime.Object))
					if name != "typed" {
						require.Equal(t, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, obj.(runtime.Object).GetObjectKind().GroupVersionKind())
					}
				}}})
			stop := harness.Settle(i.RunWithContext)
			stop()
			want := onlyLabelsOf(got)
			want.Labels, want.Annotations, want.Spec = nil, map[string]string{lastApplied: "{}"}, richPod().Spec
			want.Spec.Containers = nil
			require.Equal(t, want, got, name)
		}
	})
}

func TestKeepIsChecked(t *testing.T) {
	lw := harness.Script{List: harness.Listing("10")}.LW()
	config := func(keep ...string) informer.InformerConfig {
		return informer.InformerConfig{ListerWatcher: lw, Handler: informer.ResourceEventHandlerFuncs{}, ExampleObject: &corev1.Pod{}, Keep: keep}
	}
	for path, says := range map[string]string{
		"":                       `keep "": empty field name`,
		"spec..nodeName":         `keep "spec..nodeName": empty field name`,
		"spec.nodName":           `keep "spec.nodName": v1.PodSpec has no field "nodName"`,
		"spec.nodeName.x":        `keep "spec.nodeName.x": a string has no fields`,
		"data":                   `keep "data": v1.Pod has no field "data"`,
		"spec.containers.img":    `keep "spec.containers.img": v1.Container has no field "img"`,
		"metadata.finalizers.x":  `keep "metadata.finalizers.x": a string has no fields`,
		"status.startTime.x":     `keep "status.startTime.x": the fields of a v1.Time are not known`,
		`metadata.labels.a\.b.c`: `keep "metadata.labels.a\\.b.c": a string has no fields`,
	} {
		require.PanicsWithValue(t, `informer "pods": `+says, func() { informer.NewResourceVersionInformer("pods", config("status.phase", path)) }, path)
	}
	require.PanicsWithValue(t, `informer "pods": keep "spec.a": v1.PodSpec has no field "a"; keep "b": v1.Pod has no field "b"`, func() {
		informer.NewResourceVersionInformer("pods", config("spec.a", "b"))
	})
	require.PanicsWithValue(t, `informer "pods": keep "spec": v1.PartialObjectMetadata has no field "spec"`, func() {
		c := config("spec")
		c.ExampleObject = &metav1.PartialObjectMetadata{}
		informer.NewResourceVersionInformer("pods", c)
	})
	require.PanicsWithValue(t, `informer "pods": keep "a": v1.Pod has no field "a"`, func() {
		c := config("a")
		c.Handler = nil
		informer.NewSharedResourceVersionInformer("pods", c)
	})
	c := config("a")
	c.ExampleObject, c.Handler = nil, nil
	s := informer.NewSharedResourceVersionInformer("pods", c)
	_, err := s.AddEventHandler(informer.TypedResourceEventHandlerFuncs[*corev1.Pod]{})
	require.EqualError(t, err, `handler "pods/1": keep "a": v1.Pod has no field "a"`)
	_, err = s.AddEventHandler(informer.TypedResourceEventHandlerFuncs[*unstructured.Unstructured]{})
	require.NoError(t, err, "an unstructured object may have any field")

	c = config("metadata.name", "metadata.uid", "kind", "metadata.labels")
	informer.NewResourceVersionInformer("pods", c) // what identifies an object may be named
}

// An informer that reads only a few fields of each pod. The others are dropped off the wire, before
// anything is allocated for them.
func ExampleInformerConfig_keep() {
	server := informertest.NewServer(informertest.Options{})
	defer server.Close()
	pods := harness.Pods
	if _, err := server.Create(pods, richPod()); err != nil {
		panic(err)
	}
	factory, err := informer.NewDynamicListerWatcherFactory(server.Config())
	if err != nil {
		panic(err)
	}
	handler := informer.TypedResourceEventHandlerFuncs[*corev1.Pod]{
		AddFunc: func(pod *corev1.Pod) {
			fmt.Println(pod.Name, pod.Labels, pod.Spec.NodeName, pod.Status.Phase, pod.Spec.Containers[1].Resources.Requests.Cpu())
			fmt.Printf("%q %q\n", pod.Spec.Containers[1].Image, pod.Status.Message)
		},
	}
	i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
		ListerWatcher: factory.ForResource("", pods),
		ExampleObject: &corev1.Pod{},
		Handler:       handler,
		Keep:          []string{"metadata.labels", "spec.nodeName", "spec.containers.resources", "status.phase"},
	})
	stop := harness.Synced(i)
	stop()
	// Output:
	// pod map[app:web] node Running 1
	// "" ""
}
