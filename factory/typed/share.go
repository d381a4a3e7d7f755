package typed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/sharding"
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
	// finish is what end does once.
	finish sync.Once
	// ended is closed when the handlers have returned and, if this is the last share of the
	// informer, that has ended.
	ended chan struct{}

	mu sync.Mutex
	// stop is closed when the context ends that it was started with; nil: without a start, or
	// an end.
	stop <-chan struct{}
	// closing tells that no handlers are added any more, and that the lease is given back.
	closing bool
	// adding counts the handlers that are being added. It grows only with mu, and not when
	// closing.
	adding sync.WaitGroup
	// handles are those of the handlers.
	handles map[cache.ResourceEventHandlerRegistration]struct{}
	// removed are closed when the last calls of removed handlers have returned.
	removed []<-chan struct{}
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
	if !s.beginAdding() {
		return nil, fmt.Errorf("%v: %w", s.lease.Key(), errEnded)
	}
	defer s.adding.Done()
	handle, err := s.SharedIndexInformer.AddEventHandlerWithOptions(handler, options)
	if err == nil {
		s.keep(handle)
	}
	return handle, err
}

func (s *share) beginAdding() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		s.adding.Add(1)
	}
	return !s.closing
}

func (s *share) keep(handle cache.ResourceEventHandlerRegistration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handles == nil {
		s.handles = map[cache.ResourceEventHandlerRegistration]struct{}{}
	}
	s.handles[handle] = struct{}{}
}

// RemoveEventHandler does not wait for the last call of the handler; Shutdown does.
func (s *share) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	err := s.SharedIndexInformer.RemoveEventHandler(handle)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removed = slices.DeleteFunc(s.removed, isClosed)
	if _, ok := s.handles[handle]; ok {
		delete(s.handles, handle)
		if returned := noMoreCalls(handle); returned != nil {
			s.removed = append(s.removed, returned)
		}
	}
	return err
}

// AddIndexers adds indexes for all users of the informer. The error is that of the informer, or says
// that it has stopped for this factory.
func (s *share) AddIndexers(indexers cache.Indexers) error {
	switch {
	case s.IsStopped():
		return fmt.Errorf("%v: indexer was not added because it has stopped already", s.lease.Key())
	case s.successor != nil:
		return s.successor.addIndexers(s.SharedIndexInformer.AddIndexers, indexers)
	}
	return s.SharedIndexInformer.AddIndexers(indexers)
}

// SetTransform is as client-go's where the informer is this factory's alone.
func (s *share) SetTransform(transform cache.TransformFunc) error {
	if s.factory.shares {
		return fmt.Errorf("%v: the informer may be shared: its transform is set with WithTransform", s.lease.Key())
	}
	return s.SharedIndexInformer.SetTransform(transform)
}

// SetShardSelector is as client-go's from 0.38 on where the informer is this factory's alone. The
// error says that others may read the informer, that it has started, or that it cannot follow the
// shard.
func (s *share) SetShardSelector(selector sharding.Selector) error {
	if s.factory.shares {
		return fmt.Errorf("%v: the informer may be shared: its shard is set with WithShardSelector", s.lease.Key())
	}
	return setShard(s.SharedIndexInformer, selector)
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
	return s.closing || isClosed(s.stop)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// startsUntil notes when the share is over.
func (s *share) startsUntil(stop <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop = stop
}

// leave begins the end: the next request gets another share, of another informer if this was
// the last of this one. It does not wait.
func (s *share) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	s.lease.Release()
}

// end gives the lease back and takes the handlers away. It returns when these have returned
// and, if this is the last share, the informer has ended.
func (s *share) end() {
	s.leave()
	s.finish.Do(func() {
		defer close(s.ended)
		s.adding.Wait()
		if s.lease.Stopped() {
			// Client-go's informers do not bear that a handler is removed while they end: a
			// third one that asks its informer something would wait for ever.
			<-s.lease.Done()
		}
		handles, removed := s.takeHandlers()
		for handle := range handles {
			// With an error the informer has no such handle: then there is nothing to wait for.
			if returned := noMoreCalls(handle); s.SharedIndexInformer.RemoveEventHandler(handle) == nil && returned != nil {
				removed = append(removed, returned)
			}
		}
		for _, returned := range removed {
			<-returned
		}
		<-s.lease.Release() // the channel of the Release of leave
	})
}

// noMoreCalls returns a channel that is closed when a removed handler is called no more; nil if the
// informer does not tell, as those of client-go before 0.37 do not.
func noMoreCalls(handle cache.ResourceEventHandlerRegistration) <-chan struct{} {
	if h, ok := handle.(interface{ ShutdownChan() <-chan struct{} }); ok {
		return h.ShutdownChan()
	}
	return nil
}

func (s *share) takeHandlers() (handles map[cache.ResourceEventHandlerRegistration]struct{}, removed []<-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	handles, removed = s.handles, s.removed
	s.handles, s.removed = nil, nil
	return handles, removed
}
