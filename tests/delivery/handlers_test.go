package delivery_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/tests/harness"
)

var (
	_ informer.ResourceEventHandler = informer.ResourceEventHandlerFuncs{}
	_ informer.ResourceEventHandler = informer.ResourceEventHandlerDetailedFuncs{}
	_ informer.ResourceEventHandler = informer.TypedResourceEventHandlerFuncs[*corev1.Pod]{}
	_ informer.ResourceEventHandler = informer.TypedResourceEventHandlerDetailedFuncs[*corev1.Pod]{}
	_ informer.ResourceEventHandler = informer.FilteringResourceEventHandler{}
	_ cache.ResourceEventHandler    = informer.ResourceEventHandlerFuncs{}
)

// tell makes every call of a handler once.
func tell(h informer.ResourceEventHandler, obj interface{}) {
	h.OnAdd(obj, true)
	h.OnUpdate(nil, obj)
	h.OnDelete(obj)
	h.OnSync(obj)
}

func TestB9EveryAdapterIsAHandler(t *testing.T) {
	var got []string
	note := func(call string) func(obj interface{}) {
		return func(obj interface{}) { got = append(got, call+" "+harness.Key(obj)) }
	}
	typed := func(call string) func(obj *corev1.Pod) {
		return func(obj *corev1.Pod) { got = append(got, call+" "+harness.Key(obj)) }
	}
	update := func(oldObj, newObj interface{}) {
		got = append(got, fmt.Sprintf("update %v %s", oldObj, harness.Key(newObj)))
	}
	typedUpdate := func(oldObj, newObj *corev1.Pod) {
		require.Nil(t, oldObj)
		got = append(got, "update <nil> "+harness.Key(newObj))
	}
	typedDelete := func(d informer.DeletedObject[*corev1.Pod]) {
		require.False(t, d.FinalStateUnknown())
		require.Equal(t, "b", d.Object.Name)
		got = append(got, "delete "+d.Key)
	}
	for name, h := range map[string]informer.ResourceEventHandler{
		"Funcs": informer.ResourceEventHandlerFuncs{AddFunc: note("add"), UpdateFunc: update, DeleteFunc: note("delete"), SyncFunc: note("sync")},
		"DetailedFuncs": informer.ResourceEventHandlerDetailedFuncs{AddFunc: func(obj interface{}, isInInitialList bool) {
			require.True(t, isInInitialList)
			note("add")(obj)
		}, UpdateFunc: update, DeleteFunc: note("delete"), SyncFunc: note("sync")},
		"Typed": informer.TypedResourceEventHandlerFuncs[*corev1.Pod]{AddFunc: typed("add"), UpdateFunc: typedUpdate, DeleteFunc: typedDelete, SyncFunc: typed("sync")},
		"TypedDetailed": informer.TypedResourceEventHandlerDetailedFuncs[*corev1.Pod]{AddFunc: func(obj *corev1.Pod, isInInitialList bool) {
			require.True(t, isInInitialList)
			typed("add")(obj)
		}, UpdateFunc: typedUpdate, DeleteFunc: typedDelete, SyncFunc: typed("sync")},
		"Filtering": informer.FilteringResourceEventHandler{
			FilterFunc: func(interface{}) bool { return true },
			Handler:    informer.ResourceEventHandlerFuncs{AddFunc: note("add"), UpdateFunc: update, DeleteFunc: note("delete"), SyncFunc: note("sync")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got = nil
			tell(h, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}})
			require.Equal(t, []string{"add a/b", "update <nil> a/b", "delete a/b", "sync a/b"}, got)
		})
	}
}

func TestNilFuncsAreNotCalled(t *testing.T) {
	errs := harness.Reported(t)
	for _, h := range []informer.ResourceEventHandler{
		informer.ResourceEventHandlerFuncs{},
		informer.ResourceEventHandlerDetailedFuncs{},
		informer.TypedResourceEventHandlerFuncs[*corev1.Pod]{},
		informer.TypedResourceEventHandlerDetailedFuncs[*corev1.Pod]{},
		informer.FilteringResourceEventHandler{FilterFunc: func(interface{}) bool { return true }, Handler: informer.ResourceEventHandlerFuncs{}},
	} {
		tell(h, harness.Pod("a/1", "2"))
	}
	require.Empty(t, errs())
}

