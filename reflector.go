package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	goruntime "runtime"
	"time"

	"k8s.io/apimachinery/pkg/util/naming"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/engine/follower"
	"github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/engine/sink"
)

// Reflector lists and watches a set of objects and keeps a store in step with
// it. What it does next is decided in package internal/engine/listwatch; a Reflector
// does the reading, the writing and the waiting.
//
// Its exported fields may be set before Run, and not after.
type Reflector struct {
	// MaxInternalErrorRetryDuration is for how long a watch that the server breaks
	// with an internal error (500) is tried again from where it was, before a new
	// list. Default: a second break in a row, without an event between, is a new list.
	MaxInternalErrorRetryDuration time.Duration

	// ShouldResync is asked once in each resync period, while watching, whether
	// to call the store's Resync. Default: always.
	ShouldResync func() bool

	// WatchListPageSize is the number of objects to ask for in each page of a
	// list. Default: 500 where the list starts from resource version "" or "0",
	// which a server serves in pages or from its cache as it likes; no pages
	// elsewhere, because a server serves pages from etcd, past its cache, unless it
	// was seen to page a list from "0", and has no cache then.
	WatchListPageSize int64

	// StreamHandleForPaginatedList adds the objects of a list to the store one by
	// one as its pages arrive, and then deletes what the list did not show,
	// instead of collecting the list for Replace. It needs a store that has List,
	// such as a cache.Store; to others, such as the queues of client-go, it does
	// not apply. A GenerationStore is always given objects as they arrive.
	StreamHandleForPaginatedList bool

	// ForcePaginatedList lists in consistent pages, from resource version "",
	// every time. A server serves other lists whole from its cache, whatever page
	// size they ask for.
	ForcePaginatedList bool

	// MinWatchTimeout is the least time for which a watch is asked for; the
	// server ends it after a random time of up to twice as long. Default, and
	// least: 15 minutes for a ListerWatcher of a DynamicListerWatcherFactory, 5
	// minutes for others.
	MinWatchTimeout time.Duration

	// StallTimeout is the silence after which a watch counts as broken and is
	// started anew, without a list. Default: 150 seconds once a bookmark was
	// received, since a server sends one about every minute; before that, the
	// time for which the watch was asked for and 30 seconds.
	StallTimeout time.Duration

	// Backoff is how long to wait after a failed request, and between two lists. It starts
	// again after progress: a complete list, or a watch that has lasted for ten seconds, or for
	// one and brought something; between lists, only after a watch of ten seconds. Default: 800 ms,
	// doubled up to 30 s, and as much again at random.
	Backoff *wait.Backoff

	// logger is that of the options, nil for klog.Background.
	logger       *klog.Logger
	store        cache.ReflectorStore
	resyncPeriod time.Duration
	// mode overrides the list fields above, unless it is fieldsDecide.
	mode  ListMode
	setup follower.Setup
}

// WatchErrorHandler gets everything that goes wrong: a list or a watch
// that failed, with the error that the server or the connection gave; a watch
// that was silent (*StallError) or ended at once (*cache.VeryShortWatchError); an
// object that could not be read (*ItemError); a store that refused one
// (*StoreError); a handler that failed (*ProcessError, *BatchError); a checkpoint that
// cannot be used (*CheckpointError, *CheckpointSourceError); a server that is of another
// cluster than before (ErrClusterReplaced); a second Run (ErrAlreadyRunning), or one with
// the Storage of another that runs (ErrStorageInUse). It gets nil each time a watch has
// started: all is well again.
//
// The reflector goes on by itself, after a backoff where a request failed. The
// handler must return quickly, and may be called from several goroutines.
type WatchErrorHandler func(r *Reflector, err error)

// ResourceVersionUpdater is implemented by a store that wants to know the
// newest resource version that it was brought to, bookmarks included.
type ResourceVersionUpdater interface {
	// UpdateResourceVersion is called after each list, each event of a watch and
	// each bookmark, with its resource version.
	UpdateResourceVersion(resourceVersion string)
}

// GenerationStore is a cache.ReflectorStore that takes a list as it arrives,
// object by object, instead of whole in Replace. A Reflector uses it where its
// store has it.
type GenerationStore interface {
	cache.ReflectorStore
	// BeginGeneration is called before the first object of a list. The Generation
	// is given every object of the list and then either End or Abandon, all from
	// one goroutine, and nothing else is called on the store meanwhile.
	BeginGeneration(ctx context.Context) (Generation, error)
}

// Generation is one complete pass over the server's set. Its waits must end
// with their context.
type Generation interface {
	// Item is given one object, which is the store's from then on. One object may
	// come more than once. An error is reported, and the generation goes on: the
	// store must not delete what it had of the object.
	Item(ctx context.Context, obj interface{}) error
	// Skipped is called for an object of the list that could not be read: what
	// the store has of it must stay. If the key of such an object is not known
	// either, it is called once more with an empty key, and End must not delete
	// anything.
	Skipped(key string)
	// End is called after the last object: what the generation did not show is
	// gone from the server and must be deleted. An error abandons the generation,
	// which is then read again.
	End(ctx context.Context, resourceVersion string) error
	// Abandon is called instead of End where the list could not be read to its
	// end. Nothing may be deleted.
	Abandon()
}

