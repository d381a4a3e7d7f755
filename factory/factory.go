package factory

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// InformerFactory gives out shared informers, and starts and waits for all of
// them. *Factory is one, and does more.
type InformerFactory interface {
	// Start starts all informers that were asked for and are not started yet. They
	// run until stopCh is closed. It does not wait.
	Start(stopCh <-chan struct{})

	// InformerFor returns the informer of resource and opts: the one that there is,
	// whoever asked for it first, or else that of newFunc.
	InformerFor(resource schema.GroupVersionResource, opts InformerOptions, newFunc NewInformerFunc) StartableInformer

	// WaitForCacheSync waits until all informers that are started by now have synced,
	// and returns true, or false if stopCh is closed before. Where all have synced,
	// that is true whether stopCh is closed or not.
	WaitForCacheSync(stopCh <-chan struct{}) bool

	// Shutdown keeps informers from being started: from then on, Start does
	// nothing. It returns when all goroutines have ended, those of informers for
	// which somebody has to close a stop channel included. It may be called any number of
	// times, also at the same time; each call waits.
	Shutdown()
}

// NewSharedInformerFactory returns a factory for all namespaces and clusters. It
// is New, for who needs no more than an InformerFactory.
func NewSharedInformerFactory() InformerFactory { return New() }

// Factory is a registry of shared informers of any kind. It is safe for
// concurrent use, and none of its functions waits for a server, or calls anything
// with a lock held.
type Factory struct {
	mu sync.Mutex
	// lives has the informers by key. What has ended stays, if nobody has told the factory
	// to let go of it, for WaitForCacheSync to say that it is not synced.
	lives map[Key]*life
	// turns and leashes have only what is in use.
	turns   map[Key]*turn
	leashes map[<-chan struct{}]*leash
	// goroutines counts those that the factory has started.
	goroutines int
	// quiet is nil before Shutdown, and closed when there are no goroutines after it.
	quiet chan struct{}
}

var _ InformerFactory = &Factory{}

// New returns a factory without informers.
func New() *Factory {
	return &Factory{
		lives:   map[Key]*life{},
		turns:   map[Key]*turn{},
		leashes: map[<-chan struct{}]*leash{},
	}
}

// InformerFor returns the informer of resource and opts: the one that there is,
// whoever asked for it first, or else that of newFunc. Where the one that there is
// has been stopped, it is another one, of newFunc again.
//
// If the informer that there is has another ObjectTransform, it is returned all the
// same; that is logged, unless it is only possible. TryInformerFor has an error for it.
//
// It panics with a *RequestError, which names the resource, if newFunc is nil or
// returns nil, and if there can be no such informer (NewKey).
func (f *Factory) InformerFor(resource schema.GroupVersionResource, opts InformerOptions, newFunc NewInformerFunc) StartableInformer {
	s, err := f.informerFor(resource, opts, newFunc, func(conflict *TransformConflictError) error {
		if conflict.certain() {
			klog.Background().Info("The informer has another transform than asked for", "informer", conflict.Key.String(), "has", conflict.Have.String(), "asked", conflict.Asked.String())
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	return s
}

// TryInformerFor is InformerFor with an error, instead of a panic or a log. A
// *TransformConflictError says that the informer that there is has another
// ObjectTransform, or may have; the informer is not returned then.
func (f *Factory) TryInformerFor(resource schema.GroupVersionResource, opts InformerOptions, newFunc NewInformerFunc) (StartableInformer, error) {
	return f.informerFor(resource, opts, newFunc, func(conflict *TransformConflictError) error { return conflict })
}

func (f *Factory) informerFor(resource schema.GroupVersionResource, opts InformerOptions, newFunc NewInformerFunc, settle func(*TransformConflictError) error) (StartableInformer, error) {
	a, err := askForShared(resource, opts, newFunc)
	if err != nil {
		return StartableInformer{}, err
	}
	a.settle = settle
	a.take = func(l *life) { l.pinned = true }
	l, i, err := f.answer(a)
	if err != nil {
		return StartableInformer{}, err
	}
	return StartableInformer{Informer: i.(cache.SharedIndexInformer), factory: f, life: l}, nil
}

// StartableInformer is an informer that can be started on its own.
type StartableInformer struct {
	// Informer is the informer.
	Informer cache.SharedIndexInformer

	factory *Factory
	life    *life
}

// Start starts the informer, and no other, until stopCh is closed; nil: until
// the factory is told to stop it, or shut down. It does nothing if the informer was
// started before, by whomever, or if the factory is shut down. A StartableInformer
// that is not a factory's has nothing to start.
func (s StartableInformer) Start(stopCh <-chan struct{}) {
	if s.factory != nil {
		_ = s.factory.startLife(s.life, channelScope(stopCh)) // why it is not started, the caller can not be told
	}
}

// Shutdown is ShutdownWithContext with no end to its patience.
func (f *Factory) Shutdown() { _ = f.ShutdownWithContext(context.Background()) }

// ShutdownWithContext keeps informers from being started, and stops those that
// have no stop channel or context, as those of leases. It returns when all goroutines
// have ended: those of informers that were started with a channel, when somebody has closed it. The
// error is context.Cause of ctx, if that has ended before.
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
		for _, l := range f.lives {
			if l.active() && l.stop == nil {
				l.cancel()
			}
		}
	}
	return f.quiet
}

// goLocked starts a goroutine that the factory waits for.
func (f *Factory) goLocked(run func()) {
	f.goroutines++
	go func() {
		defer f.returned()
		run()
	}()
}

func (f *Factory) returned() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.goroutines--; f.goroutines == 0 && f.quiet != nil {
		close(f.quiet)
	}
}
