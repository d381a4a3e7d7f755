package factory

import "context"

// Shutdown is ShutdownWithContext with no end to its patience.
func (f *Factory) Shutdown() { _ = f.ShutdownWithContext(context.Background()) }

// ShutdownWithContext keeps informers from being started, and stops those that have no
// stop channel or context, as those of leases. It returns when all goroutines have
// ended: those of informers that were started with a channel, when that is
// closed. The error is context.Cause of ctx, if that has ended before.
//
// Informers can still be asked for, and never run.
func (f *Factory) ShutdownWithContext(ctx context.Context) error {
	quiet := f.shutDown()
	select {
	case <-quiet:
		return nil
	case <-ctx.Done():
		if isClosed(quiet) {
			return nil
		}
		return context.Cause(ctx)
	}
}

// shutDown returns a channel that is closed when there are no goroutines.
func (f *Factory) shutDown() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.quiet == nil {
		f.quiet = make(chan struct{})
		if f.goroutines == 0 {
			close(f.quiet)
		}
		for l := range f.active {
			if l.stop == nil {
				l.cancel()
			}
		}
	}
	return f.quiet
}

// goLocked starts a goroutine that the factory waits for. The last that run does is to call
// returned.
func (f *Factory) goLocked(run func()) {
	f.goroutines++
	go run()
}

func (f *Factory) returned() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.goroutines--; f.goroutines == 0 && f.quiet != nil {
		close(f.quiet)
	}
}
