package informer

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/engine/server"
	"github.com/rvinformer/informer/internal/engine/source"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// SharedResourceVersionInformer is a ResourceVersionInformer with any number of handlers,
// which come and go while it runs, one watch for all of them, and one list for those that start
// together.
//
// Each handler gets what it would get from an informer of its own: it has its own
// Storage, its own synced state, and its own acknowledgement, and what it fails with, or
// is slow with, is its own affair. It gets each object, in the initial list, then its changes
// since, and misses no deletion. Handlers that are there when Run begins read one list together.
// One that is added later lists for itself, since there is no cache that it could be served from.
// What is remembered, about 40 bytes of each object, is remembered for each handler.
//
// List and watch are read at the pace of the fastest handler. A handler that is behind by more than
// 256 KiB, and holds up another for 100 ms and for half of the time, reads on by itself: it asks
// for the rest of the pages, or for another watch-list, or for a watch from where it is. It is back
// on the common watch when it has caught up. What waits for the handlers counts in the
// Budget, which they share: a slow one may use it up, and then the others are handed one object
// at a time, but never none. Handlers with a HandlerConfig.Budget have one of their own. The list
// and the watch hold 256 KiB and one event each at most, which do not count in the Budget.
//
// Its methods may be called at any time, from several goroutines, and from handlers.
type SharedResourceVersionInformer struct {
	name    string
	config  InformerConfig
	watches *source.Shared
	// reflector is for reports that are no handler's.
	reflector *Reflector
	synced    chan struct{}
	// goroutines are those of Run.
	goroutines sync.WaitGroup

	mu       sync.Mutex
	handlers []*HandlerRegistration
	// leaving are the handlers that were removed and may be called still, and left has what those
	// have counted that have ended.
	leaving []*HandlerRegistration
	left    report.Totals
	added   int
	running bool
	// ctx is that of Run, nil when it is not under way or ends.
	ctx context.Context
}

var _ ResourceVersionInformer = &SharedResourceVersionInformer{}

// NewSharedResourceVersionInformer returns an informer without handlers; name is for logs.
// Config is what the handlers have in common; what is one handler's belongs to its
// HandlerConfig. It panics on a configuration that cannot work, as
// NewResourceVersionInformer does, and if config has a Handler, a BatchHandler, a Storage, a
// Checkpoint or an ExtraStore.
func NewSharedResourceVersionInformer(name string, config InformerConfig) *SharedResourceVersionInformer {
	for _, own := range []struct {
		field string
		set   bool
	}{
		{"Handler", config.Handler != nil},
		{"BatchHandler", config.BatchHandler != nil},
		{"Storage", config.Storage != nil},
		{"Checkpoint", config.Checkpoint != nil},
		{"ExtraStore", config.ExtraStore != nil},
	} {
		if own.set {
			panic(fmt.Sprintf("shared informer %q: %s is one handler's: see AddHandler", name, own.field))
		}
	}
	withHandler := config
	withHandler.Handler = ResourceEventHandlerFuncs{}
	checked := withHandler.mustCheck(name)
	config.ListerWatcher, config.Shard = checked.ListerWatcher, checked.Shard
	return &SharedResourceVersionInformer{
		name:      name,
		config:    config,
		watches:   source.NewShared(),
		reflector: newResourceVersionInformer(name, checked).reflector,
		synced:    make(chan struct{}),
	}
}

// AddEventHandler is AddHandler for a handler with the informer's configuration.
func (s *SharedResourceVersionInformer) AddEventHandler(handler ResourceEventHandler) (*HandlerRegistration, error) {
	return s.AddHandler(HandlerConfig{Handler: handler})
}

// AddHandler adds a handler, which gets all objects: from now on if the informer runs,
// or else when it does. It does not wait. The error says what is wrong with config.
func (s *SharedResourceVersionInformer) AddHandler(config HandlerConfig) (*HandlerRegistration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := config.Name
	if name == "" {
		name = fmt.Sprint(s.added + 1)
	}
	name = s.name + "/" + name
	own, err := s.configFor(config)
	if err != nil {
		return nil, fmt.Errorf("handler %q: %w", name, err)
	}
	if other := s.usesLocked(config.Storage); other != nil {
		return nil, fmt.Errorf("handler %q: its Storage is that of the handler %q", name, other.Name())
	}
	s.added++
	h := &HandlerRegistration{owner: s, informer: newResourceVersionInformer(name, own), ended: make(chan struct{})}
	h.there, h.remove = context.WithCancel(context.Background())
	setup := &h.informer.reflector.setup
	setup.Shared, setup.Memory, setup.Report.Whole = s.watches, s.reflector.setup.Memory, &s.reflector.setup.Report.Progress
	s.handlers = append(s.handlers, h)
	if s.ctx != nil {
		s.startLocked(h)
	}
	return h, nil
}

