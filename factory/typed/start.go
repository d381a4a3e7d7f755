package typed

import (
	"context"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Start is StartWithContext for a channel; nil: until Shutdown.
func (f *Factory) Start(stopCh <-chan struct{}) { f.StartWithContext(wait.ContextForChannel(stopCh)) }

// StartWithContext starts all informers that were asked for by now, through this
// factory, and are not started yet. They are this factory's until ctx ends: then their
// handlers are removed, and those without another user end. It does not wait. They run
// with the values of ctx, a logger for instance, unless others have started them before.
// One that its registry was told to stop meanwhile has ended. After Shutdown it does nothing.
func (f *Factory) StartWithContext(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		if m.share != nil {
			f.startLocked(ctx, m.share)
		}
	}
	if ctx.Done() == nil {
		ctx = wait.ContextForChannel(f.quit)
	}
	f.laterGroups.StartWithContext(ctx)
}

// start starts one, and tells whether it did.
func (f *Factory) start(ctx context.Context, s *share) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.startLocked(ctx, s)
}

func (f *Factory) startLocked(ctx context.Context, s *share) bool {
	if f.shut || s.started || s.over() {
		return false
	}
	s.started = true
	s.startsUntil(ctx.Done())
	// The error is that the registry was told to stop it, or to shut down. A wait for its sync
	// has to end.
	if err := s.lease.StartUntil(ctx); err != nil {
		f.ending.Go(s.end)
		return false
	}
	if s.successor != nil {
		s.successor.begin()
	}
	quit := f.quit
	if ctx.Done() != nil {
		quit = nil // its caller ends ctx
	}
	f.ending.Go(func() {
		select {
		case <-ctx.Done():
		case <-s.lease.Done(): // the registry was told to stop it
		case <-quit:
		}
		s.end()
	})
	return true
}

// Shutdown keeps informers from being started through this factory, and returns when
// those that were have ended for it: those that end with a channel or
// a context of the caller's, when that has happened. Then the name of WithInformerName is released.
// A handler of an informer of client-go before 0.37 that others keep may still be in its last call.
// It may be called any number of times, also at the same time; each call waits.
//
// Informers can still be asked for, and never run, unless others run them.
func (f *Factory) Shutdown() {
	for _, s := range f.shutDown() {
		s.end()
	}
	f.ending.Wait()
	f.laterGroups.Shutdown()
	if !f.shares {
		f.registry.Shutdown()
	}
	f.releaseServer()
	f.informerName.Release()
}

// shutDown returns the shares that were never started.
func (f *Factory) shutDown() (idle []*share) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.shut {
		f.shut = true
		close(f.quit)
	}
	for _, m := range f.members {
		if m.share != nil && !m.share.started {
			idle = append(idle, m.share)
		}
	}
	return idle
}
