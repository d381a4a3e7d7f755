package informer

import (
	"context"

	"k8s.io/client-go/tools/cache"
)

// HandlerConfig is one handler of a SharedResourceVersionInformer. One of Handler and
// BatchHandler is required. The fields are those of InformerConfig.
type HandlerConfig struct {
	// Name is for logs, together with that of the informer. Default: its number.
	Name string

	Handler      ResourceEventHandler
	BatchHandler BatchHandler

	// Storage is what this handler was told, and Checkpoint keeps it. They are for this
	// handler alone: that of another one is refused, and that of one which was removed may
	// be used when it has ended.
	Storage    *ResourceVersionStorage
	Checkpoint CheckpointStore

	// Workers, MaxBatch, Budget and ErrorHandler are, where they are zero, those of the
	// informer's configuration.
	Workers      int
	MaxBatch     int
	Budget       *Budget
	ErrorHandler WatchErrorHandler
}

// HandlerRegistration is one handler of a SharedResourceVersionInformer.
type HandlerRegistration struct {
	owner    *SharedResourceVersionInformer
	informer *resourceVersionInformer
	// ended is closed when the handler was removed and is not called any more.
	ended chan struct{}

	// Of the owner's lock:

	removed bool
	// stop ends the handler's informer, nil while that does not run.
	stop context.CancelFunc
}

var _ cache.ResourceEventHandlerRegistration = &HandlerRegistration{}

// Name is the name of the informer and that of the handler, as in "pods/1".
func (h *HandlerRegistration) Name() string { return h.informer.reflector.name }

// HasSynced reports whether the handler was told all of the first complete list that was
// read for it: every call returned, those for deletions included. It never becomes false again.
func (h *HandlerRegistration) HasSynced() bool { return h.informer.HasSynced() }

// HasSyncedChecker has a channel that is closed when HasSynced becomes true.
func (h *HandlerRegistration) HasSyncedChecker() cache.DoneChecker {
	return h.informer.HasSyncedChecker()
}

// LastSyncResourceVersion is the newest resource version that was read for the handler,
// acknowledged or not; empty before its first complete list, unless it has resumed.
func (h *HandlerRegistration) LastSyncResourceVersion() string {
	return h.informer.LastSyncResourceVersion()
}

// Status is a snapshot of the work for the handler, and of its acknowledgements.
func (h *HandlerRegistration) Status() Status { return h.informer.Status() }

// Done is closed when the handler was removed and its last call has returned.
func (h *HandlerRegistration) Done() <-chan struct{} { return h.ended }
