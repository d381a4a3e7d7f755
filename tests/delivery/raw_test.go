package delivery_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// fullPod is a pod with a bit of everything.
func fullPod() *corev1.Pod {
	fields := &metav1.FieldsV1{}
	fields.SetRawBytes([]byte(`{"f:spec":{}}`))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "a", Name: "pod", Labels: map[string]string{"app": "web"}, Finalizers: []string{"example.com/f"}, Generation: 3,
			Annotations:     map[string]string{lastApplied: "{}", "other": "kept"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "u"}},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: fields}},
		},
		Spec: corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "c", Image: "image"}}},
	}
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// told runs an informer over resources with each of some objects, changes them,
// and returns what it was told of them: in a list, in a watch-list and as changes.
func told[T runtime.Object](t *testing.T, w *harness.World, config *rest.Config, gvr schema.GroupVersionResource, example T, c informer.InformerConfig, see func(obj T)) informer.ResourceVersionInformer {
	t.Helper()
	factory, err := informer.NewDynamicListerWatcherFactory(config)
	require.NoError(t, err)
	c.ListerWatcher, c.ExampleObject = factory.ForResource("", gvr), example
	var f harness.Failures
	c.ErrorHandler = f.Handle
	c.Handler = informer.TypedResourceEventHandlerFuncs[T]{
		AddFunc: see, UpdateFunc: func(_, obj T) { see(obj) }, DeleteFunc: func(obj informer.DeletedObject[T]) { see(obj.Object) },
	}
	i := informer.NewResourceVersionInformer("objects", c)
	defer harness.Settle(i.RunWithContext)()
	require.True(t, i.HasSynced())
	obj, err := w.Get(gvr, "a", "pod")
	require.NoError(t, err)
	obj.SetLabels(map[string]string{"app": "changed"})
	_, err = w.Update(gvr, obj)
	require.NoError(t, err)
	synctest.Wait()
	require.NoError(t, w.Delete(gvr, "a", "pod"))
	synctest.Wait()
	require.Empty(t, f.Errors())
	require.Zero(t, i.Status().Skipped)
	return i
}

// A RawObject is the object as the server has it, however it came.
func TestRawObjects(t *testing.T) {
	for name, test := range map[string]struct {
		gvr         schema.GroupVersionResource
		configure   func(*rest.Config) *rest.Config
		mode        informer.ListMode
		contentType string
	}{
		"listed in JSON":                   {harness.Pods, nil, informer.ListModePaged, runtime.ContentTypeJSON},
		"watched in JSON":                  {harness.Pods, nil, informer.ListModeWatchList, runtime.ContentTypeJSON},
		"listed in protobuf":               {harness.Pods, harness.Protobuf, informer.ListModePaged, runtime.ContentTypeProtobuf},
		"watched in protobuf":              {harness.Pods, harness.Protobuf, informer.ListModeWatchList, runtime.ContentTypeProtobuf},
		"custom, though protobuf is asked": {harness.Widgets, harness.Protobuf, informer.ListModePaged, runtime.ContentTypeJSON},
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			pod := fullPod()
			var stored *unstructured.Unstructured
			var err error
			if test.gvr == harness.Pods {
				stored, err = w.Create(harness.Pods, pod)
			} else {
				stored, err = w.Create(harness.Widgets, harness.Object(harness.Widgets, "a/pod", "created"))
			}
			require.NoError(t, err)
			config := w.Config()
			if test.configure != nil {
				config = test.configure(config)
			}
			var kept []*informer.RawObject
			told(t, w, config, test.gvr, &informer.RawObject{}, informer.InformerConfig{ListMode: test.mode}, func(obj *informer.RawObject) {
				own := obj.DeepCopyObject().(*informer.RawObject)
				require.Equal(t, obj.Bytes(), own.Bytes())
				require.NotSame(t, &obj.Bytes()[0], &own.Bytes()[0])
				kept = append(kept, own)
			})
			require.Len(t, kept, 3, "added, updated, deleted")
			raw := kept[0]

			require.Equal(t, test.contentType, raw.ContentType())
			require.Equal(t, stored.GroupVersionKind(), raw.GetObjectKind().GroupVersionKind())
			require.Equal(t, "a", raw.GetNamespace())
			require.Equal(t, "pod", raw.GetName())
			require.Equal(t, stored.GetUID(), raw.GetUID())
			require.Equal(t, stored.GetResourceVersion(), raw.GetResourceVersion())
			require.Equal(t, stored.GetLabels(), raw.GetLabels())
			require.Equal(t, stored.GetAnnotations(), raw.GetAnnotations())
			require.Equal(t, stored.GetFinalizers(), raw.GetFinalizers())
			require.Equal(t, stored.GetOwnerReferences(), raw.GetOwnerReferences())
			require.Equal(t, stored.GetGeneration(), raw.GetGeneration())
			require.True(t, stored.GetCreationTimestamp().Time.Equal(raw.GetCreationTimestamp().Time))
			require.Equal(t, map[string]string{"app": "changed"}, kept[1].GetLabels())
			require.Equal(t, map[string]string{"app": "changed"}, kept[2].GetLabels(), "the final state")
			for _, deepCopy := range kept {
				require.Equal(t, stored.GroupVersionKind(), deepCopy.GetObjectKind().GroupVersionKind())
			}

			var metadata metav1.PartialObjectMetadata
			require.NoError(t, raw.Decode(&metadata))
			require.Equal(t, stored.GetUID(), metadata.UID)
			require.Equal(t, stored.GetKind(), metadata.Kind)
			u, err := raw.Unstructured()
			if test.contentType == runtime.ContentTypeProtobuf {
				require.ErrorContains(t, err, "no protobuf decoder")
			} else {
				require.NoError(t, err)
				require.Equal(t, stored, u)
			}
			if test.gvr != harness.Pods {
				return
			}
			var decoded, want corev1.Pod
			require.NoError(t, raw.Decode(&decoded))
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, &want))
			require.Equal(t, want, decoded)
			again, kind, err := scheme.Codecs.UniversalDeserializer().Decode(raw.Bytes(), nil, nil)
			require.NoError(t, err, "any decoder takes the bytes")
			require.Equal(t, "Pod", kind.Kind)
			require.Equal(t, want.Spec, again.(*corev1.Pod).Spec)
		})
	}
}

