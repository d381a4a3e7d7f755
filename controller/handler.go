package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
)

// HandlerResource is a StorelessResource over an informer that others use as well: the
// Controller is one handler of a SharedResourceVersionInformer, that of a factory
// (ResourceVersionInformerFor) for instance. NewHandlerResource returns one; a struct with that
// embedded may be a Backgrounder too.
//
// All that is different for a StorelessResource is so for it, and this:
//
//   - The Controller adds its handler when it runs, and removes it when it ends. It does not
//     run the informer: its maker does, or the factory that has given it out.
//   - A later Run of the Controller goes on from the same Storage, with a list.
type HandlerResource interface {
	// Resource has an Informer that is not called.
	Resource
	// SharedInformer returns the informer, and the configuration of the handler, without a
	// Handler, a BatchHandler and a MaxBatch: these are the Controller's. The default of its
	// ErrorHandler is informer.DefaultWatchErrorHandler. It is called once for each Controller, at
	// its first Run.
	SharedInformer() (*informer.SharedResourceVersionInformer, informer.HandlerConfig)
}

// NewHandlerResource returns a Resource that is followed as one handler of a shared
// informer. It panics if that, upsert or delete is nil, or if config has a Handler, a
// BatchHandler or a MaxBatch.
func NewHandlerResource(shared *informer.SharedResourceVersionInformer, config informer.HandlerConfig, upsert ResourceUpsertFunc, delete ResourceDeleteFunc) HandlerResource {
	checkHandler(shared, config)
	return handlerResource{functionsOf("NewHandlerResource", upsert, delete), shared, config}
}

func checkHandler(shared *informer.SharedResourceVersionInformer, config informer.HandlerConfig) {
	if shared == nil {
		panic("controller: HandlerResource: the informer is required")
	}
	checkUnset("HandlerResource", config.Handler, config.BatchHandler, config.MaxBatch)
}

// checkUnset panics if the configuration of a resource has what the Controller sets.
func checkUnset(of string, handler informer.ResourceEventHandler, batches informer.BatchHandler, maxBatch int) {
	switch {
	case handler != nil:
		panic("controller: " + of + ": Handler is set, but a Resource is called instead")
	case batches != nil:
		panic("controller: " + of + ": BatchHandler is set, but a Resource is called instead")
	case maxBatch != 0:
		panic("controller: " + of + ": MaxBatch is set, but a Resource has no batches")
	}
}

type handlerResource struct {
	functions
	shared *informer.SharedResourceVersionInformer
	config informer.HandlerConfig
}

func (r handlerResource) Informer() cache.SharedIndexInformer { return nil }

func (r handlerResource) SharedInformer() (*informer.SharedResourceVersionInformer, informer.HandlerConfig) {
	return r.shared, r.config
}

// handler is one handler of a shared informer as the source of a controller: see batches.
type handler struct {
	batches
	shared *informer.SharedResourceVersionInformer
	config informer.HandlerConfig
}

func newHandler(r HandlerResource, workers int, calls *calls) *handler {
	shared, config := r.SharedInformer()
	checkHandler(shared, config)
	h := &handler{batches: batches{calls: calls, silence: 2 * time.Minute}, shared: shared, config: config}
	h.config.BatchHandler = informer.IgnoreSynced(&h.batches)
	h.config.MaxBatch = 1
	h.config.MaxAttempts = forEver
	if workers > 0 {
		h.config.Workers = workers
	}
	if h.config.Storage == nil {
		h.config.Storage = informer.NewResourceVersionStorage()
	}
	h.config.ErrorHandler = withoutHeld(config.ErrorHandler)
	return h
}

func (h *handler) run(ctx context.Context, synced func()) error {
	registration, err := h.add()
	if err != nil {
		return fmt.Errorf("adding the handler: %w", err)
	}
	select {
	case <-registration.HasSyncedChecker().Done():
		synced()
		<-ctx.Done()
	case <-ctx.Done():
	}
	<-h.shared.RemoveHandler(registration)
	return nil
}

// add adds the handler, which is not called before it knows its caller.
func (h *handler) add() (*informer.HandlerRegistration, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	registration, err := h.shared.AddHandler(h.config)
	if err == nil {
		h.follower = registration
	}
	return registration, err
}
