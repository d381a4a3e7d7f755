package objectcache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/sharding"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/engine/follower"
	"github.com/rvinformer/informer/internal/engine/intake"
	"github.com/rvinformer/informer/internal/engine/keeper"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/engine/server"
	"github.com/rvinformer/informer/internal/leaf/budget"
	"github.com/rvinformer/informer/internal/leaf/moment"
	"github.com/rvinformer/informer/internal/leaf/waiting"
)

// Informer is a cache.SharedIndexInformer over a Store. It follows its resource as all informers of
// this library do: it reads lists object by object, notices silence, and never goes back in time.
// Its methods may be called from any goroutine, and from handlers.
//
// # Handlers
//
// Handlers are called as client-go calls them: each on its own and in order, with every change that
// a watch brings. A slow handler holds up neither the store nor other handlers. What waits for it
// stays encoded, and is decoded when its turn comes: once for all handlers that take it at about
// the same time, which is why handlers must not change objects. The number of changes that wait is
// not bounded, as in client-go. Each keeps the compressed bytes of its objects: 1.2 KB for an
// update of a pod of 3.4 KB. Status tells how many wait, and how much memory they take.
//
// A cache.ResourceEventHandlerFuncs has nothing decoded for a func that is nil. AddChangeHandler is
// for handlers that need only keys, or decide themselves what to decode.
//
// Handlers differ from client-go's in four points:
//   - An object that was deleted and created again is an OnDelete and an OnAdd, also where a list
//     found that out. client-go may tell an update instead.
//   - A list calls no handler for objects that have not changed.
//   - The first list is told when it is complete. Until then the store is empty, or has what a
//     Snapshot has restored.
//   - A handler that is removed, or whose informer stops, is called with nothing that waits.
//
// A deletion that a list found is a cache.DeletedFinalStateUnknown with the object that the store
// had. A ListerWatcher of others, such as that of a fake client, may tell the deletion of an object that
// the store does not have: handlers are called with what it tells, as by client-go.
type Informer struct {
	options Options
	lw      cache.ListerWatcher
	example runtime.Object
	objects objects
	// store is the same as objects, nil with Options.Decoded.
	store     *Store
	setup     follower.Setup
	into      *storeSink
	changelog *changelog
	// snapshots is nil without a Snapshot.
	snapshots *keeper.Snapshots
	synced    chan struct{}
	// syncing closes synced, once.
	syncing sync.Once
	lists   lists
	// waiting are the callers of WaitUntil.
	waiting waiting.Line

	// changing is held while a handler is added or removed, so that the reader waits for one of
	// them at most. It is taken before the locks of the changelog and before mu.
	changing sync.Mutex

	mu               sync.Mutex
	started, stopped bool
	// watchErrors is what SetWatchErrorHandler has set.
	watchErrors cache.WatchErrorHandlerWithContext
	resyncs     resyncs
}

var (
	_ cache.SharedIndexInformer = (*Informer)(nil)
	_ cache.Controller          = (*Informer)(nil)
)

// NewSharedIndexInformer returns an *Informer: see NewSharedIndexInformerWithOptions.
func NewSharedIndexInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	return NewSharedIndexInformerWithOptions(lw, example, Options{ResyncPeriod: resync, Indexers: indexers})
}