// usesLocked is the handler with a Storage; nil if there is none.
func (s *SharedResourceVersionInformer) usesLocked(storage *ResourceVersionStorage) *HandlerRegistration {
	if storage == nil {
		return nil
	}
	i := slices.IndexFunc(s.handlers, func(h *HandlerRegistration) bool { return h.informer.flow.Versions == &storage.versions })
	if i < 0 {
		return nil
	}
	return s.handlers[i]
}

// configFor is the configuration of a handler's informer. The error says what is wrong with config.
func (s *SharedResourceVersionInformer) configFor(config HandlerConfig) (checkedConfig, error) {
	own := s.config
	own.Handler, own.BatchHandler = config.Handler, config.BatchHandler
	own.Storage, own.Checkpoint, own.BeginAnew = config.Storage, config.Checkpoint, config.BeginAnew
	if config.Workers != 0 {
		own.Workers = config.Workers
	}
	if config.MaxBatch != 0 {
		own.MaxBatch = config.MaxBatch
	}
	if config.MaxAttempts != 0 {
		own.MaxAttempts = config.MaxAttempts
	}
	if config.MaxDeadLetters != 0 {
		own.MaxDeadLetters = config.MaxDeadLetters
	}
	if config.Budget != nil {
		own.Budget = config.Budget
	}
	if config.ErrorHandler != nil {
		own.ErrorHandler = config.ErrorHandler
	}
	if server.Of(own.ListerWatcher) != nil {
		if err := takenBy(own.Handler).CheckShared(own.ExampleObject, own.Transform != nil); err != nil {
			return checkedConfig{}, err
		}
	}
	return own.check()
}

// RemoveHandler removes a handler, and leaves the others alone. It does not wait: the
// channel is closed when the last call of the handler has returned, and what was not handed
// on by then is not. The handler itself may not wait for that. A second call changes
// nothing, and returns the same channel. It panics on nil, and on a handler of another
// informer.
func (s *SharedResourceVersionInformer) RemoveHandler(h *HandlerRegistration) (ended <-chan struct{}) {
	switch {
	case h == nil || h.owner == nil:
		panic(fmt.Sprintf("shared informer %q: RemoveHandler of no handler", s.name))
	case h.owner != s:
		panic(fmt.Sprintf("shared informer %q: the handler %q is another informer's", s.name, h.Name()))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.wasRemoved() {
		return h.ended
	}
	h.remove()
	s.handlers = slices.DeleteFunc(slices.Clone(s.handlers), func(other *HandlerRegistration) bool { return other == h })
	s.leaving = append(s.leaving, h)
	if h.stop != nil {
		h.stop()
	} else {
		s.endLocked(h)
	}
	return h.ended
}

// endLocked notes that a handler that was removed is not called any more.
func (s *SharedResourceVersionInformer) endLocked(h *HandlerRegistration) {
	s.leaving = slices.DeleteFunc(s.leaving, func(other *HandlerRegistration) bool { return other == h })
	s.left = s.left.Plus(h.totals())
	close(h.ended)
}

// Handlers returns the handlers, in the order of AddHandler.
func (s *SharedResourceVersionInformer) Handlers() []*HandlerRegistration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.handlers)
}

// Run is RunWithContext for a channel that is closed to stop.
func (s *SharedResourceVersionInformer) Run(stopCh <-chan struct{}) {
	s.RunWithContext(wait.ContextForChannel(stopCh))
}

// RunWithContext lists, watches and calls the handlers until ctx ends, and returns after
// the last call has returned. Another Run may follow: each handler goes on from its Storage. A
// Run beside a running one reports ErrAlreadyRunning and returns.
func (s *SharedResourceVersionInformer) RunWithContext(ctx context.Context) {
	if err := s.begin(ctx); err != nil {
		s.reflector.setup.Report.Handler(fmt.Errorf("%s: %w", s.name, err))
		return
	}
	<-ctx.Done()
	s.noMore()
	s.goroutines.Wait()
	s.watches.Wait()
	s.end()
}

func (s *SharedResourceVersionInformer) begin(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running {
		return ErrAlreadyRunning
	}
	s.running, s.ctx = true, ctx
	first := slices.Clone(s.handlers)
	s.startLocked(first...)
	s.goroutines.Go(func() { s.awaitSynced(ctx, first) })
	return nil
}

// noMore keeps handlers from being started.
func (s *SharedResourceVersionInformer) noMore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx = nil
}

func (s *SharedResourceVersionInformer) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
}