// storeSink returns store as the sink of a Reflector.
func storeSink(store cache.ReflectorStore, streamed bool) sink.Store {
	into := sink.Store{Into: store, Streamed: streamed}
	if store, ok := store.(GenerationStore); ok {
		into.BeginGeneration = func(ctx context.Context) (sink.StoreGeneration, error) {
			return store.BeginGeneration(ctx)
		}
	}
	return into
}

// DefaultWatchErrorHandler hands err to utilruntime.ErrorHandlers, except for what is everyday: a
// resource version that expired, or a connection that ended. It is logged at verbosity 4 only,
// because an informer logs by itself what holds it up, and when that is over. What happens once is
// logged at any verbosity: ErrAlreadyRunning, ErrStorageInUse and ErrClusterReplaced.
func DefaultWatchErrorHandler(r *Reflector, err error) {
	logger := r.logging()
	if !errors.Is(err, ErrAlreadyRunning) && !errors.Is(err, ErrStorageInUse) && !errors.Is(err, ErrClusterReplaced) {
		logger = logger.WithSink(verbose{logger.GetSink()})
	}
	switch {
	case err == nil || err == io.EOF:
	case listwatch.Classify(err) == listwatch.Expired || errors.Is(err, io.ErrUnexpectedEOF):
		logger.Error(err, "Following a resource failed", "reflector", r.setup.Name, "type", r.setup.Expected.String())
	default:
		report.Unhandled(logger, err, "Following a resource failed", "reflector", r.setup.Name, "type", r.setup.Expected.String())
	}
}

// verbose logs errors at a higher verbosity.
type verbose struct{ klog.LogSink }

// WithValues and WithName are called by utilruntime, and stay verbose.
func (v verbose) WithValues(keysAndValues ...any) klog.LogSink {
	return verbose{v.LogSink.WithValues(keysAndValues...)}
}

func (v verbose) WithName(name string) klog.LogSink { return verbose{v.LogSink.WithName(name)} }

// errorVerbosity is that at which each error is logged.
const errorVerbosity = 4

func (v verbose) Error(err error, message string, keysAndValues ...any) {
	if v.Enabled(errorVerbosity) {
		v.Info(errorVerbosity, message, append(keysAndValues, "err", err)...)
	}
}

// NewNamespaceKeyedIndexerAndReflector returns an indexer with an index by
// namespace (cache.NamespaceIndex), and a Reflector that fills it.
func NewNamespaceKeyedIndexerAndReflector(lw cache.ListerWatcher, expectedType interface{}, resyncPeriod time.Duration) (indexer cache.Indexer, reflector *Reflector) {
	indexer = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	return indexer, NewReflector(lw, expectedType, indexer, resyncPeriod)
}

// NewReflector returns a Reflector that is named after the line of its caller:
// see NewNamedReflector.
func NewReflector(lw cache.ListerWatcher, expectedType interface{}, store cache.ReflectorStore, resyncPeriod time.Duration) *Reflector {
	return NewNamedReflector("", lw, expectedType, store, resyncPeriod)
}

// NewNamedReflector returns a Reflector that keeps store in step with what lw
// lists and watches. Its name is for logs.
//
// Only objects of the type of expectedType are stored, and, where that is an
// *unstructured.Unstructured with apiVersion and kind, of that kind; others are
// reported and skipped. A nil expectedType takes all. With a resyncPeriod that
// is not zero, the store's Resync is called in that period: see ShouldResync.
//
// lw should implement cache.ListerWatcherWithContext. A call of one that does not, and
// that hangs, cannot be interrupted: it is left behind after five minutes, or ten seconds
// after the end of Run's context, and reported.
func NewNamedReflector(name string, lw cache.ListerWatcher, expectedType interface{}, store cache.ReflectorStore, resyncPeriod time.Duration) *Reflector {
	return NewReflectorWithOptions(lw, expectedType, store, ReflectorOptions{Name: name, ResyncPeriod: resyncPeriod})
}

// ReflectorOptions are client-go's.
type ReflectorOptions = cache.ReflectorOptions

