package typed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/rvinformer/informer/factory"
)

// share is an informer as one factory has it. It ends when the context ends that the
// factory has started it with; the informer behind it, with its last share.
type share struct {
	// SharedIndexInformer is the one that is shared.
	cache.SharedIndexInformer
	// successor is its indexer where it has taken the place of another share, else nil.
	successor *succession
	factory   *Factory
	kind      kind
	lease     *factory.Lease[cache.SharedIndexInformer]
	// started is guarded by the factory's lock.
	started bool
	// ended is closed when the handlers have returned and, if this is the last share of the
	// informer, that has ended.
	ended chan struct{}

	mu sync.Mutex
	// closing tells that no handlers are added any more.
	closing bool
	handles map[cache.ResourceEventHandlerRegistration]struct{}
}

var errEnded = errors.New("the handler was not added: this factory's informer has stopped already")

// GetStore is GetIndexer.
func (s *share) GetStore() cache.Store { return s.GetIndexer() }

// GetIndexer returns the indexer of the informer. In place of a stopped informer it
// answers from the objects of that one until the new one is started.
func (s *share) GetIndexer() cache.Indexer {
	if s.successor != nil {
		return s.successor
	}
	return s.SharedIndexInformer.GetIndexer()
}

func (s *share) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

func (s *share) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, period time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(handler, cache.HandlerOptions{ResyncPeriod: &period})
}

func (s *share) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	s.mu.Lock()
	closing := s.closing
	s.mu.Unlock()
	if closing {
		return nil, fmt.Errorf("%v: %w", s.lease.Key(), errEnded)
	}
	handle, err := s.SharedIndexInformer.AddEventHandlerWithOptions(handler, options)
	if err != nil {
		return handle, err
	}
	s.mu.Lock()
	closing = s.closing
	if !closing {
		if s.handles == nil {
			s.handles = map[cache.ResourceEventHandlerRegistration]struct{}{}
		}
		s.handles[handle] = struct{}{}
	}
	s.mu.Unlock()
	if closing { // meanwhile
		return nil, errors.Join(fmt.Errorf("%v: %w", s.lease.Key(), errEnded), s.SharedIndexInformer.RemoveEventHandler(handle))
	}
	return handle, nil
}

func (s *share) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	s.mu.Lock()
	delete(s.handles, handle)
	s.mu.Unlock()
	return s.SharedIndexInformer.RemoveEventHandler(handle)
}

// SetTransform is as client-go's where the informer is this factory's alone.
func (s *share) SetTransform(transform cache.TransformFunc) error {
	if s.factory.shares {
		return fmt.Errorf("%v: the informer may be shared: its transform is set with WithTransform", s.lease.Key())
	}
	return s.SharedIndexInformer.SetTransform(transform)
}

// SetWatchErrorHandler sets the handler of all users of the informer.
func (s *share) SetWatchErrorHandler(handler cache.WatchErrorHandler) error {
	return s.SetWatchErrorHandlerWithContext(func(_ context.Context, r *cache.Reflector, err error) { handler(r, err) })
}

// SetWatchErrorHandlerWithContext does the same; nil: client-go's default.
func (s *share) SetWatchErrorHandlerWithContext(handler cache.WatchErrorHandlerWithContext) error {
	if handler == nil {
		handler = cache.DefaultWatchErrorHandler
	}
	return s.SharedIndexInformer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		factory.NoteWatchError(ctx, r, err)
		handler(ctx, r, err)
	})
}

func (s *share) IsStopped() bool { return s.over() || s.SharedIndexInformer.IsStopped() }

func (s *share) Run(stopCh <-chan struct{}) { s.RunWithContext(wait.ContextForChannel(stopCh)) }

// RunWithContext starts the informer as the factory would, and returns when it has ended
// for the factory.
func (s *share) RunWithContext(ctx context.Context) {
	if !s.factory.start(ctx, s) {
		klog.FromContext(ctx).Info("The informer is not run: it was started before, or the factory is shut down", "informer", s.lease.Key().String())
		return
	}
	<-s.ended
}

// over reports whether it has ended, or is about to.
func (s *share) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// end takes the handlers away and gives the lease back. It returns when the handlers
// have returned and, if this is its last share, the informer has ended.
func (s *share) end() {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		<-s.ended
		return
	}
	s.closing = true
	handles := s.handles
	s.handles = nil
	s.mu.Unlock()
	for handle := range handles {
		// The error is that an informer of others has handles of another kind: then
		// there is nothing to wait for.
		_ = cache.ShutDownEventHandler(s.SharedIndexInformer, handle)
	}
	<-s.lease.Release()
	close(s.ended)
}