// startLocked starts handlers, which read one list together. None of them begins before all are
// expected.
func (s *SharedResourceVersionInformer) startLocked(handlers ...*HandlerRegistration) {
	for _, h := range handlers {
		h.informer.reflector.setup.Here = s.watches.Expect()
	}
	within := s.ctx
	for _, h := range handlers {
		ctx, stop := context.WithCancel(within)
		h.stop = stop
		s.goroutines.Go(func() {
			defer s.stopped(h) // also where a callback ends the goroutine
			defer stop()
			defer h.informer.reflector.setup.Here()
			h.informer.flow.RunWithin(ctx, within)
		})
	}
}

// stopped notes that a handler is not called any more.
func (s *SharedResourceVersionInformer) stopped(h *HandlerRegistration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.stop = nil
	if h.wasRemoved() {
		s.endLocked(h)
	}
}

// awaitSynced notes that all of first have synced, or were removed.
func (s *SharedResourceVersionInformer) awaitSynced(ctx context.Context, first []*HandlerRegistration) {
	for _, h := range first {
		select {
		case <-h.HasSyncedChecker().Done():
		case <-h.there.Done():
		case <-ctx.Done():
			return
		}
	}
	if !s.HasSynced() {
		close(s.synced)
	}
}

// HasSynced reports whether all handlers have synced that were there when Run began, but for
// those that were removed: if there were none, it is true at once. Of one handler, its
// registration knows. It never becomes false again.
func (s *SharedResourceVersionInformer) HasSynced() bool { return cache.IsDone(s.HasSyncedChecker()) }

// HasSyncedChecker has a channel that is closed when HasSynced becomes true.
func (s *SharedResourceVersionInformer) HasSyncedChecker() cache.DoneChecker {
	return doneChecker{name: s.name, done: s.synced}
}

// LastSyncResourceVersion is the newest resource version that was read for any handler;
// where versions have no order, that of the handler that was added last.
func (s *SharedResourceVersionInformer) LastSyncResourceVersion() (newest string) {
	for _, h := range s.Handlers() {
		read := h.informer.LastSyncResourceVersion()
		if read == "" {
			continue
		}
		switch rv.Compare(read, newest) {
		case rv.Newer, rv.Unordered:
			newest = read
		}
	}
	return newest
}

// Status is a snapshot of all handlers together: the Phase of the one that is least far, the oldest
// ResourceVersion, CurrentAsOf and OldestQueued, and CheckpointTime of those that have one, the
// most Objects, the newest LastContact and LastError, the Condition to act on first, and the sums
// of all counts, which include those of handlers that were removed. LastAudit is
// one that found something, if there is one, and Redelivery the first one under way. Checkpoint is
// that of the first handler with a CheckpointError, or else of the first with a Checkpoint;
// SkippedError, ResumedFrom and ResumedTime are those of the first that has them. Without handlers,
// it is that of an informer that does not run.
func (s *SharedResourceVersionInformer) Status() (all Status) {
	all.Condition = Condition{Reason: ReasonNotStarted, Message: "there is no handler"}
	handlers, removed := s.present()
	for i, h := range handlers {
		if i == 0 {
			all = h.Status()
		} else {
			all = together(all, h.Status())
		}
	}
	(*report.Snapshot)(&all).Add(removed)
	// The bytes are not those of the handlers added up: a watch that one handler has opened goes on
	// for the others when that handler is removed.
	all.Counts.ReceivedBytes = s.reflector.setup.Report.Received()
	all.Synced = s.HasSynced()
	return all
}

// present returns the handlers, and what those have counted that were removed.
func (s *SharedResourceVersionInformer) present() (handlers []*HandlerRegistration, removed report.Totals) {
	s.mu.Lock()
	defer s.mu.Unlock()
	removed = s.left
	for _, h := range s.leaving {
		removed = removed.Plus(h.totals())
	}
	return slices.Clone(s.handlers), removed
}

// DeadLetters returns those of all handlers that are there, in the order of the handlers: see
// ResourceVersionInformer.
func (s *SharedResourceVersionInformer) DeadLetters() (all []DeadLetter) {
	for _, h := range s.Handlers() {
		all = append(all, h.DeadLetters()...)
	}
	return all
}

// Audit audits the handlers that are there, one after the other: see ResourceVersionInformer. The
// report has the differences of all of them, the most Objects, and the oldest ResourceVersion. A
// handler that is removed meanwhile is left out. An error ends it, and names the handler.
func (s *SharedResourceVersionInformer) Audit(ctx context.Context, opts AuditOptions) (all AuditReport, _ error) {
	audited := 0
	for _, h := range s.Handlers() {
		one, err := h.auditWhileThere(ctx, opts)
		switch {
		case err != nil && h.wasRemoved():
			continue
		case audited == 0:
			all = one
		default:
			addAudit(&all, one)
		}
		if err != nil {
			return all, err
		}
		audited++
	}
	return all, nil
}

