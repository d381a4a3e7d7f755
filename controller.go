package informer

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/edge/userqueue"
	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/engine/flow"
	"github.com/rvinformer/informer/internal/engine/follower"
	"github.com/rvinformer/informer/internal/engine/intake"
	"github.com/rvinformer/informer/internal/engine/known"
	"github.com/rvinformer/informer/internal/engine/sink"
	"github.com/rvinformer/informer/internal/leaf/budget"
)

// Config configures a controller: one reflector feeding one queue feeding
// Process. ListerWatcher and Process are required.
type Config struct {
	// Queue takes what the reflector reads: a cache.DeltaFIFO, a cache.RealFIFO or
	// another cache.Queue that pops cache.Deltas. It is given each list whole, in
	// Replace, or by Add if the list has an object that could not be read, because Replace
	// would delete that. It is closed when Run ends.
	//
	// Default: a bounded queue of the controller's own, which takes lists object
	// by object and knows by resource version what Process has handled. It pops each
	// change on its own, in the order that they were read. Where it
	// pops a deletion that a list found, that is a cache.DeletedFinalStateUnknown whose
	// Obj is a *metav1.PartialObjectMetadata. What it holds when Run ends is read
	// again by the next Run. It has nothing to resync. The deltas of what a list shows are of
	// type cache.Sync, as those of a cache.DeltaFIFO: see EmitDeltaTypeReplaced.
	cache.Queue

	// EmitDeltaTypeReplaced gives the deltas of what a list shows the type cache.Replaced
	// in place of cache.Sync, as the option of that name of a cache.DeltaFIFO does. It
	// counts without a Queue of the caller's.
	EmitDeltaTypeReplaced bool

	// ListerWatcher lists and watches the objects.
	cache.ListerWatcher

	// Process handles what the queue pops: a cache.Deltas, the changes of one key
	// from the oldest to the newest. It is called for one key at a time, in the goroutine
	// of Run, so that a panic reaches the caller of Run.
	Process cache.ProcessFunc

	// ObjectType is an object of the type that ListerWatcher returns; others are
	// skipped. Where it is an *unstructured.Unstructured with apiVersion and kind,
	// so are objects of another kind. Default: any type is taken.
	ObjectType runtime.Object

	// FullResyncPeriod is the period of calls to the queue's Resync.
	// Default: never.
	FullResyncPeriod time.Duration

	// ShouldResync is asked in each period whether to call Resync. Default: always.
	ShouldResync cache.ShouldResyncFunc

	// RetryOnError has the deltas that Process returned an error for tried again,
	// after 100 ms at first and 30 s at most, until it succeeds or Run ends. The next
	// change of the key replaces what failed, except that a deletion is
	// never left out. What failed stays in the queue: when the controller's own is
	// full of it, nothing more is read. Without it, deltas that failed are not tried
	// again before the object changes, or is listed in another version than Process
	// has handled. The error is reported in both cases.
	RetryOnError bool

	// WatchErrorHandler gets what goes wrong, errors of Process included, and
	// nil each time a watch has started. Default: DefaultWatchErrorHandler.
	WatchErrorHandler WatchErrorHandler

	// The following are those of Reflector.
	WatchListPageSize             int64
	StreamHandleForPaginatedList  bool
	ForcePaginatedList            bool
	MinWatchTimeout               time.Duration
	MaxInternalErrorRetryDuration time.Duration
	StallTimeout                  time.Duration
	Backoff                       *wait.Backoff
}

func (c *Config) reflector(name string, store cache.ReflectorStore) *Reflector {
	r := NewNamedReflector(name, c.ListerWatcher, c.ObjectType, store, c.FullResyncPeriod)
	r.ShouldResync = c.ShouldResync
	r.WatchListPageSize = c.WatchListPageSize
	r.StreamHandleForPaginatedList = c.StreamHandleForPaginatedList
	r.ForcePaginatedList = c.ForcePaginatedList
	r.MinWatchTimeout = c.MinWatchTimeout
	r.MaxInternalErrorRetryDuration = c.MaxInternalErrorRetryDuration
	r.StallTimeout = c.StallTimeout
	r.Backoff = c.Backoff
	if c.WatchErrorHandler != nil {
		r.reportTo(c.WatchErrorHandler)
	}
	return r
}

