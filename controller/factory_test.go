package controller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/controller"
	"github.com/rvinformer/informer/factory"
)

// An informer of a factory is the factory's to run, from when it was started: a controller that
// begins right then leaves it alone, and others go on with it.
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
		require.Empty(w, w.reported())
	})
}

// Controllers come and go over an informer that a factory runs: none of them takes it for stopped
// because another one has just left.
func TestControllersComeAndGoOverAnInformerOfAFactory(t *testing.T) {
	bubble(t, func(w *world) {
		f := factory.New()
		lease, err := f.Acquire(pods, factory.InformerOptions{}, w.shared)
		require.NoError(w, err)
		require.NoError(w, lease.Start())
		var users sync.WaitGroup
		for range 4 {
			users.Go(func() {
				for range 200 {
					c := &controller.Controller{Resource: new(target).of(lease.Informer)}
					stop := start(c)
					select {
					case <-c.HasSyncedChecker().Done():
					case <-time.After(time.Minute):
					}
					stop()
				}
			})
		}
		users.Wait()
		require.Empty(w, w.reported())
		<-lease.Release()
		f.Shutdown()
	})
}

// Where a controller was first, the factory leaves the informer to it, and gives it out as long as
// it runs.
func TestAnInformerOfAFactoryThatAControllerRuns(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1")
		f := factory.New()
		ask := func() cache.SharedIndexInformer {
			return f.InformerFor(pods, factory.InformerOptions{}, w.shared).Informer
		}
		var x target
		first := ask()
		stop := start(&controller.Controller{Resource: x.of(first)})
		synctest.Wait()
		f.Start(nil)
		synctest.Wait()
		require.True(w, f.WaitForCacheSync(nil))
		require.Equal(w, informer.PhaseWatching, f.Statuses()[0].Phase)
		require.Same(w, first, ask())
		stop()
		require.Equal(w, []string{"upsert a/1=1"}, x.told())

		require.True(w, first.IsStopped())
		second := ask()
		require.NotSame(w, first, second)
		f.Start(nil)
		require.True(w, f.WaitForCacheSync(nil))
		require.False(w, second.IsStopped())
		f.Shutdown()
		require.True(w, second.IsStopped())
	})
}

// tellsItsEnd is a registration of client-go from 0.37 on.
type tellsItsEnd interface{ ShutdownChan() <-chan struct{} }

// An informer that its factory stops under a controller cannot be started again. The controller
// says so, where client-go tells it, and waits to be stopped.
func TestAnInformerIsStoppedUnderItsController(t *testing.T) {
	const said = "the informer was stopped: its controller is told nothing more"
	for _, synced := range []bool{true, false} {
		t.Run(fmt.Sprintf("synced=%v", synced), func(t *testing.T) {
			bubble(t, func(w *world) {
				w.create("a/1")
				if !synced {
					w.Blocked.Lock()
					defer w.Blocked.Unlock()
				}
				f := factory.New()
				lease, err := f.Acquire(pods, factory.InformerOptions{}, w.shared)
				require.NoError(w, err)
				require.NoError(w, lease.Start())
				var x target
				log := newJournal()
				c := &controller.Controller{Resource: x.of(lease.Informer), Log: log}
				stop := start(c)
				time.Sleep(time.Minute)
				require.Equal(w, synced, c.HasSynced())
				require.NotContains(w, log.String(), said)
				times := 0
				handle, err := lease.Informer.AddEventHandler(cache.ResourceEventHandlerFuncs{})
				require.NoError(w, err)
				if _, tells := handle.(tellsItsEnd); tells {
					times = 1
				}
				<-lease.Release()
				time.Sleep(time.Minute)
				require.Equal(w, times, strings.Count(log.String(), said), log.String())
				c.RunWithContext(w.Context())
				require.ErrorIs(w, errors.Join(w.reported()...), informer.ErrAlreadyRunning, "it has ended before its time")
				stop()
			})
		})
	}
}

// stoppedAtOnce is an informer that ends between being looked at, by the one that would run it, and
// being waited for.
type stoppedAtOnce struct {
	cache.SharedIndexInformer
	stop   func()
	handle cache.ResourceEventHandlerRegistration
}

func (i *stoppedAtOnce) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	handle, err := i.SharedIndexInformer.AddEventHandler(handler)
	i.handle = handle
	return handle, err
}

func (i *stoppedAtOnce) HasStarted() bool {
	<-i.handle.HasSyncedChecker().Done()
	i.stop()
	if h, tells := i.handle.(tellsItsEnd); tells {
		<-h.ShutdownChan()
	}
	return true
}

// What was listed is processed also where the informer was stopped right then.
func TestAnInformerIsStoppedAsItsControllerBegins(t *testing.T) {
	for range 20 {
		bubble(t, func(w *world) {
			w.create("a/1")
			i := &stoppedAtOnce{SharedIndexInformer: w.shared()}
			ctx, cancel := context.WithCancel(w.Context())
			var running sync.WaitGroup
			i.stop = func() {
				cancel()
				running.Wait()
			}
			running.Go(func() { i.RunWithContext(ctx) })
			var x target
			c := &controller.Controller{Resource: x.of(i), Log: newJournal()}
			defer start(c)()
			time.Sleep(time.Minute)
			require.True(w, c.HasSynced())
			require.Equal(w, []string{"upsert a/1=1"}, x.told())
			require.Empty(w, w.reported())
		})
	}
}