func TestTypedHandlerIsToldDeletions(t *testing.T) {
	errs := harness.Reported(t)
	var got []informer.DeletedObject[*corev1.Pod]
	h := informer.TypedResourceEventHandlerFuncs[*corev1.Pod]{DeleteFunc: func(d informer.DeletedObject[*corev1.Pod]) { got = append(got, d) }}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}}
	last := &metav1.PartialObjectMetadata{ObjectMeta: p.ObjectMeta}
	h.OnDelete(p)
	h.OnDelete(cache.DeletedFinalStateUnknown{Key: "a/b", Obj: p})
	h.OnDelete(cache.DeletedFinalStateUnknown{Key: "a/b", Obj: last})
	require.Empty(t, errs())
	require.Equal(t, []informer.DeletedObject[*corev1.Pod]{{Key: "a/b", Object: p}, {Key: "a/b", Object: p}, {Key: "a/b", LastKnown: last}}, got)
	require.Equal(t, []bool{false, false, true}, []bool{got[0].FinalStateUnknown(), got[1].FinalStateUnknown(), got[2].FinalStateUnknown()})

	h.OnDelete(cache.DeletedFinalStateUnknown{Key: "a/b", Obj: &corev1.ConfigMap{}})
	h.OnDelete("no object")
	h.OnDelete(nil)
	require.Len(t, errs(), 3)
	require.Len(t, got, 3)
}

func TestTypedHandlerIsNotGivenOtherTypes(t *testing.T) {
	errs := harness.Reported(t)
	never := func(*corev1.Pod) { t.Error("called") }
	h := informer.TypedResourceEventHandlerFuncs[*corev1.Pod]{
		AddFunc: never, SyncFunc: never, UpdateFunc: func(_, obj *corev1.Pod) { never(obj) },
		DeleteFunc: func(informer.DeletedObject[*corev1.Pod]) { t.Error("called") },
	}
	tell(h, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	require.Len(t, errs(), 4)
	for _, err := range errs() {
		require.ErrorContains(t, err, "*v1.ConfigMap")
		require.ErrorContains(t, err, "*v1.Pod")
	}
	h.OnUpdate(&corev1.ConfigMap{}, &corev1.Pod{})
	require.Len(t, errs(), 5)
}

func TestTypedHandlerIsGivenTheOldObject(t *testing.T) {
	before, after := &corev1.Pod{}, &corev1.Pod{}
	called := false
	informer.TypedResourceEventHandlerFuncs[*corev1.Pod]{UpdateFunc: func(oldObj, newObj *corev1.Pod) {
		called = true
		require.Same(t, before, oldObj)
		require.Same(t, after, newObj)
	}}.OnUpdate(before, after)
	require.True(t, called)
}

func TestB10FilteringHandsOnWhatPasses(t *testing.T) {
	in, in2, out, out2 := harness.Pod("in/1", "1"), harness.Pod("in/1", "2"), harness.Pod("out/1", "1"), harness.Pod("out/1", "2")
	known := cache.DeletedFinalStateUnknown{Key: "in/1", Obj: in}
	knownOut := cache.DeletedFinalStateUnknown{Key: "out/1", Obj: out}
	unknown := cache.DeletedFinalStateUnknown{Key: "out/1", Obj: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "out", Name: "1"}}}
	for name, c := range map[string]struct {
		tell func(h informer.ResourceEventHandler)
		want []string
		// asked is what FilterFunc is called with.
		asked []interface{}
	}{
		"add in":                 {func(h informer.ResourceEventHandler) { h.OnAdd(in, true) }, []string{"add in/1 initial"}, []interface{}{in}},
		"add in later":           {func(h informer.ResourceEventHandler) { h.OnAdd(in, false) }, []string{"add in/1"}, []interface{}{in}},
		"add out":                {func(h informer.ResourceEventHandler) { h.OnAdd(out, true) }, nil, []interface{}{out}},
		"sync in":                {func(h informer.ResourceEventHandler) { h.OnSync(in) }, []string{"sync in/1"}, []interface{}{in}},
		"sync out":               {func(h informer.ResourceEventHandler) { h.OnSync(out) }, nil, []interface{}{out}},
		"delete in":              {func(h informer.ResourceEventHandler) { h.OnDelete(in) }, []string{"delete in/1"}, []interface{}{in}},
		"delete out":             {func(h informer.ResourceEventHandler) { h.OnDelete(out) }, nil, []interface{}{out}},
		"delete known in":        {func(h informer.ResourceEventHandler) { h.OnDelete(known) }, []string{"delete in/1 unknown"}, []interface{}{known}},
		"delete known out":       {func(h informer.ResourceEventHandler) { h.OnDelete(knownOut) }, nil, []interface{}{knownOut}},
		"delete unknown":         {func(h informer.ResourceEventHandler) { h.OnDelete(unknown) }, []string{"delete out/1 unknown"}, nil},
		"update in to in":        {func(h informer.ResourceEventHandler) { h.OnUpdate(in, in2) }, []string{"update in/1"}, []interface{}{in2, in}},
		"update out to in":       {func(h informer.ResourceEventHandler) { h.OnUpdate(out, in) }, []string{"add in/1"}, []interface{}{in, out}},
		"update in to out":       {func(h informer.ResourceEventHandler) { h.OnUpdate(in, out) }, []string{"delete in/1"}, []interface{}{out, in}},
		"update out to out":      {func(h informer.ResourceEventHandler) { h.OnUpdate(out, out2) }, nil, []interface{}{out2, out}},
		"update unknown to in":   {func(h informer.ResourceEventHandler) { h.OnUpdate(nil, in) }, []string{"update in/1"}, []interface{}{in}},
		"update unknown and out": {func(h informer.ResourceEventHandler) { h.OnUpdate(nil, out) }, []string{"delete out/1"}, []interface{}{out}},
	} {
		t.Run(name, func(t *testing.T) {
			var r harness.Recorder
			var asked []interface{}
			c.tell(informer.FilteringResourceEventHandler{
				FilterFunc: func(obj interface{}) bool {
					require.NotNil(t, obj)
					asked = append(asked, obj)
					if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
						obj = d.Obj
					}
					return obj.(*unstructured.Unstructured).GetNamespace() == "in"
				},
				Handler: &r,
			})
			require.Equal(t, c.want, r.Events())
			require.Equal(t, c.asked, asked)
		})
	}
}