func TestRawObjectIsReadOnly(t *testing.T) {
	var raw metav1.Object = &informer.RawObject{}
	for name, set := range map[string]func(){
		"namespace": func() { raw.SetNamespace("a") }, "name": func() { raw.SetName("a") }, "generate name": func() { raw.SetGenerateName("a") },
		"UID": func() { raw.SetUID("a") }, "version": func() { raw.SetResourceVersion("1") }, "generation": func() { raw.SetGeneration(1) },
		"self link": func() { raw.SetSelfLink("a") }, "creation": func() { raw.SetCreationTimestamp(metav1.Time{}) },
		"deletion": func() { raw.SetDeletionTimestamp(nil) }, "grace": func() { raw.SetDeletionGracePeriodSeconds(nil) },
		"labels": func() { raw.SetLabels(nil) }, "annotations": func() { raw.SetAnnotations(nil) }, "finalizers": func() { raw.SetFinalizers(nil) },
		"owners": func() { raw.SetOwnerReferences(nil) }, "managed fields": func() { raw.SetManagedFields(nil) },
	} {
		require.Panics(t, set, name)
	}
}

func TestTheEmptyRawObject(t *testing.T) {
	raw := &informer.RawObject{}
	require.Empty(t, raw.Bytes())
	require.Empty(t, raw.GetName())
	require.Empty(t, raw.GetLabels())
	require.ErrorContains(t, raw.Decode(&corev1.Pod{}), "empty")
	_, err := raw.Unstructured()
	require.ErrorContains(t, err, "empty")
	accessor, err := meta.Accessor(raw)
	require.NoError(t, err)
	require.Equal(t, types.UID(""), accessor.GetUID())
}

func TestRawObjectsNeedTheWire(t *testing.T) {
	require.PanicsWithValue(t, `informer "pods": a RawObject needs a ListerWatcher of a DynamicListerWatcherFactory, not a *cache.ListWatch`, func() {
		informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: harness.Script{}.LW(), ExampleObject: &informer.RawObject{}, Handler: informer.ResourceEventHandlerFuncs{},
		})
	})
	shared := informer.NewSharedResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: harness.Script{}.LW()})
	_, err := shared.AddEventHandler(typedRecorder[*informer.RawObject](&harness.Recorder{}))
	require.EqualError(t, err, `handler "pods/1": a RawObject needs a ListerWatcher of a DynamicListerWatcherFactory, not a *cache.ListWatch`)
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: informer.NewFilteredListerWatcher(w.Lister(), nil), ExampleObject: &informer.RawObject{}, Handler: informer.ResourceEventHandlerFuncs{},
		})
	})
}

