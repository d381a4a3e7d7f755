package objectcache_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
)

// keepDecoded has the informers of a test keep their objects decoded.
var keepDecoded bool

// TestDecodedDoesWhatEncodedDoes runs the tests of informers, client-go's among them, with objects
// that are kept decoded.
func TestDecodedDoesWhatEncodedDoes(t *testing.T) {
	keepDecoded = true
	defer func() { keepDecoded = false }()
	for name, test := range map[string]func(*testing.T){
		"TestListenerResyncPeriods":                       TestListenerResyncPeriods,
		"TestResyncCheckPeriod":                           TestResyncCheckPeriod,
		"TestSharedInformerInitializationRace":            TestSharedInformerInitializationRace,
		"TestSharedInformerWatchDisruption":               TestSharedInformerWatchDisruption,
		"TestSharedInformerErrorHandling":                 TestSharedInformerErrorHandling,
		"TestSharedInformerStartRace":                     TestSharedInformerStartRace,
		"TestSharedInformerTransformer":                   TestSharedInformerTransformer,
		"TestSharedInformerRemoveHandler":                 TestSharedInformerRemoveHandler,
		"TestSharedInformerRemoveForeignHandler":          TestSharedInformerRemoveForeignHandler,
		"TestSharedInformerMultipleRegistration":          TestSharedInformerMultipleRegistration,
		"TestRemovingRemovedSharedInformer":               TestRemovingRemovedSharedInformer,
		"TestSharedInformerHandlerAbuse":                  TestSharedInformerHandlerAbuse,
		"TestStateSharedInformer":                         TestStateSharedInformer,
		"TestAddOnStoppedSharedInformer":                  TestAddOnStoppedSharedInformer,
		"TestRemoveOnStoppedSharedInformer":               TestRemoveOnStoppedSharedInformer,
		"TestRemoveWhileActive":                           TestRemoveWhileActive,
		"TestAddWhileActive":                              TestAddWhileActive,
		"TestShutdown":                                    TestShutdown,
		"TestEventPanics":                                 TestEventPanics,
		"TestRemoveEventHandler_AsynchronousPanic":        TestRemoveEventHandler_AsynchronousPanic,
		"TestRemoveEventHandler_SynchronousShutdown":      TestRemoveEventHandler_SynchronousShutdown,
		"TestShutDownEventHandler_Lifecycles":             TestShutDownEventHandler_Lifecycles,
		"TestHandlerGetsEveryChange":                      TestHandlerGetsEveryChange,
		"TestMetadataHasKindOfExample":                    TestMetadataHasKindOfExample,
		"TestRelistTellsWhatDiffers":                      TestRelistTellsWhatDiffers,
		"TestRestoredServerIsFollowedBack":                TestRestoredServerIsFollowedBack,
		"TestRestoredServerThatRepeatsVersionsIsReadAnew": TestRestoredServerThatRepeatsVersionsIsReadAnew,
		"TestSlowHandlerHoldsUpNobody":                    TestSlowHandlerHoldsUpNobody,
		"TestLateHandlerMissesNothingUnderLoad":           TestLateHandlerMissesNothingUnderLoad,
		"TestResyncDoesNotPileUp":                         TestResyncDoesNotPileUp,
		"TestHandlerRemovesItself":                        TestHandlerRemovesItself,
		"TestHandlerThatEndsItsGoroutineIsCalledOn":       TestHandlerThatEndsItsGoroutineIsCalledOn,
		"TestPanicsAreSurvivedWhereAllowed":               TestPanicsAreSurvivedWhereAllowed,
		"TestTransform":                                   TestTransform,
		"TestObjectsThatTransformRefusesAreSkipped":       TestObjectsThatTransformRefusesAreSkipped,
		"TestObjectThatAnIndexFunctionRefusesIsSkipped":   TestObjectThatAnIndexFunctionRefusesIsSkipped,
		"TestForeignListerWatcher":                        TestForeignListerWatcher,
		"TestSourceThatMakesNoVersions":                   TestSourceThatMakesNoVersions,
		"TestUndecodableObjectsAreSkipped":                TestUndecodableObjectsAreSkipped,
		"TestDeletionsAmongInitialEventsCount":            TestDeletionsAmongInitialEventsCount,
		"TestWatchErrorHandler":                           TestWatchErrorHandler,
		"TestInformerRunsOnce":                            TestInformerRunsOnce,
		"TestStallIsNoticed":                              TestStallIsNoticed,
	} {
		t.Run(name, test)
	}
}

// pointers has the objects of the last call for each pod.
type pointers map[string]*corev1.Pod

