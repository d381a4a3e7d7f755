package compat_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// What a list shows is a Sync for Process, or a Replaced where the configuration says so, as with
// client-go's queue. A Process that handles no Replaced kept an empty store.
func TestControllerPopsWhatIsListedAsClientGo(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		harness.BubbleRun(t, fmt.Sprint("EmitDeltaTypeReplaced ", replaced), informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/1", "a/2")
			listed := cache.Sync
			if replaced {
				listed = cache.Replaced
			}
			popping := func(store cache.Store, popped *[]string) cache.ProcessFunc {
				return func(obj interface{}, _ bool) error {
					for _, d := range obj.(cache.Deltas) {
						*popped = append(*popped, fmt.Sprint(d.Type, " ", harness.Key(d.Object)))
						switch d.Type {
						case listed, cache.Added, cache.Updated:
							require.NoError(t, store.Add(d.Object))
						case cache.Deleted:
							require.NoError(t, store.Delete(d.Object))
						}
					}
					return nil
				}
			}
			var theirs, ours []string
			reference, store := cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc), cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc)
			queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: reference, EmitDeltaTypeReplaced: replaced})
			c := cache.New(&cache.Config{
				Queue: queue, ListerWatcher: w.Lister(), ObjectType: &unstructured.Unstructured{}, Process: popping(reference, &theirs),
			})
			o := informer.NewNamedController("pods", &informer.Config{
				ListerWatcher: w.Lister(), ObjectType: &unstructured.Unstructured{}, Process: popping(store, &ours), EmitDeltaTypeReplaced: replaced,
			})
			defer harness.Settle(c.RunWithContext)()
			defer harness.Settle(o.RunWithContext)()
			w.UpdatePod("a/1", "changed")
			w.DeletePods("a/2")
			w.CreatePods("a/3")
			synctest.Wait()
			require.ElementsMatch(t, theirs[:2], ours[:2], "the list")
			require.Equal(t, theirs[2:], ours[2:])
			require.ElementsMatch(t, reference.ListKeys(), store.ListKeys())
		})
	}
}

// An informer with options has the name and the error handler that they say.
func TestNewInformerWithOptionsHasNameAndErrorHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lw := &harness.Tap{OnList: func(context.Context, int, metav1.ListOptions) (runtime.Object, error) {
			return nil, errors.New("refused")
		}}
		var f harness.Failures
		var r harness.Recorder
		i := informer.NewInformerWithOptions(informer.InformerOptions{
			Name: "pods of a", ListerWatcher: lw, ObjectType: &unstructured.Unstructured{}, Store: cache.NewStore(cache.MetaNamespaceKeyFunc), Handler: &r,
			WatchErrorHandler: func(reflector *informer.Reflector, err error) {
				require.Equal(t, "pods of a", reflector.Name())
				f.Handle(reflector, err)
			},
		})
		require.Equal(t, "pods of a", i.HasSyncedChecker().Name())
		stop := harness.Settle(i.RunWithContext)
		require.ErrorContains(t, f.One(t), "refused")
		stop()
	})
	require.Panics(t, func() { informer.NewInformerWithOptions(informer.InformerOptions{}) })
}
