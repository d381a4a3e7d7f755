package factory

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
)

// Lease is one user's share of an informer. The informer is stopped, and
// forgotten, when its last Lease is released; but if it was also given out by
// InformerFor, which has no way back, it is not.
type Lease[I Informer] struct {
	// Informer is the informer. Handlers that were added to it are to be removed
	// before Release: others may go on with it.
	Informer I

	factory *Factory
	life    *life
	// released is nil before Release, and what Release returns; of the factory's lock.
	released <-chan struct{}
	// until ends the time for which StartUntil has started it, nil without; of the factory's
	// lock.
	until <-chan struct{}
}

// Acquire returns a lease of the informer of resource and opts: of the one that
// there is, whoever asked for it first, or else of that of newFunc. It is not
// started by that. Where the one that there is has been stopped, it is another one, of
// newFunc again.
//
// The error is a *RequestError if newFunc is nil or returns nil, and if there can
// be no such informer (NewKey), and a *TransformConflictError if the one that there is
// has another ObjectTransform, or may have.
func (f *Factory) Acquire(resource schema.GroupVersionResource, opts InformerOptions, newFunc NewInformerFunc) (*Lease[cache.SharedIndexInformer], error) {
	a, err := askForShared(resource, opts, newFunc)
	if err != nil {
		return nil, err
	}
	return acquire[cache.SharedIndexInformer](f, a)
}

// AcquireResourceVersion is Acquire for an informer that keeps resource versions only.
// The InformerType of opts is ResourceVersionInformer, whatever it says. The informer
// has the one handler of its configuration, that of the first request.
func (f *Factory) AcquireResourceVersion(resource schema.GroupVersionResource, opts InformerOptions, newFunc NewResourceVersionInformerFunc) (*Lease[informer.ResourceVersionInformer], error) {
	a, err := askForResourceVersion(resource, opts, newFunc)
	if err != nil {
		return nil, err
	}
	return acquire[informer.ResourceVersionInformer](f, a)
}

// AcquireSharedResourceVersion is Acquire for an informer that keeps resource versions only,
// and has any number of handlers: see ResourceVersionInformerFor. Handlers are removed before
// Release, with RemoveHandler: others may go on with the informer. It panics as
// informer.NewSharedResourceVersionInformer does if config cannot work.
func (f *Factory) AcquireSharedResourceVersion(resource schema.GroupVersionResource, opts InformerOptions, config informer.InformerConfig) (*Lease[*informer.SharedResourceVersionInformer], error) {
	a, err := askForSharedResourceVersion(resource, opts, config)
	if err != nil {
		return nil, err
	}
	return acquire[*informer.SharedResourceVersionInformer](f, a)
}

func acquire[I Informer](f *Factory, a ask) (*Lease[I], error) {
	a.settle = func(conflict *TransformConflictError) error { return conflict }
	a.take = func(l *life) { l.users++ }
	l, i, err := f.answer(a)
	if err != nil {
		return nil, err
	}
	return &Lease[I]{Informer: i.(I), factory: f, life: l}, nil
}

// Key is what the informer was asked for with.
func (l *Lease[I]) Key() Key { return l.life.key }

// Start starts the informer, and no other. It runs until its last lease is released,
// or the factory is told to stop it or shut down. It is no error if it runs already,
// whoever has started it. The error is ErrStopped, also when this lease was released,
// or ErrShutDown, by errors.Is.
func (l *Lease[I]) Start() error { return l.start(channelScope(nil), nil) }

// StartWithContext is Start for an informer that runs with the values of ctx, a
// logger for instance. That ctx ends, does not end it.
func (l *Lease[I]) StartWithContext(ctx context.Context) error {
	return l.start(scope{ctx: context.WithoutCancel(ctx)}, nil)
}

// StartUntil is StartWithContext for a user that releases the lease soon after ctx has ended.
// From that end on, the lease does not keep the informer for others: once the context of each
// lease has ended, the next request for the key gets another informer, also before the last
// Release.
func (l *Lease[I]) StartUntil(ctx context.Context) error {
	return l.start(scope{ctx: context.WithoutCancel(ctx)}, ctx.Done())
}

func (l *Lease[I]) start(s scope, until <-chan struct{}) error {
	f := l.factory
	f.noteStopped(l.life.key)
	f.mu.Lock()
	defer f.mu.Unlock()
	if l.released != nil {
		return fmt.Errorf("starting the informer of %v: %w", l.life.key, errReleased)
	}
	if err := f.startLocked(l.life, s); err != nil {
		return err
	}
	l.setUntilLocked(until)
	return nil
}

// setUntilLocked has the lease count until a channel is closed; nil: until its Release.
func (l *Lease[I]) setUntilLocked(until <-chan struct{}) {
	if l.until != nil {
		i := slices.Index(l.life.until, l.until)
		l.life.until = slices.Delete(l.life.until, i, i+1)
	}
	if l.until = until; until != nil {
		l.life.until = append(l.life.until, until)
	}
}

// Stopped reports whether the informer has ended or was told to: the next request for its key
// gets another one.
func (l *Lease[I]) Stopped() bool {
	f := l.factory
	f.noteStopped(l.life.key)
	f.mu.Lock()
	defer f.mu.Unlock()
	return l.life.removed || l.life.over()
}

var errReleased = fmt.Errorf("%w: this lease was released", ErrStopped)

// Release ends the lease. It does not wait. If it was the last one, the informer
// is stopped, and the channel is closed when its goroutines have ended; otherwise it
// is closed already. The informer's own handlers may not wait for that. A
// second Release changes nothing, and returns the same channel.
func (l *Lease[I]) Release() (ended <-chan struct{}) {
	f := l.factory
	f.mu.Lock()
	defer f.mu.Unlock()
	if l.released == nil {
		l.life.users--
		l.setUntilLocked(nil)
		last := l.life.users == 0
		if last && !l.life.pinned {
			f.dropLocked(l.life)
		}
		l.released = closed
		if last && l.life.removed {
			l.released = l.life.done
		}
	}
	return l.released
}

// Done is closed when the informer has ended, for whatever reason: its goroutines
// have. A user that goes on without it releases the lease, and acquires another one.
func (l *Lease[I]) Done() <-chan struct{} { return l.life.done }

// Status is how the informer is.
func (l *Lease[I]) Status() Status { return l.factory.statusOf(l.life) }

var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