// Redeliver delivers objects once more to the handlers that are there, one after the other: see
// ResourceVersionInformer. A handler that is removed meanwhile does not count. An error ends it, and
// names the handler; it is ErrNoHandler if there is none.
func (s *SharedResourceVersionInformer) Redeliver(ctx context.Context, opts RedeliverOptions) error {
	handlers := s.Handlers()
	if len(handlers) == 0 {
		return fmt.Errorf("redelivery of %s: %w", s.name, ErrNoHandler)
	}
	for _, h := range handlers {
		if err := h.Redeliver(ctx, opts); err != nil && !h.wasRemoved() {
			return err
		}
	}
	return nil
}

// WaitUntil waits until all handlers that there are have acknowledged a resource version and all
// before it: see ResourceVersionInformer. A handler that is removed meanwhile does not count. The
// error is a *WaitError, with ErrNoHandler if there is no handler.
func (s *SharedResourceVersionInformer) WaitUntil(ctx context.Context, resourceVersion string) error {
	handlers := s.Handlers()
	if len(handlers) == 0 {
		return &WaitError{Informer: s.name, ResourceVersion: resourceVersion, Err: ErrNoHandler}
	}
	for _, h := range handlers {
		if err := h.WaitUntil(ctx, resourceVersion); err != nil && !h.wasRemoved() {
			return err
		}
	}
	return nil
}

// HandlerConfig is one handler of a SharedResourceVersionInformer. One of Handler and
// BatchHandler is required. The fields are those of InformerConfig.
type HandlerConfig struct {
	// Name is for logs, together with that of the informer. Default: its number.
	Name string

	Handler      ResourceEventHandler
	BatchHandler BatchHandler

	// Storage has what this handler has acknowledged, and Checkpoint keeps it. They are for this
	// handler alone: that of another one is refused, and that of one which was removed may
	// be used when it has ended.
	Storage    *ResourceVersionStorage
	Checkpoint CheckpointStore
	BeginAnew  bool // as in InformerConfig

	// Workers, MaxBatch, MaxAttempts, MaxDeadLetters, Budget and ErrorHandler are, where they are
	// zero, those of the informer's configuration.
	Workers        int
	MaxBatch       int
	MaxAttempts    int
	MaxDeadLetters int
	Budget         *Budget
	ErrorHandler   WatchErrorHandler
}

// HandlerRegistration is one handler of a SharedResourceVersionInformer.
type HandlerRegistration struct {
	owner    *SharedResourceVersionInformer
	informer *resourceVersionInformer
	// there ends when the handler is removed, by remove, which is called with the owner's lock.
	there  context.Context
	remove context.CancelFunc
	// ended is closed when the handler was removed and is not called any more.
	ended chan struct{}
	// stop belongs to the owner's lock. It ends the handler's informer, nil while that does not run.
	stop context.CancelFunc
}

var _ cache.ResourceEventHandlerRegistration = &HandlerRegistration{}

// Name is the name of the informer and that of the handler, as in "pods/1".
func (h *HandlerRegistration) Name() string { return h.informer.reflector.setup.Name }

// HasSynced reports whether all of the first complete list that was read for the handler was
// delivered to it: every call returned, those for deletions included. It never becomes false again.
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

// DeadLetters returns the changes that the handler has refused too often: see
// ResourceVersionInformer.
func (h *HandlerRegistration) DeadLetters() []DeadLetter { return h.informer.DeadLetters() }

// totals is what has been counted for the handler.
func (h *HandlerRegistration) totals() report.Totals {
	s := h.informer.reflector.setup.Report.Snapshot()
	return s.Totals()
}

// Audit compares the Storage of the handler with the server: see ResourceVersionInformer.
func (h *HandlerRegistration) Audit(ctx context.Context, opts AuditOptions) (AuditReport, error) {
	return h.informer.Audit(ctx, opts)
}

// Redeliver delivers objects once more to the handler: see ResourceVersionInformer.
func (h *HandlerRegistration) Redeliver(ctx context.Context, opts RedeliverOptions) error {
	return h.informer.Redeliver(ctx, opts)
}

// auditWhileThere is Audit, which ends when the handler is removed.
func (h *HandlerRegistration) auditWhileThere(ctx context.Context, opts AuditOptions) (AuditReport, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.there, cancel)()
	return h.Audit(ctx, opts)
}

// WaitUntil waits until the handler has acknowledged a resource version and all before it: see
// ResourceVersionInformer. If the handler is removed meanwhile, the error is ErrStopped.
func (h *HandlerRegistration) WaitUntil(ctx context.Context, resourceVersion string) error {
	return h.informer.flow.WaitUntil(ctx, resourceVersion, h.there.Done())
}

func (h *HandlerRegistration) wasRemoved() bool { return h.there.Err() != nil }

// Done is closed when the handler was removed and its last call has returned.
func (h *HandlerRegistration) Done() <-chan struct{} { return h.ended }
