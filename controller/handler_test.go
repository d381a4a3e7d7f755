package controller_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/controller"
	"github.com/rvinformer/informer/tests/harness"
)

// handler is a Resource that brings x in line as one handler of an informer that is run by others
// until the test ends.
func (w *world) handler(x *target, config informer.HandlerConfig) controller.HandlerResource {
	w.Helper()
	shared := harness.Share(w.World, informer.InformerConfig{})
	w.Cleanup(harness.Start(shared.RunWithContext))
	return controller.NewHandlerResource(shared, config, x.Upsert, x.Delete)
}

// Controllers and handlers are on one watch, and leave each other alone.
func TestControllersOfOneInformer(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1", "a/2")
		var x, y target
		r := w.handler(&x, informer.HandlerConfig{Name: "x"})
		shared, _ := r.SharedInformer()
		one := &controller.Controller{Resource: r}
		other := &controller.Controller{Resource: controller.NewHandlerResource(shared, informer.HandlerConfig{Name: "y"}, y.Upsert, y.Delete), Workers: 3}
		require.False(w, one.HasSynced())
		require.Empty(w, one.LastSyncResourceVersion())
		stop := start(one)
		defer start(other)()
		synctest.Wait()
		require.True(w, one.HasSynced())
		require.Equal(w, w.ResourceVersion(), one.LastSyncResourceVersion())
		require.ElementsMatch(w, []string{"upsert a/1=1", "upsert a/2=1"}, y.told())
		require.Equal(w, []string{"upsert a/1=1", "upsert a/2=1"}, x.told())
		require.Equal(w, 2, len(shared.Handlers()))
		stop()
		require.Equal(w, 1, len(shared.Handlers()))

		w.UpdatePod("a/1", "2")
		w.DeletePods("a/2")
		synctest.Wait()
		require.ElementsMatch(w, []string{"upsert a/1=2", "delete a/2=1"}, y.told())
		require.Empty(w, x.told())
		stop = start(one) // which tells what differs
		synctest.Wait()
		require.ElementsMatch(w, []string{"upsert a/1=2", "delete a/2=rv3"}, x.told())
		stop()
	})
}

func TestBadHandlerResources(t *testing.T) {
	bubble(t, func(w *world) {
		var x target
		shared, _ := w.handler(&x, informer.HandlerConfig{}).SharedInformer()
		for want, bad := range map[string]func(){
			`controller: HandlerResource: the informer is required`: func() { controller.NewHandlerResource(nil, informer.HandlerConfig{}, x.Upsert, x.Delete) },
			`controller: HandlerResource: Handler is set, but a Resource is called instead`: func() {
				controller.NewHandlerResource(shared, informer.HandlerConfig{Handler: informer.ResourceEventHandlerFuncs{}}, x.Upsert, x.Delete)
			},
			`controller: HandlerResource: BatchHandler is set, but a Resource is called instead`: func() {
				controller.NewHandlerResource(shared, informer.HandlerConfig{BatchHandler: informer.BatchHandlerFunc(nil)}, x.Upsert, x.Delete)
			},
			`controller: HandlerResource: MaxBatch is set, but a Resource has no batches`: func() {
				controller.NewHandlerResource(shared, informer.HandlerConfig{MaxBatch: 2}, x.Upsert, x.Delete)
			},
			`controller: NewHandlerResource: the upsert function is required`: func() { controller.NewHandlerResource(shared, informer.HandlerConfig{}, nil, x.Delete) },
			`controller: NewHandlerResource: the delete function is required`: func() { controller.NewHandlerResource(shared, informer.HandlerConfig{}, x.Upsert, nil) },
		} {
			require.PanicsWithValue(w, want, bad)
		}
	})
}