// NewSharedIndexInformerWithOptions returns an informer of what lw lists and watches: objects of
// the type of example, a pointer to a typed object, a *metav1.PartialObjectMetadata, or, also where
// it is nil, an *unstructured.Unstructured. An example that says its kind takes objects of that
// kind only.
//
// With lw of an informer.DynamicListerWatcherFactory, objects are read off the wire and an
// unchanged one is never decoded. Others decode whole lists before the informer sees them.
//
// It panics if lw is nil, and on options that Check refuses.
func NewSharedIndexInformerWithOptions(lw cache.ListerWatcher, example runtime.Object, opts Options) *Informer {
	opts = opts.withDefaults(example)
	fields, err := opts.check(example)
	lw, of := server.Undivided(lw)
	switch r := server.Of(lw); {
	case err == nil && !of.IsAll() && !opts.Shard.IsAll() && of != opts.Shard:
		err = fmt.Errorf("the Shard is %v, and the ListerWatcher divides its objects by %v", opts.Shard, of)
	case lw == nil:
		err = errors.New("the ListerWatcher is required")
	case err == nil && r == nil && opts.AuditEvery > 0:
		err = fmt.Errorf("AuditEvery needs a ListerWatcher of an informer.DynamicListerWatcherFactory, not a %T", lw)
	case err == nil:
		err = opts.checkSecrets(r, example)
	}
	if err != nil {
		panic(fmt.Sprintf("objectcache: informer %q: %v", opts.Name, err))
	}
	if opts.Shard.IsAll() {
		opts.Shard = of
	}
	i := &Informer{options: opts, lw: lw, example: example, synced: make(chan struct{})}
	i.resyncs.check = opts.ResyncPeriod
	i.setup.Init(opts.Name, lw, object.Expect(example, "", object.Public{}))
	i.setup.UseFields(fields)
	i.setup.Nameless = true
	i.setup.Budget = (*budget.Budget)(opts.Budget)
	i.setup.Report.UseListMode(opts.ListMode, nil)
	i.setup.Report.Consumer = consumer{i}
	i.setup.Report.Handler = func(err error) { // client-go's form of an error handler asks for a Reflector
		opts.ErrorHandler(informer.NewNamedReflector(opts.Name, lw, example, nil, 0), err)
	}
	if opts.Decoded {
		i.objects = newDecodedStore(example, opts.Indexers, cache.WithStoreMetrics(opts.Identifier, nil))
	} else {
		i.store = NewStore(example, opts.Indexers, StoreOptions{HotBytes: opts.HotBytes, ErrorHandler: func(err error) { i.setup.Report.Fail(err) }})
		i.store.owned = true
		i.objects = i.store
	}
	i.changelog = newChangelog(i.store, i.setup.Budget)
	i.into = &storeSink{
		informer: i,
		intake: intake.New(intake.Options{
			Report: &i.setup.Report, Form: &i.setup.Form, Fields: fields, Transform: opts.Transform, MetadataKind: metadataKind(example),
		}),
	}
	if opts.Snapshot != nil {
		i.snapshots = i.newSnapshots()
	}
	i.useShard(opts.Shard)
	return i
}

// Store returns the objects, nil with Options.Decoded. It is what GetStore and GetIndexer return.
func (i *Informer) Store() *Store { return i.store }

// GetStore returns the objects.
func (i *Informer) GetStore() cache.Store { return i.objects }

// GetIndexer returns the objects: the Store, or with Options.Decoded an indexer of client-go.
func (i *Informer) GetIndexer() cache.Indexer { return i.objects }

// GetController returns the informer itself.
func (i *Informer) GetController() cache.Controller { return i }

// AddIndexers adds indexes, before Run or later. The error names indexes that exist already, or
// says that the informer has stopped.
func (i *Informer) AddIndexers(indexers cache.Indexers) error {
	if i.IsStopped() {
		return errors.New("indexer was not added because it has stopped already")
	}
	return i.objects.AddIndexers(indexers)
}

// SetWatchErrorHandler is SetWatchErrorHandlerWithContext without a context.
func (i *Informer) SetWatchErrorHandler(handler cache.WatchErrorHandler) error {
	if handler == nil {
		return i.SetWatchErrorHandlerWithContext(nil)
	}
	return i.SetWatchErrorHandlerWithContext(func(_ context.Context, r *cache.Reflector, err error) { handler(r, err) })
}

// SetWatchErrorHandlerWithContext has handler called with what goes wrong, in place of
// Options.ErrorHandler; nil brings that back. Its Reflector never runs. The error says that the
// informer has started.
func (i *Informer) SetWatchErrorHandlerWithContext(handler cache.WatchErrorHandlerWithContext) error {
	return i.beforeStart(func() { i.watchErrors = handler })
}

