package delivery_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// Fields are found in each form, and in copies.
func TestFieldsOfRawObjects(t *testing.T) {
	for name, test := range map[string]struct {
		example  *informer.RawObject
		protobuf bool
		// all tells that more than metadata is found.
		all bool
	}{
		"in JSON":                       {&informer.RawObject{}, false, true},
		"in JSON, type known":           {informer.RawObjectOf(&corev1.Pod{}), false, true},
		"in protobuf":                   {&informer.RawObject{}, true, false},
		"in protobuf, type known":       {informer.RawObjectOf(&corev1.Pod{}), true, true},
		"in protobuf, nil type":         {informer.RawObjectOf(nil), true, false},
		"in protobuf, type of metadata": {informer.RawObjectOf(&metav1.PartialObjectMetadata{}), true, false},
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			stored, err := w.Create(harness.Pods, fullPod())
			require.NoError(t, err)
			config := w.Config()
			if test.protobuf {
				config = harness.Protobuf(config)
			}
			calls := 0
			told(t, w, config, harness.Pods, test.example, informer.InformerConfig{}, func(obj *informer.RawObject) {
				if calls++; calls == 1 {
					checkFields(t, obj, stored, test.all)
					checkFields(t, obj.DeepCopyObject().(*informer.RawObject), stored, test.all)
				}
			})
			require.Equal(t, 3, calls)
		})
	}
}

func checkFields(t *testing.T, obj *informer.RawObject, stored *unstructured.Unstructured, all bool) {
	for path, want := range map[string]string{"kind": "Pod", "apiVersion": "v1", "metadata.name": "pod", "metadata.labels.app": "web", "metadata.generation": "3",
		"metadata.creationTimestamp": stored.Object["metadata"].(map[string]interface{})["creationTimestamp"].(string),
		`metadata.annotations.kubectl\.kubernetes\.io/last-applied-configuration`: "{}"} {
		value, ok := obj.Field(path)
		require.True(t, ok, path)
		require.Equal(t, want, value.String(), path)
	}
	require.Equal(t, stored.GetLabels(), obj.Labels())
	require.Equal(t, stored.GetOwnerReferences(), obj.OwnerReferences())
	generation, _ := obj.Field("metadata.generation")
	require.Equal(t, informer.FieldInt, generation.Kind())
	require.Equal(t, int64(3), generation.Int())
	require.InDelta(t, 3, generation.Float(), 0)
	owners, _ := obj.Field("metadata.ownerReferences")
	require.Equal(t, informer.FieldArray, owners.Kind())
	require.NotEmpty(t, owners.Bytes())
	for _, path := range []string{"metadata.none", "metadata.labels.none", "kind.x", "metadata.deletionTimestamp", "spec.none", "metadata..name", ""} {
		value, ok := obj.Field(path)
		require.False(t, ok, path)
		require.Equal(t, informer.FieldValue{}, value)
	}
	value, err := obj.LookupField("metadata.labels.none")
	require.NoError(t, err)
	require.Equal(t, informer.FieldAbsent, value.Kind())
	require.False(t, value.Bool())
	_, err = obj.LookupField("metadata..name")
	require.EqualError(t, err, `field "metadata..name": a name in the path is empty`)

	node, err := obj.LookupField("spec.nodeName")
	found, ok := obj.Field("spec.nodeName")
	require.Equal(t, all, ok)
	require.Equal(t, node, found)
	if !all {
		require.EqualError(t, err, `field "spec.nodeName" of Pod "a/pod": the Go type, which has the numbers of fields in protobuf, is not known there`)
		return
	}
	require.NoError(t, err)
	require.Equal(t, "node", node.String())
	require.Equal(t, "node", string(node.Bytes()))
}

// Keep may name fields of a RawObject in protobuf, if its type is known.
func TestKeepOfTypedRawObjects(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		_, err := w.Create(harness.Pods, fullPod())
		require.NoError(t, err)
		told(t, w, harness.Protobuf(w.Config()), harness.Pods, informer.RawObjectOf(&corev1.Pod{}), informer.InformerConfig{Keep: []string{"spec.nodeName"}}, func(obj *informer.RawObject) {
			require.Equal(t, "application/vnd.kubernetes.protobuf", obj.ContentType())
			node, ok := obj.Field("spec.nodeName")
			require.True(t, ok)
			require.Equal(t, "node", node.String())
			_, ok = obj.Field("spec.containers")
			require.False(t, ok)
			require.Nil(t, obj.Labels())
		})
	})
	require.PanicsWithValue(t, `informer "x": keep "spec.node": v1.PodSpec has no field "node"`, func() {
		server, lw := harness.Simulated()
		defer server.Close()
		informer.NewResourceVersionInformer("x", informer.InformerConfig{
			ListerWatcher: lw, ExampleObject: informer.RawObjectOf(&corev1.Pod{}), Keep: []string{"spec.node"}, Handler: informer.ResourceEventHandlerFuncs{},
		})
	})
}

// Objects of another kind than that of the type are not read with its numbers.
func TestTypedRawObjectsOfOtherKinds(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		_, err := w.Create(harness.Pods, fullPod())
		require.NoError(t, err)
		factory := w.Factory()
		var f harness.Failures
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: factory.ForResource("", harness.Pods), ExampleObject: informer.RawObjectOf(&corev1.Node{}), ErrorHandler: f.Handle,
			BatchHandler: informer.BatchHandlerFunc(func(_ context.Context, events []informer.Event) error {
				t.Errorf("told of %d objects", len(events))
				return nil
			}),
		})
		defer harness.Settle(i.RunWithContext)()
		errs := f.Errors()
		require.NotEmpty(t, errs)
		require.ErrorContains(t, errs[0], "expected a *v1.Node")
	})
}

func TestFieldsOfNothing(t *testing.T) {
	var raw informer.RawObject
	_, ok := raw.Field("metadata.name")
	require.False(t, ok)
	value, err := raw.LookupField("kind")
	require.NoError(t, err)
	require.Equal(t, "absent", value.Kind().String())
	require.Nil(t, raw.Labels())
	require.Nil(t, raw.OwnerReferences())
}

// A handler of RawObjects reads what it needs without decoding them.
func ExampleRawObject_Field() {
	server, lw := harness.Simulated()
	defer server.Close()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: map[string]string{"app.kubernetes.io/name": "shop"}},
		Spec:       corev1.PodSpec{NodeName: "node-7", Priority: new(int32)},
	}
	if _, err := server.Create(harness.Pods, pod); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
		ListerWatcher: lw,
		ExampleObject: informer.RawObjectOf(&corev1.Pod{}), // says what fields are called, if objects come in protobuf
		Handler: informer.TypedResourceEventHandlerFuncs[*informer.RawObject]{
			AddFunc: func(obj *informer.RawObject) {
				defer cancel()
				node, ok := obj.Field("spec.nodeName")
				fmt.Println(node, ok)
				app, _ := obj.Field(`metadata.labels.app\.kubernetes\.io/name`)
				fmt.Println(app, obj.Labels())
				priority, _ := obj.Field("spec.priority")
				fmt.Println(priority.Kind(), priority.Int())
				containers, _ := obj.Field("spec.containers")
				fmt.Println(containers.Kind())
				_, ok = obj.Field("status.startTime")
				fmt.Println(ok)
			},
		},
	})
	i.RunWithContext(ctx)
	// Output:
	// node-7 true
	// shop map[app.kubernetes.io/name:shop]
	// int 0
	// absent
	// false
}