// NewNamedController returns a controller; name is for logs. Config is copied.
// It panics if ListerWatcher or Process is nil.
//
// Its HasSynced is false before Run, and true when the first complete list has
// been through Process. Its LastSyncResourceVersion is the newest that was read.
// Run returns after every goroutine that it started.
func NewNamedController(name string, config *Config) cache.Controller {
	switch {
	case config.ListerWatcher == nil:
		panic("controller " + name + ": ListerWatcher is required")
	case config.Process == nil:
		panic("controller " + name + ": Process is required")
	}
	if config.Queue != nil {
		return newQueueController(name, config)
	}
	r := config.reflector(name, nil)
	options := r.flow(&known.Versions{})
	options.Ordinary = true
	options.Intake = intake.New(intake.Options{Report: &r.setup.Report, Form: &r.setup.Form})
	failing := flow.PassOver
	if config.RetryOnError { // what fails for ever must not hold what others need
		failing, options.Budget = flow.Retry, budget.New(defaultBytes)
	}
	c := &flowController{}
	process, emitReplaced := config.Process, config.EmitDeltaTypeReplaced
	options.Consumer = flow.Keys{Failing: failing, Process: func(e *deltaqueue.Entry, deltas []deltaqueue.Delta) error {
		if len(deltas) == 0 {
			return nil
		}
		popped := c.flow.Deltas(e.Key, deltas)
		if !emitReplaced {
			asSync(popped)
		}
		return process(popped, e.Initial)
	}}
	*c = newFlowController(r, options)
	return c
}

// asSync gives deltas of what a list shows the type that a cache.DeltaFIFO gives them by default.
func asSync(deltas cache.Deltas) {
	for i := range deltas {
		if deltas[i].Type == cache.Replaced {
			deltas[i].Type = cache.Sync
		}
	}
}

// flowController is a flow as a cache.Controller.
type flowController struct {
	reflector *Reflector
	flow      *flow.Flow
}

func newFlowController(r *Reflector, options flow.Options) flowController {
	r.setup.Budget = options.Budget
	return flowController{r, flow.New(options)}
}

// flow returns the options of a flow whose runs read with r.
func (r *Reflector) flow(versions *known.Versions) flow.Options {
	return flow.Options{
		Name:       r.setup.Name,
		Report:     &r.setup.Report,
		Versions:   versions,
		Follow:     r.newFollower,
		Claim:      func() (release func(), err error) { return versions.Claim(r) },
		Budget:     defaultBudget.shared(),
		Tombstones: r.setup.Resource != nil,
	}
}

func (c flowController) Run(stopCh <-chan struct{})         { c.flow.Run(wait.ContextForChannel(stopCh)) }
func (c flowController) RunWithContext(ctx context.Context) { c.flow.Run(ctx) }
func (c flowController) HasSynced() bool                    { return cache.IsDone(c.HasSyncedChecker()) }
func (c flowController) HasSyncedChecker() cache.DoneChecker {
	return doneChecker{name: c.reflector.setup.Name, done: c.flow.Synced()}
}
func (c flowController) LastSyncResourceVersion() string {
	return c.reflector.LastSyncResourceVersion()
}

// doneChecker is a cache.DoneChecker over a channel.
type doneChecker struct {
	name string
	done <-chan struct{}
}

func (d doneChecker) Name() string          { return d.name }
func (d doneChecker) Done() <-chan struct{} { return d.done }

// queueController is a userqueue.Controller as a cache.Controller.
type queueController struct {
	name      string
	reflector *Reflector
	queue     *userqueue.Controller
	started   atomic.Bool
}

func newQueueController(name string, config *Config) *queueController {
	r := config.reflector(name, config.Queue)
	return &queueController{name: name, reflector: r, queue: userqueue.New(userqueue.Options{
		Queue:   config.Queue,
		Into:    storeSink(config.Queue, config.StreamHandleForPaginatedList),
		Process: config.Process,
		Retry:   config.RetryOnError,
		Report:  &r.setup.Report,
		Read: func(ctx context.Context, into sink.Sink) {
			r.newFollower(into).Run(ctx, &follower.Origin{Known: r.LastSyncResourceVersion()})
		},
	})}
}

func (c *queueController) Run(stopCh <-chan struct{}) {
	c.RunWithContext(wait.ContextForChannel(stopCh))
}