// SetTransform sets Options.Transform. The error says that the informer has started.
func (i *Informer) SetTransform(transform cache.TransformFunc) error {
	return i.beforeStart(func() { i.into.intake.Transform = transform })
}

// SetShardSelector sets Options.Shard, as the method of client-go 0.38 does. Nil, and a selector that
// is empty, select all objects. The error says that the informer has started, or that the selector
// has more than one range.
func (i *Informer) SetShardSelector(selector sharding.Selector) error {
	shard, err := api.ShardOf(selector)
	return cmp.Or(i.beforeStart(func() {
		if err == nil {
			i.useShard(shard)
		}
	}), err)
}

// useShard is called before the start.
func (i *Informer) useShard(shard informer.Shard) {
	if shard.IsAll() {
		shard = informer.Shard{} // whatever its Key
	}
	i.setup.Shard = shard
	if i.snapshots != nil {
		i.snapshots.Shard = shard
	}
}

// shard is the part of the objects that is followed.
func (i *Informer) shard() informer.Shard {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.setup.Shard
}

func (i *Informer) beforeStart(set func()) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.started {
		return errors.New("informer has already started")
	}
	set()
	return nil
}

// Run is RunWithContext for a channel that is closed to stop.
func (i *Informer) Run(stopCh <-chan struct{}) { i.RunWithContext(wait.ContextForChannel(stopCh)) }

// RunWithContext fills the store and calls handlers until ctx ends, and returns after the last call
// has returned. An informer runs once: another call logs a warning and returns.
func (i *Informer) RunWithContext(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	if !i.start(ctx) {
		klog.FromContext(ctx).Info("Warning: the informer has started, running it more than once is not allowed", "informer", i.options.Name)
		return
	}
	defer i.setup.Report.Enter(informer.PhaseStopped)
	// A callback may end the goroutine, as a failed assertion of a test does.
	defer i.changelog.wait()
	defer i.stop()
	t := i.options.tuning()
	i.mu.Lock()
	t.ResyncPeriod = i.resyncs.check
	i.mu.Unlock()
	f := i.setup.Follower(i.into, t)
	i.lists.run(f.Relist)
	defer i.lists.run(nil)
	defer i.auditBeside(ctx)()
	if i.snapshots == nil {
		f.Run(ctx, &follower.Origin{Objects: i.sample})
		return
	}
	i.resume(ctx, f)
}

func (i *Informer) start(ctx context.Context) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.started {
		return false
	}
	i.started = true
	if handler := i.watchErrors; handler != nil {
		i.setup.Report.Handler = func(err error) {
			if err != nil {
				handler(ctx, cache.NewReflectorWithOptions(i.lw, i.example, nil, cache.ReflectorOptions{Name: i.options.Name}), err)
			}
		}
	}
	i.setup.Report.LogTo(ctx)
	i.setup.Report.BeginRun()
	i.changelog.start(ctx)
	return true
}

func (i *Informer) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stopped = true
	i.waiting.Stop()
	i.changelog.stop()
}

// IsStopped reports whether Run has ended, or is about to.
func (i *Informer) IsStopped() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stopped
}

// HasSynced reports whether the store has had a complete list, or the server has accepted the
// version of the Snapshot that was restored. It never becomes false again. Whether a handler was
// called with that list, its registration knows.
func (i *Informer) HasSynced() bool { return cache.IsDone(i.HasSyncedChecker()) }

// HasSyncedChecker has a channel that is closed when HasSynced becomes true.
func (i *Informer) HasSyncedChecker() cache.DoneChecker {
	return doneChecker{func() string { return fmt.Sprintf("SharedIndexInformer %T", i.example) }, i.synced}
}

// LastSyncResourceVersion is the newest resource version that was read; empty before the first
// complete list.
func (i *Informer) LastSyncResourceVersion() string { return i.setup.Report.LastResourceVersion() }

