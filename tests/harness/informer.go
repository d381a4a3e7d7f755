package harness

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
)

// Run runs an informer until the returned stop, which waits for it to return, or the
// test ends.
func (w *World) Run(i informer.ResourceVersionInformer) (stop func()) {
	stop = sync.OnceFunc(Start(i.RunWithContext))
	w.T.Cleanup(stop)
	return stop
}

// RunFor runs an informer for a while.
func (w *World) RunFor(i informer.ResourceVersionInformer, d time.Duration) {
	stop := w.Run(i)
	time.Sleep(d)
	stop()
}

// Follow is an informer of the pods, with what c leaves open. It lists: what is
// about watch-lists says so.
func Follow(w *World, c informer.InformerConfig) informer.ResourceVersionInformer {
	if c.ListMode == informer.ListModeAuto {
		c.ListMode = informer.ListModePaged
	}
	return FollowAuto(w, c)
}

// FollowAuto is an informer of the pods as Follow makes one, in ListModeAuto unless c has another
// mode.
func FollowAuto(w *World, c informer.InformerConfig) informer.ResourceVersionInformer {
	return informer.NewResourceVersionInformer("pods", w.completed(c))
}

// Running is an informer as Follow makes one, which runs until the test ends.
func Running(w *World, c informer.InformerConfig) informer.ResourceVersionInformer {
	return w.running(Follow(w, c))
}

// RunningAuto is an informer as FollowAuto makes one, which runs until the test ends.
func RunningAuto(w *World, c informer.InformerConfig) informer.ResourceVersionInformer {
	return w.running(FollowAuto(w, c))
}

func (w *World) running(i informer.ResourceVersionInformer) informer.ResourceVersionInformer {
	w.Run(i)
	return i
}

// Settled is an informer as Running is one. It has done all that it can do before time passes.
func Settled(w *World, c informer.InformerConfig) informer.ResourceVersionInformer {
	defer synctest.Wait()
	return Running(w, c)
}

// Share is a shared informer of the pods, with what c leaves open.
func Share(w *World, c informer.InformerConfig) *informer.SharedResourceVersionInformer {
	return informer.NewSharedResourceVersionInformer("pods", w.completed(c))
}

// AddHandler adds a handler, which must succeed.
func AddHandler(t *testing.T, s *informer.SharedResourceVersionInformer, handler informer.ResourceEventHandler) *informer.HandlerRegistration {
	t.Helper()
	h, err := s.AddEventHandler(handler)
	require.NoError(t, err)
	return h
}

// completed is c, which lists the pods and drops errors where it says nothing else.
func (w *World) completed(c informer.InformerConfig) informer.InformerConfig {
	if c.ListerWatcher == nil {
		c.ListerWatcher = w.Lister()
	}
	if c.ErrorHandler == nil {
		c.ErrorHandler = IgnoreErrors
	}
	return c
}

// Start runs an informer until the returned stop, which waits for it to return.
func Start(run func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// Settle runs an informer as Start does, in a bubble, and waits until all is quiet.
func Settle(run func(ctx context.Context)) (stop func()) {
	stop = Start(run)
	synctest.Wait()
	return stop
}

// Synced runs an informer as Start does, and waits until it has synced.
func Synced(i interface {
	RunWithContext(ctx context.Context)
	HasSyncedChecker() cache.DoneChecker
}) (stop func()) {
	stop = Start(i.RunWithContext)
	<-i.HasSyncedChecker().Done()
	return stop
}

// Fill has a storage and a recorder know what the server has.
func Fill(t *testing.T, w *World, storage *informer.ResourceVersionStorage, r *Recorder) {
	t.Helper()
	known := w.Versions()
	versions := map[string]interface{}{}
	for key, rv := range known {
		versions[key] = rv
	}
	require.NoError(t, storage.Replace(versions))
	r.Folded = known
}