// An informer whose handler does not listen to OnSync does not queue what is
// unchanged: the adapters tell it.
func TestAdaptersWithoutASyncFuncAreStillTold(t *testing.T) {
	all := func(interface{}) bool { return true }
	for name, h := range map[string]informer.ResourceEventHandler{
		"Funcs":         informer.ResourceEventHandlerFuncs{},
		"DetailedFuncs": informer.ResourceEventHandlerDetailedFuncs{},
		"Typed":         informer.TypedResourceEventHandlerFuncs[*unstructured.Unstructured]{},
		"TypedDetailed": informer.TypedResourceEventHandlerDetailedFuncs[*unstructured.Unstructured]{},
		"Filtering":     informer.FilteringResourceEventHandler{FilterFunc: all, Handler: informer.ResourceEventHandlerFuncs{}},
	} {
		harness.SynctestRun(t, name, func(t *testing.T) {
			storage := informer.NewResourceVersionStorage()
			require.NoError(t, storage.Replace(map[string]interface{}{"a/1": "2", "a/old": "1"}))
			lw := &harness.Tap{OnList: harness.Lists(harness.List("5", "", harness.Pod("a/1", "2"), harness.Pod("a/2", "3"))), OnWatch: harness.Watches(harness.Open())}
			i := informer.NewResourceVersionInformer("test", informer.InformerConfig{ListerWatcher: lw, Handler: h, Storage: storage})
			defer harness.Settle(i.RunWithContext)()
			require.True(t, i.HasSynced())
			require.ElementsMatch(t, []string{"a/1", "a/2"}, storage.ListKeys())
		})
	}
}
