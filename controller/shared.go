package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// shared is a SharedIndexInformer as the source of a controller.
type shared struct {
	calls    *calls
	informer cache.SharedIndexInformer
	workers  int
	queue    workqueue.TypedRateLimitingInterface[string]
	working  sync.WaitGroup

	mu sync.Mutex
	// gone are the objects that the handler was told to be deleted, and that are neither
	// back nor done with.
	gone map[string]*gone
}

// gone is the last state of an object, nil if it is not known. It is told from another one
// of its key by its address.
type gone struct{ last interface{} }

func newShared(informer cache.SharedIndexInformer, name string, workers int, limiter workqueue.TypedRateLimiter[string], calls *calls) *shared {
	if limiter == nil {
		limiter = workqueue.DefaultTypedControllerRateLimiter[string]()
	}
	config := workqueue.TypedRateLimitingQueueConfig[string]{Name: name, DelayingQueue: newDelayed(name)}
	return &shared{
		calls:    calls,
		informer: informer,
		workers:  max(workers, 1),
		queue:    workqueue.NewTypedRateLimitingQueueWithConfig(limiter, config),
		gone:     map[string]*gone{},
	}
}

var errStopped = errors.New("its informer has stopped, or is about to, and cannot be started again")

func (s *shared) run(ctx context.Context, synced func()) error {
	defer s.queue.ShutDown()
	registration, err := s.informer.AddEventHandler(s)
	if err != nil {
		return fmt.Errorf("adding the event handler: %w", err)
	}
	release, ok := underWay.use(ctx, s.informer)
	if !ok {
		return errors.Join(errStopped, s.leave(registration))
	}
	ready := s.isSynced(ctx, registration)
	if ready {
		synced()
		for range s.workers {
			s.hire(ctx)
		}
		s.awaitStop(ctx, registration)
	}
	err = s.leave(registration)
	release()
	s.queue.ShutDown() // what is in it is still processed
	s.working.Wait()
	if !ready {
		return errors.Join(errors.New("error syncing cache: stopped before everything was listed"), err)
	}
	return err
}

// isSynced waits until everything that was listed is in the store, and was queued.
func (s *shared) isSynced(ctx context.Context, registration cache.ResourceEventHandlerRegistration) bool {
	synced := registration.HasSyncedChecker()
	select {
	case <-synced.Done():
	case <-noMoreCalls(registration):
		if !cache.IsDone(synced) { // both may have happened by now
			s.awaitStop(ctx, registration)
		}
	case <-ctx.Done():
	}
	return cache.IsDone(synced)
}

// awaitStop waits until the controller is to stop. Others who run the informer may stop that
// before.
func (s *shared) awaitStop(ctx context.Context, registration cache.ResourceEventHandlerRegistration) {
	select {
	case <-ctx.Done():
	case <-noMoreCalls(registration):
		if ctx.Err() == nil {
			s.calls.log.Warn("the informer was stopped: its controller is told nothing more, and waits to be stopped as well",
				"resource", fmt.Sprintf("%T", s.calls.resource))
		}
		<-ctx.Done()
	}
}

// leave takes the handler off the informer, and waits until it is called no more.
func (s *shared) leave(registration cache.ResourceEventHandlerRegistration) error {
	if err := s.informer.RemoveEventHandler(registration); err != nil {
		return fmt.Errorf("removing the event handler: %w", err)
	}
	if ended := noMoreCalls(registration); ended != nil {
		<-ended
	}
	return nil
}

// noMoreCalls is closed when the handler is called no more; nil if the informer does not
// tell, as client-go's before 0.37 do not.
func noMoreCalls(registration cache.ResourceEventHandlerRegistration) <-chan struct{} {
	if r, ok := registration.(interface{ ShutdownChan() <-chan struct{} }); ok {
		return r.ShutdownChan()
	}
	return nil
}

func (s *shared) lastSyncResourceVersion() string { return s.informer.LastSyncResourceVersion() }

var _ cache.ResourceEventHandler = &shared{}

// OnAdd queues the key of an object that is there.
func (s *shared) OnAdd(obj interface{}, _ bool) { s.present(obj) }

// OnUpdate queues the key of an object that is there, changed or not.
func (s *shared) OnUpdate(_, obj interface{}) { s.present(obj) }

// OnDelete queues the key of an object that is gone, and keeps its last state.
func (s *shared) OnDelete(obj interface{}) {
	key, ok := s.keyOf(obj)
	if !ok {
		return
	}
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	s.mu.Lock()
	s.gone[key] = &gone{obj}
	s.mu.Unlock()
	s.queue.Add(key)
}

func (s *shared) present(obj interface{}) {
	key, ok := s.keyOf(obj)
	if !ok {
		return
	}
	s.mu.Lock()
	delete(s.gone, key)
	s.mu.Unlock()
	s.queue.Add(key)
}

func (s *shared) keyOf(obj interface{}) (key string, ok bool) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		s.calls.log.Debug("dropped an object without a key", "type", fmt.Sprintf("%T", obj), "error", err)
	}
	return key, err == nil
}

// hire starts a worker: it processes what is queued, until the queue is shut down and
// empty. One that is lost, because a call has ended its goroutine as a failed assertion of
// a test does, is replaced.
func (s *shared) hire(ctx context.Context) {
	s.working.Go(func() {
		lost := true
		defer func() {
			if lost {
				s.hire(ctx)
			}
		}()
		for s.processNext(ctx) {
		}
		lost = false
	})
}

func (s *shared) processNext(ctx context.Context) (more bool) {
	key, shutdown := s.queue.Get()
	if shutdown {
		return false
	}
	defer s.queue.Done(key) // also where a call ends the goroutine
	s.process(ctx, key)
	return true
}

// process does what there is to be done about a key now.
func (s *shared) process(ctx context.Context, key string) {
	do, deleted := s.decide(key)
	if do == nil {
		return
	}
	err := s.calls.do(ctx, *do)
	var failed *CallError
	switch {
	case errors.As(err, &failed):
		if failed.Attempts == 1 { // whatever has failed before was something else
			s.queue.Forget(key)
		}
		s.queue.AddRateLimited(key)
	default:
		s.queue.Forget(key)
		s.done(key, deleted)
	}
}

// decide is what to do about a key, nil for nothing, and the deletion that it is about.
func (s *shared) decide(key string) (*call, *gone) {
	obj, exists, err := s.informer.GetIndexer().GetByKey(key)
	switch {
	case err != nil:
		return &call{op: opUpsert, Event: Event{Key: key}, err: fmt.Errorf("reading the store: %w", err)}, nil
	case exists:
		return &call{op: opUpsert, Event: Event{Key: key, Obj: obj}, version: versionOf(obj)}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	deleted := s.gone[key]
	if deleted == nil { // the handler is about to be told, and queues it then
		return nil, nil
	}
	return &call{op: opDelete, Event: Event{Key: key, Obj: deleted.last}, version: versionOf(deleted.last)}, deleted
}

// done notes that a deletion was taken in, unless there is a newer one.
func (s *shared) done(key string, deleted *gone) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if deleted != nil && s.gone[key] == deleted {
		delete(s.gone, key)
	}
}

func versionOf(obj interface{}) string {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return accessor.GetResourceVersion()
}