// RunWithContext fills and empties the queue until ctx ends, closes it then, and
// processes what is left in it. It can run once: the queue stays closed.
func (c *queueController) RunWithContext(ctx context.Context) {
	if !c.started.CompareAndSwap(false, true) {
		c.reflector.setup.Report.Handler(fmt.Errorf("%s: Run was called before, and its queue is closed at its end: %w", c.name, ErrAlreadyRunning))
		return
	}
	c.queue.Run(ctx)
}

func (c *queueController) HasSynced() bool { return cache.IsDone(c.HasSyncedChecker()) }

func (c *queueController) HasSyncedChecker() cache.DoneChecker {
	return doneChecker{name: c.name, done: c.queue.Synced()}
}

func (c *queueController) LastSyncResourceVersion() string {
	return c.reflector.LastSyncResourceVersion()
}

// NewInformer returns an ordinary informer: a controller that keeps store, which is the caller's,
// in step with what lw lists and watches, and calls h after each change. The store must be keyed by
// cache.MetaNamespaceKeyFunc or cache.DeletionHandlingMetaNamespaceKeyFunc. Objects that it holds
// when Run begins count as delivered before. Only one informer may run with it at a time: Run of
// another one reports ErrStorageInUse and returns.
//
// H is called as client-go calls it: once for every change that a watch brings,
// in the order of the watch; OnUpdate for every object of a later list,
// changed or not, and, with a resyncPeriod that is not zero, for every object of
// the store in that period; cache.DeletedFinalStateUnknown, with the object that
// the store had, for a deletion that a list found. An object that was deleted and
// created again under its name is an OnDelete and an OnAdd.
//
// H is called in the goroutine of Run, so that a panic reaches the caller of Run, after
// everything else that Run has started has ended. While h is busy, changes wait in
// memory. Where 1,000 wait, or the default Budget is spent, the watch is read no further
// until h has returned. A server may give up a watch that is not read: a list then shows
// the newest state, and not what led to it.
//
// Transfor, which may be nil, changes objects before they are queued and stored.
// It panics if lw, store or h is nil, or h is typed and takes another type than objType.
func NewInformer(lw cache.ListerWatcher, objType runtime.Object, store cache.Store, resyncPeriod time.Duration, h cache.ResourceEventHandler, transfor cache.TransformFunc) cache.Controller {
	return newInformer(callerName(), InformerOptions{
		ListerWatcher: lw, ObjectType: objType, Store: store, ResyncPeriod: resyncPeriod, Handler: h, Transform: transfor,
	})
}

// InformerOptions are options of an ordinary informer. ListerWatcher, Store and Handler are required.
type InformerOptions struct {
	// Name is for logs. Default: the line of the program that makes the informer.
	Name string

	// ListerWatcher, ObjectType, Store, ResyncPeriod, Handler and Transform are the arguments of
	// NewInformer.
	ListerWatcher cache.ListerWatcher
	ObjectType    runtime.Object
	Store         cache.Store
	ResyncPeriod  time.Duration
	Handler       cache.ResourceEventHandler
	Transform     cache.TransformFunc

	// WatchErrorHandler gets what goes wrong, and nil each time a watch has started. Default:
	// DefaultWatchErrorHandler.
	WatchErrorHandler WatchErrorHandler
}

// NewInformerWithOptions is NewInformer with a name and an error handler. It panics as that does.
func NewInformerWithOptions(options InformerOptions) cache.Controller {
	return newInformer(cmp.Or(options.Name, callerName()), options)
}

func newInformer(name string, o InformerOptions) cache.Controller {
	switch {
	case o.ListerWatcher == nil:
		panic("informer: the ListerWatcher is required")
	case o.Store == nil:
		panic("informer: the store is required")
	case o.Handler == nil:
		panic("informer: the handler is required")
	}
	taken := takenBy(o.Handler)
	objType, err := taken.Example(o.ObjectType, o.Transform != nil)
	if err != nil {
		panic(fmt.Sprintf("informer: %v", err))
	}
	r := NewNamedReflector(name, o.ListerWatcher, objType, nil, o.ResyncPeriod)
	if o.WatchErrorHandler != nil {
		r.reportTo(o.WatchErrorHandler)
	}
	options := r.flow(&known.Versions{})
	options.Ordinary = true
	options.Intake = intake.New(intake.Options{
		Report: &r.setup.Report, Form: &r.setup.Form, Transform: o.Transform, Accepts: taken.Accepts, Taken: taken.Type, Stored: o.Store.List,
	})
	options.KeepIn(o.Store, o.Handler, r)
	return newFlowController(r, options)
}