// The example decides what is asked for, and what the handler gets.
func TestFormsOfObjects(t *testing.T) {
	const as = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeWatchList} {
		harness.BubbleRun(t, mode.String(), informertest.Options{}, func(t *testing.T, w *harness.World) {
			stored, err := w.Create(harness.Pods, fullPod())
			require.NoError(t, err)
			_, err = w.Create(harness.Widgets, harness.Object(harness.Widgets, "a/pod", "created"))
			require.NoError(t, err)

			var typed []*corev1.Pod
			told(t, w, w.Config(), harness.Pods, &corev1.Pod{}, informer.InformerConfig{ListMode: mode}, func(obj *corev1.Pod) { typed = append(typed, obj) })
			var want corev1.Pod
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, &want))
			want.TypeMeta = metav1.TypeMeta{} // as typed clients have it
			require.Equal(t, want, *typed[0])
			require.Len(t, typed, 3)
			requireAccept(t, w, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON)

			w.ResetRequests()
			_, err = w.Create(harness.Pods, fullPod())
			require.NoError(t, err)
			var metadata []*metav1.PartialObjectMetadata
			told(t, w, w.Config(), harness.Pods, &metav1.PartialObjectMetadata{}, informer.InformerConfig{ListMode: mode}, func(obj *metav1.PartialObjectMetadata) { metadata = append(metadata, obj) })
			require.Equal(t, "PartialObjectMetadata", metadata[0].Kind)
			require.Equal(t, "meta.k8s.io/v1", metadata[0].APIVersion)
			require.Equal(t, want.Labels, metadata[0].Labels)
			require.Len(t, metadata, 3)
			requireAccept(t, w, runtime.ContentTypeProtobuf+as+","+runtime.ContentTypeJSON+as+","+runtime.ContentTypeJSON)

			w.ResetRequests()
			var widget []*unstructured.Unstructured
			told(t, w, harness.Protobuf(w.Config()), harness.Widgets, harness.ExampleObject("example.com/v1", "Widget"), informer.InformerConfig{ListMode: mode}, func(obj *unstructured.Unstructured) { widget = append(widget, obj) })
			require.Len(t, widget, 3)
			require.Equal(t, "Widget", widget[0].GetKind())
			requireAccept(t, w, runtime.ContentTypeJSON)
		})
	}
}

// requireAccept checks what was asked for, of a watch in the singular.
func requireAccept(t *testing.T, w *harness.World, accept string) {
	t.Helper()
	require.NotEmpty(t, w.Requests())
	for _, r := range w.Requests() {
		require.Equal(t, accept, strings.ReplaceAll(r.Accept, "MetadataList", "Metadata"))
		require.Equal(t, r.Verb == "list", strings.Contains(r.Accept, "MetadataList") || r.Verb == "list")
	}
}

// A Go type is not decoded from objects of another kind.
func TestATypeOfAnotherKind(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		var r harness.Recorder
		var f harness.Failures
		harness.Settled(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.Handle, ExampleObject: &corev1.Service{}})
		require.Empty(t, r.Events())
		require.EqualError(t, f.Errors()[0], `list item 0 "a/1" skipped: is of kind /v1, Kind=Pod, expected a *v1.Service`)
	})
}

// Fields are dropped in every form, while reading.
func TestPruneInEveryForm(t *testing.T) {
	prune := []string{"metadata.managedFields", `metadata.annotations.kubectl\.kubernetes\.io/last-applied-configuration`, "metadata.finalizers"}
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		for name, test := range map[string]struct {
			config  *rest.Config
			example runtime.Object
			prune   []string
		}{
			"raw":                  {w.Config(), &informer.RawObject{}, prune},
			"raw protobuf":         {harness.Protobuf(w.Config()), &informer.RawObject{}, prune},
			"raw, not in protobuf": {harness.Protobuf(w.Config()), &informer.RawObject{}, append([]string{"spec.nodeName"}, prune...)},
			"metadata":             {w.Config(), &metav1.PartialObjectMetadata{}, prune},
			"unstructured":         {w.Config(), &unstructured.Unstructured{}, append([]string{"spec.nodeName"}, prune...)},
			"typed":                {w.Config(), &corev1.Pod{}, append([]string{"spec.nodeName"}, prune...)},
		} {
			_, err := w.Create(harness.Pods, fullPod())
			require.NoError(t, err, name)
			told(t, w, test.config, harness.Pods, test.example, informer.InformerConfig{Prune: test.prune}, func(obj runtime.Object) {
				accessor, err := meta.Accessor(obj)
				require.NoError(t, err)
				require.Empty(t, accessor.GetManagedFields(), name)
				require.Empty(t, accessor.GetFinalizers(), name)
				require.Equal(t, map[string]string{"other": "kept"}, accessor.GetAnnotations(), name)
				raw, isRaw := obj.(*informer.RawObject)
				if isRaw {
					require.NotContains(t, string(raw.Bytes()), "managedFields", name)
				}
				var pod corev1.Pod
				switch obj := obj.(type) {
				case *informer.RawObject:
					require.NoError(t, obj.Decode(&pod))
				case *corev1.Pod:
					pod = *obj
				case *unstructured.Unstructured:
					require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &pod))
				default:
					return
				}
				require.Len(t, pod.Spec.Containers, 1, name)
				require.Equal(t, len(test.prune) == len(prune), pod.Spec.NodeName == "node", name)
			})
		}
	})
}

