package controller_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/controller"
	"github.com/rvinformer/informer/factory"
)

// An informer of a factory is the factory's to run, from when it was started: a controller that begins right then
// leaves it alone, and others go on with it.
func TestAnInformerOfAFactory(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1")
		f := factory.New()
		acquire := func() *factory.Lease[cache.SharedIndexInformer] {
			lease, err := f.Acquire(pods, factory.InformerOptions{}, w.shared)
			require.NoError(w, err)
			return lease
		}
		for range 20 {
			others, mine := acquire(), acquire()
			var x target
			require.NoError(w, mine.Start())
			stop := start(&controller.Controller{Resource: x.of(mine.Informer)})
			time.Sleep(time.Minute)
			require.Equal(w, []string{"upsert a/1=1"}, x.told())
			stop()
			<-mine.Release()
			synctest.Wait()
			require.False(w, others.Informer.IsStopped())
			select {
			case <-others.Done():
				require.Fail(w, "the factory takes it for ended")
			default:
			}
			<-others.Release()
			require.True(w, others.Informer.IsStopped())
		}
		f.Shutdown()
		require.Empty(w, w.reported.all())
	})
}