// NewReflectorWithOptions is NewNamedReflector with client-go's options. Without a Name,
// the Reflector is named after the line of its caller. TypeDescription is for logs, in
// place of the type. Logger is what DefaultWatchErrorHandler logs to.
//
// It panics if Clock is another than a clock.RealClock: a Reflector waits by the time of
// the process, which testing/synctest controls in tests.
func NewReflectorWithOptions(lw cache.ListerWatcher, expectedType interface{}, store cache.ReflectorStore, options ReflectorOptions) *Reflector {
	if options.Name == "" {
		options.Name = callerName()
	}
	switch options.Clock.(type) {
	case nil, clock.RealClock, *clock.RealClock:
	default:
		panic(fmt.Sprintf("informer: reflector %q: a %T is not supported as Clock; use testing/synctest in tests", options.Name, options.Clock))
	}
	r := &Reflector{
		MinWatchTimeout: options.MinWatchTimeout,
		Backoff:         options.Backoff,
		logger:          options.Logger,
		store:           store,
		resyncPeriod:    options.ResyncPeriod,
		mode:            fieldsDecide,
	}
	r.setup.Init(options.Name, lw, object.Expect(expectedType, options.TypeDescription, publicRaw))
	r.setup.Report.Consumer = stored{r}
	r.reportTo(DefaultWatchErrorHandler)
	return r
}

// reportTo has handler called with what is reported. It is called before Run.
func (r *Reflector) reportTo(handler WatchErrorHandler) {
	r.setup.Report.Handler = func(err error) { handler(r, err) }
}

// stored is a store as the consumer of a report: what it has is delivered.
type stored struct{ *Reflector }

// Subject is the name of the reflector.
func (s stored) Subject() string { return s.Name() }

// Pending is empty: nothing of a store is waited for.
func (s stored) Pending() string { return "" }

// Delivery returns whether a list was stored.
func (s stored) Delivery() report.Delivery {
	return report.Delivery{Synced: s.HasInitializedSynced()}
}

// logging is the logger of the reflector: its own, or that of the context of Run.
func (r *Reflector) logging() klog.Logger {
	if r.logger == nil {
		return r.setup.Report.Logger()
	}
	return klog.LoggerWithName(*r.logger, r.setup.Name)
}

// callerName names the line outside these files that called.
func callerName() string {
	_, here, _, _ := goruntime.Caller(0)
	return naming.GetNameFromCallsite(here, filepath.Join(filepath.Dir(here), "controller.go"))
}

// Name is the name that the reflector logs under.
func (r *Reflector) Name() string { return r.setup.Name }

// Run lists and watches until stopCh is closed: see RunWithContext.
func (r *Reflector) Run(stopCh <-chan struct{}) {
	r.RunWithContext(wait.ContextForChannel(stopCh))
}

// RunWithContext lists and watches until ctx ends. Whatever fails is reported,
// and tried again after a backoff.
func (r *Reflector) RunWithContext(ctx context.Context) {
	if r.logger != nil {
		ctx = klog.NewContext(ctx, r.logging())
	}
	defer r.setup.Report.Enter(PhaseStopped)
	r.newStoreFollower().Run(ctx, &follower.Origin{Known: r.LastSyncResourceVersion()})
}

// ListAndWatch lists once and then watches until stopCh is closed: see
// ListAndWatchWithContext.
func (r *Reflector) ListAndWatch(stopCh <-chan struct{}) error {
	return r.ListAndWatchWithContext(wait.ContextForChannel(stopCh))
}

// ListAndWatchWithContext lists once and then watches, until ctx ends or the set
// has to be listed again, and returns nil. The error is that of the list, if it
// cannot be read. What goes wrong with the watch is reported, and tried again
// after a backoff.
func (r *Reflector) ListAndWatchWithContext(ctx context.Context) error {
	if err := r.newStoreFollower().ListAndWatch(ctx, r.LastSyncResourceVersion()); err != nil {
		return fmt.Errorf("failed to list %v: %w", r.setup.Expected, err)
	}
	return nil
}

// LastSyncResourceVersion is the newest resource version that the store was
// brought to; empty before the first complete list.
func (r *Reflector) LastSyncResourceVersion() string {
	return r.setup.Report.LastResourceVersion()
}

// HasInitializedSynced reports whether a complete list has been stored.
func (r *Reflector) HasInitializedSynced() bool {
	return r.setup.Report.Stored()
}

// newFollower returns a follower for a run that puts what it reads into a sink.
func (r *Reflector) newFollower(into sink.Sink) *follower.Follower {
	return r.setup.Follower(into, r.tuning())
}

// tuning is how a run asks and waits.
func (r *Reflector) tuning() follower.Tuning {
	t := follower.Tuning{
		ListMode:           r.mode,
		PageSize:           r.WatchListPageSize,
		InternalErrorRetry: r.MaxInternalErrorRetryDuration,
		MinWatchTimeout:    r.MinWatchTimeout,
		StallTimeout:       r.StallTimeout,
		Backoff:            r.Backoff,
		ResyncPeriod:       r.resyncPeriod,
		ShouldResync:       r.ShouldResync,
	}
	if r.mode == fieldsDecide {
		t.ListMode, t.CacheFirst = ListModePaged, !r.ForcePaginatedList
	}
	return t
}

// newStoreFollower returns a follower that fills the reflector's store.
func (r *Reflector) newStoreFollower() *follower.Follower {
	return r.newFollower(storeSink(r.store, r.StreamHandleForPaginatedList))
}