func (p pointers) OnAdd(obj interface{}, _ bool) { p[obj.(*corev1.Pod).Name] = obj.(*corev1.Pod) }

func (p pointers) OnUpdate(old, obj interface{}) {
	p["old "+old.(*corev1.Pod).Name] = old.(*corev1.Pod)
	p.OnAdd(obj, false)
}

func (p pointers) OnDelete(obj interface{}) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	p["gone "+obj.(*corev1.Pod).Name] = obj.(*corev1.Pod)
}

func TestDecodedObjectsAreShared(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2", "a/3")
		var decoded atomic.Int32
		i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{
			Decoded:  true,
			Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
			Transform: func(obj interface{}) (interface{}, error) {
				decoded.Add(1)
				return obj, nil
			},
		})
		require.Nil(t, i.Store())
		early, late := pointers{}, pointers{}
		for _, h := range []pointers{early, {}} {
			_, err := i.AddEventHandler(h)
			require.NoError(t, err)
		}
		defer w.run(i)()
		_, err := i.AddEventHandler(late)
		require.NoError(t, err)
		synctest.Wait()
		get := func(name string) *corev1.Pod {
			obj, exists, err := i.GetIndexer().GetByKey("a/" + name)
			require.NoError(t, err)
			require.True(t, exists)
			return obj.(*corev1.Pod)
		}
		first := get("1")
		require.Equal(t, 3, i.Status().Objects)
		for _, name := range []string{"1", "2", "3"} {
			require.Same(t, get(name), early[name])
			require.Same(t, get(name), late[name])
		}
		for _, obj := range i.GetStore().List() {
			require.Same(t, get(obj.(*corev1.Pod).Name), obj)
		}

		second, third := get("2"), get("3")
		w.update("a/2", "x")
		synctest.Wait()
		require.Same(t, second, early["old 2"])
		require.Same(t, get("2"), late["2"])

		before := decoded.Load()
		heal := w.Inject(informertest.Fault{Effect: informertest.Refuse()})
		w.update("a/2", "y")
		w.remove("a/3")
		w.Compact()
		heal()
		sleep(5 * time.Minute)
		require.Same(t, first, get("1"), "a list that shows it unchanged")
		require.Same(t, third, early["gone 3"])
		require.EqualValues(t, before+1, decoded.Load(), "only what has changed is decoded")
		require.Equal(t, 2, i.Status().Objects)
		w.requireInStep(i)
	})
}

func TestDecodedChangesAreCopiedOnRequest(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1")
		i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{Decoded: true})
		var changes []objectcache.Change
		_, err := i.AddChangeHandler(func(c objectcache.Change) { changes = append(changes, c) }, cache.HandlerOptions{})
		require.NoError(t, err)
		defer w.run(i)()
		require.Len(t, changes, 1)
		require.Equal(t, informer.Added, changes[0].Type)
		require.Equal(t, "a/1", changes[0].Key)
		added := changes[0].New
		require.Equal(t, "a/1", added.Key())
		kept, err := added.Shared()
		require.NoError(t, err)
		require.Same(t, i.GetStore().List()[0], kept)
		own, err := added.Decode()
		require.NoError(t, err)
		require.NotSame(t, kept, own)
		require.Equal(t, kept, own)

		pod, partial, u := &corev1.Pod{}, &metav1.PartialObjectMetadata{}, &unstructured.Unstructured{}
		require.NoError(t, added.DecodeInto(pod))
		require.NotSame(t, kept, pod)
		require.Equal(t, kept, pod)
		require.NoError(t, added.DecodeInto(partial))
		require.NoError(t, added.DecodeInto(u))
		require.Equal(t, pod.UID, partial.UID)
		require.Equal(t, pod.UID, u.GetUID())
		require.ErrorContains(t, added.DecodeInto(&corev1.Node{}), `a/1`)
	})
}

func TestCallersMayWriteToDecodedObjects(t *testing.T) {
	i := objectcache.NewSharedIndexInformerWithOptions(&cache.ListWatch{}, &corev1.Pod{}, objectcache.Options{Decoded: true})
	pod := podOf("a", "1", "u", "1")
	require.NoError(t, i.GetIndexer().Add(pod))
	require.NoError(t, i.GetIndexer().Add(pod))
	require.Equal(t, 1, i.Status().Objects)
	require.NoError(t, i.GetStore().Replace([]interface{}{pod, podOf("a", "2", "u", "2")}, "2"))
	require.Equal(t, 2, i.Status().Objects)
	require.Equal(t, "2", i.Status().ResourceVersion)
	require.NoError(t, i.GetStore().Delete(pod))
	require.Equal(t, 1, i.Status().Objects)
	require.Error(t, i.GetStore().Add("no object"))
}