// Status is a snapshot of the informer. ResourceVersion is the one up to which the store has
// everything, empty where the list has none; before the first list, it is that of the store.
// CurrentAsOf is a moment whose objects the store has, whether or not handlers were called. Queued
// is the number of calls that handlers wait for, QueuedBytes about the memory that the changes take
// which at least one of them waits for, and OldestQueued when the oldest of these arrived.
func (i *Informer) Status() informer.Status {
	s := informer.Status(i.setup.Report.Snapshot())
	s.Synced = i.HasSynced()
	s.Objects, s.Shard = i.objects.Len(), i.shard()
	if s.ResourceVersion = i.readable(); !s.Synced {
		s.ResourceVersion = i.objects.LastStoreSyncResourceVersion()
	}
	var oldest moment.Moment
	s.Queued, s.QueuedBytes, oldest = i.changelog.waiting()
	s.OldestQueued, s.CurrentAsOf = oldest.Time(), moment.Moment(i.into.current.Load()).Time()
	if i.store != nil { // what decoded objects take is not known
		s.Counts.StoredBytes = i.store.SizeBytes()
	}
	s.Condition = i.setup.Report.Condition()
	return s
}

// consumer is an Informer with its handlers as the consumer of a report.
type consumer struct{ *Informer }

// Subject is the name of the informer.
func (c consumer) Subject() string { return c.options.Name }

// Objects is the number of objects in the store.
func (c consumer) Objects() int { return c.objects.Len() }

// Delivery returns how far the store and the handlers have come.
func (c consumer) Delivery() report.Delivery {
	d := report.Delivery{Synced: c.HasSynced()}
	d.Queued, _, d.Oldest = c.changelog.waiting()
	return d
}

// Pending says what the end of Run waits for.
func (c consumer) Pending() string {
	switch handlers := c.changelog.callers.Load(); {
	case handlers == 1:
		return "a handler, whose call has not returned"
	case handlers > 1:
		return fmt.Sprintf("%d handlers, whose calls have not returned", handlers)
	case c.snapshots != nil:
		return "the snapshot to be saved"
	}
	return ""
}

// WaitUntil waits until readers of the store see a resource version of the resource, and all before
// it. The version may be that of an object that was written, of its deletion, or of a list.
// Handlers may not have been called with it yet. The error is an *informer.WaitError, which
// describes how it can fail.
//
// A version of an object that the informer follows arrives as soon as the server tells it. Where no
// object that the informer follows has the version, because a selector leaves it out for instance,
// the next bookmark tells that it has passed: servers send one about each minute. So ctx should
// allow for that.
func (i *Informer) WaitUntil(ctx context.Context, resourceVersion string) error {
	return i.waiting.Until(ctx, waiting.Wait{
		Informer:        i.options.Name,
		ResourceVersion: resourceVersion,
		Check:           i.reach,
		Reached:         i.readable,
	})
}

// reach ends the waits for what can be read already, and all if the informer has stopped.
func (i *Informer) reach() {
	i.reachNow()
	if i.IsStopped() {
		i.waiting.Stop()
	}
}

// reachNow ends the waits for what can be read.
func (i *Informer) reachNow() {
	if i.waiting.Waits() {
		i.waiting.Reach(i.readable())
	}
}

// readable is the resource version up to which readers see everything. The version of a restored
// Snapshot counts once the server has accepted it. It does not wait for the writer.
func (i *Informer) readable() string {
	if !i.HasSynced() {
		return ""
	}
	return i.into.observed.load().Claim()
}

// doneChecker is a cache.DoneChecker over a channel.
type doneChecker struct {
	name func() string
	done <-chan struct{}
}

func (d doneChecker) Name() string          { return d.name() }
func (d doneChecker) Done() <-chan struct{} { return d.done }

// noteDecoded counts an object that was decoded before it is kept encoded.
func (i *Informer) noteDecoded() {
	if i.store != nil {
		i.store.decodes.Add(1)
	}
}

// fail reports what a handler cannot be called with.
func (i *Informer) fail(key string, err error) {
	i.setup.Report.Skip(&informer.ItemError{Key: key, Watch: true, Err: err})
}