// An object that cannot be decoded is skipped and reported, and nothing is
// deleted for it.
func TestAnObjectThatCanNotBeDecoded(t *testing.T) {
	wrong := `{"metadata":{"namespace":"a","name":"2","resourceVersion":"5","uid":"u"},"spec":{"containers":"none"}}`
	harness.Bubble(t, informertest.Options{Wrap: harness.Answering("application/json", harness.ListJSON(harness.PodJSON("1", ""), wrong, harness.PodJSON("3", "")))}, func(t *testing.T, w *harness.World) {
		storage := informer.NewResourceVersionStorage()
		require.NoError(t, storage.Replace(map[string]interface{}{"a/2": "4"}))
		var r harness.Recorder
		var f harness.Failures
		i := harness.Follow(w, informer.InformerConfig{Handler: &r, Storage: storage, ErrorHandler: f.Handle, ExampleObject: &corev1.Pod{}})
		stop := harness.Synced(i)
		stop()
		require.Equal(t, []string{"add a/1 initial", "add a/3 initial"}, r.Events())
		require.EqualValues(t, 1, i.Status().Skipped)
		item := harness.ErrorAs[*informer.ItemError](t, errors.Join(f.Errors()...))
		require.Equal(t, informer.ItemError{Index: 1, Key: "a/2", Err: item.Err}, *item)
		version, known, err := storage.Get(harness.Pod("a/2", ""))
		require.NoError(t, err)
		require.True(t, known)
		require.Equal(t, "4", version)
	})
}

// What is wrong is understood in every content type: a version that the server does
// not know yet is followed by a consistent list.
func TestErrorsInEveryContentType(t *testing.T) {
	for name, example := range map[string]runtime.Object{"JSON": nil, "protobuf": &corev1.Pod{}} {
		for _, mode := range []informer.ListMode{informer.ListModeFull, informer.ListModeWatchList} {
			harness.BubbleRun(t, name+", "+mode.String(), informertest.Options{}, func(t *testing.T, w *harness.World) {
				w.CreatePods("a/1")
				storage := informer.NewResourceVersionStorage()
				require.NoError(t, storage.Replace(map[string]interface{}{"a/1": "999"}))
				var r harness.Recorder
				i := harness.Follow(w, informer.InformerConfig{Handler: &r, Storage: storage, ExampleObject: example, ListMode: mode})
				defer harness.Synced(i)()
				require.Equal(t, []string{"update a/1"}, r.Events())
				if mode == informer.ListModeWatchList { // which could take something back
					mode = informer.ListModePaged
				}
				require.Equal(t, mode, i.Status().ListMode)
			})
		}
	}
}

// What an event could not be decoded of is told with the next list, also where a list has come
// while a call of the handler went before it.
func TestAnEventThatCanNotBeDecodedBehindACallThatLasts(t *testing.T) {
	for _, batch := range []bool{false, true} {
		harness.BubbleRun(t, fmt.Sprintf("batch=%v", batch), informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/1", "a/2")
			first, second := make(chan struct{}), make(chan struct{})
			var b harness.Batches
			b.Before = func(call string) {
				switch call {
				case "update a/2":
					<-first
				case "delete a/1":
					<-second
				}
			}
			config := informer.InformerConfig{Handler: &b.Recorder, ExampleObject: &corev1.Pod{}}
			if batch {
				b.See = func(events []informer.Event) { b.Before(harness.EventText(events[0])) }
				config.Handler, config.BatchHandler = nil, &b
			}
			i := harness.Settled(w, config)
			w.UpdatePod("a/2", "2")
			synctest.Wait()
			w.DeletePods("a/1")
			synctest.Wait()
			heal := w.Inject(informertest.Fault{Effect: informertest.Mistyped(1)})
			w.CreatePods("a/1")
			synctest.Wait()
			heal()
			close(first) // both events of a/1 are one entry: it is taken, and the deletion is told first
			synctest.Wait()
			w.Relist()
			time.Sleep(time.Minute)
			close(second)
			time.Sleep(time.Hour)
			require.Contains(t, b.Events(), "delete a/1")
			require.EqualValues(t, 1, i.Status().Skipped)
			w.RequireState(&b.Recorder)
		})
	}
}
