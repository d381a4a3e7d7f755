package delivery_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// A bubble does not end while a goroutine is left in it.

// Process, as an assertion that fails, may end the goroutine that tries it again.
func TestGoexitInARetriedProcess(t *testing.T) {
	for name, queue := range map[string]func() cache.Queue{
		"a queue of the controller's": func() cache.Queue { return nil },
		"a DeltaFIFO": func() cache.Queue {
			return cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KeyFunction: cache.MetaNamespaceKeyFunc, EmitDeltaTypeReplaced: true})
		},
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/1")
			var calls atomic.Int32
			var handled sync.Map
			i := informer.NewNamedController("pods", &informer.Config{
				Queue: queue(), ListerWatcher: w.Lister(), RetryOnError: true, ForcePaginatedList: true, WatchErrorHandler: harness.IgnoreErrors,
				Process: func(obj interface{}, _ bool) error {
					key := harness.Key(obj.(cache.Deltas).Newest().Object)
					if key == "a/1" {
						if calls.Add(1) == 1 {
							return errors.New("not yet")
						}
						runtime.Goexit()
					}
					handled.Store(key, true)
					return nil
				},
			})
			stop := harness.Start(i.RunWithContext)
			time.Sleep(time.Minute)
			require.EqualValues(t, 2, calls.Load())
			if queue() != nil { // the retry has a goroutine of its own
				w.CreatePods("a/2")
				time.Sleep(time.Minute)
				_, ok := handled.Load("a/2")
				require.True(t, ok, "others go on")
			}
			stop()
		})
	}
}

func TestGoexitInTheFirstProcessEndsRun(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		i := informer.NewNamedController("pods", &informer.Config{
			Queue:         cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KeyFunction: cache.MetaNamespaceKeyFunc, EmitDeltaTypeReplaced: true}),
			ListerWatcher: w.Lister(), RetryOnError: true, ForcePaginatedList: true,
			Process: func(interface{}, bool) error { runtime.Goexit(); return nil },
		})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			i.RunWithContext(context.Background())
		}()
		<-ended
	})
}

// An ErrorHandler or an ExtraStore that ends the goroutine of Run ends Run, in order: another one
// may follow.
func TestGoexitInTheGoroutineOfRunEndsRun(t *testing.T) {
	for name, exits := range map[string]func(c *informer.InformerConfig, exit func()){
		"ErrorHandler": func(c *informer.InformerConfig, exit func()) {
			c.ErrorHandler = func(*informer.Reflector, error) { exit() } // also when a watch has started
		},
		"ExtraStore":      func(c *informer.InformerConfig, exit func()) { c.ExtraStore = exitingStore{exit: exit} },
		"CheckpointStore": func(c *informer.InformerConfig, exit func()) { c.Checkpoint.(*exitingCheckpoint).exit = exit },
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(3)...)
			var exiting atomic.Bool
			exiting.Store(true)
			storage := informer.NewResourceVersionStorage()
			s := &exitingCheckpoint{Lockable: &harness.Lockable{MemoryCheckpoint: &harness.MemoryCheckpoint{}}}
			r := &harness.Recorder{}
			c := informer.InformerConfig{Handler: r, Storage: storage, Checkpoint: s, Workers: 2, ErrorHandler: harness.IgnoreErrors}
			exits(&c, func() {
				if exiting.Load() {
					runtime.Goexit()
				}
			})
			i := harness.Follow(w, c)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				i.RunWithContext(context.Background())
			}()
			<-ended
			require.Equal(t, informer.PhaseStopped, i.Status().Phase)
			unlock, err := s.Lock()
			require.NoError(t, err, "the checkpoint is free")
			require.NoError(t, unlock())

			exiting.Store(false)
			defer harness.Start(i.RunWithContext)()
			time.Sleep(time.Minute)
			require.True(t, i.HasSynced())
			w.RequireState(r)
		})
	}
}

// exitingStore is an ExtraStore that may end the goroutine in Add.
type exitingStore struct{ exit func() }

func (s exitingStore) Add(interface{}) error               { s.exit(); return nil }
func (s exitingStore) Update(interface{}) error            { return nil }
func (s exitingStore) Delete(interface{}) error            { return nil }
func (s exitingStore) Replace([]interface{}, string) error { return nil }

// exitingCheckpoint is a store that may end the goroutine in Load.
type exitingCheckpoint struct {
	*harness.Lockable
	exit func()
}

// An ErrorHandler that ends the goroutine that saves does not end the saving.
func TestGoexitWhileACheckpointIsSaved(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		var failing atomic.Bool
		failing.Store(true)
		full := errors.New("the disk is full")
		s := &harness.MemoryCheckpoint{OnSave: func(context.Context, int) error {
			if failing.Load() {
				return full
			}
			return nil
		}}
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, Checkpoint: s, ErrorHandler: func(_ *informer.Reflector, err error) {
			if errors.Is(err, full) {
				runtime.Goexit()
			}
		}})
		stop := harness.Start(i.RunWithContext)
		time.Sleep(10 * time.Minute)
		failing.Store(false)
		w.CreatePods("a/new")
		time.Sleep(10 * time.Minute)
		require.NotZero(t, s.Saves())
		stop()
	})
}

// The informer of a handler of a shared informer ends alone.
func TestGoexitInTheErrorHandlerOfASharedHandler(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		shared := informer.NewSharedResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: w.Lister(), ListMode: informer.ListModePaged, ErrorHandler: harness.IgnoreErrors,
		})
		exits, err := shared.AddHandler(informer.HandlerConfig{Handler: &harness.Recorder{}, ErrorHandler: func(*informer.Reflector, error) { runtime.Goexit() }})
		require.NoError(t, err)
		r := &harness.Recorder{}
		harness.AddHandler(t, shared, r)
		stop := harness.Start(shared.RunWithContext)
		time.Sleep(time.Minute)
		require.Equal(t, informer.PhaseStopped, exits.Status().Phase)
		w.CreatePods("a/2")
		synctest.Wait()
		w.RequireState(r)
		<-shared.RemoveHandler(exits)
		stop()
	})
}

func (s *exitingCheckpoint) Load(ctx context.Context) (io.ReadCloser, error) {
	if s.exit != nil {
		s.exit()
	}
	return s.Lockable.Load(ctx)
}
