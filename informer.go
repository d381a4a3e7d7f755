// Package informer follows sets of Kubernetes objects in little memory.
//
// An ordinary informer keeps every object. A ResourceVersionInformer keeps the key
// and the resource version of each object, and hands each change to a handler as it
// comes off the wire. It is for programs that mirror very large or very many sets into
// something else: a database, an index, another cluster.
//
// # Which one do I want?
//
//   - [NewResourceVersionInformer]: a handler gets the newest state of every object,
//     and no object is kept. Start here.
//   - [NewSharedResourceVersionInformer]: the same for any number of handlers, which
//     come and go, on one watch.
//   - Package factory: the same for many resources and clusters, with informers that
//     are shared by their users and end with the last one.
//   - Package controller: a function is called for each object that is there or gone,
//     again until it succeeds.
//   - [NewInformer]: an ordinary informer. It keeps a store of the caller's, and
//     delivers every change in order, with the old and the new object.
//   - Package objectcache: client-go's SharedIndexInformer with its objects encoded, which
//     are read back in about a twentieth of the memory.
//   - Package factory/typed, a module of its own: client-go's SharedInformerFactory
//     with its listers, in less memory.
//
// Older code finds the names of client-go and clusterpedia here: [NewNamedController]
// with its [Config], [Reflector] and its constructors, [ExtraStore], and the fields
// ForcePaginatedList and StreamHandleForPaginatedList. New code does not need them.
//
// The page docs/which-informer.md compares the cost of each.
//
// # Words
//
// A generation is one complete pass over the server's set: all pages of one list, or the
// initial events of one watch-list. A sweep, at the end of a complete generation, deletes
// what the generation did not show. A delta is one observed change of one key that waits
// for its handler. A delta is acknowledged when the handler has returned, and only then
// does the Storage move. Sync, as in OnSync, means that a generation showed an object in
// the version that is stored already. Synced, as in HasSynced, means that the first
// complete generation was delivered.
//
// # What is promised
//
// An object that the server has is never deleted, and one that it no longer has is deleted in
// the end. For one key, calls come in order and no deletion is lost. A ResourceVersionInformer merges the
// changes of one key that wait for its handler; NewInformer and NewNamedController
// deliver each of them. What waits is bounded. A Run that follows another, or that begins
// with a Storage filled from elsewhere, delivers only what differs. The page
// docs/guarantees.md has each promise and the tests that hold it.
package informer

import (
	"context"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/edge/audit"
	"github.com/rvinformer/informer/internal/edge/auditor"
	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/engine/flow"
	"github.com/rvinformer/informer/internal/engine/intake"
	"github.com/rvinformer/informer/internal/engine/keeper"
	"github.com/rvinformer/informer/internal/engine/source"
)

// InformerConfig configures a ResourceVersionInformer. ListerWatcher and one of
// Handler and BatchHandler are required; the zero value of everything else is a sensible default.
type InformerConfig struct {
	// ListerWatcher lists and watches the objects. It should implement
	// cache.ListerWatcherWithContext. A call of one that does not, and that hangs, cannot be
	// interrupted: it is left behind after five minutes, or ten seconds after the end of
	// Run's context, and reported.
	cache.ListerWatcher

	// Storage is what the informer remembers. Filled before Run, it makes the
	// informer deliver only what differs. It is one informer's for as long as that runs.
	// Default: an empty one.
	Storage *ResourceVersionStorage

	// Shard is the part of the objects that is followed. Default: all of them.
	//
	// The server of a DynamicListerWatcherFactory is asked for no more than the shard:
	// kube-apiserver has that by default from 1.38 on, and behind the feature gate
	// ShardedListAndWatch from 1.36 on. One that
	// does not have it sends everything. So each object is looked at on this side too, whatever the
	// server and its version, and one that is not in the shard is skipped without being decoded. Of
	// other ListerWatchers, it is skipped after decoding.
	//
	// The shard is that of the informer for as long as it lives. Another informer may follow
	// another shard, and may begin with the Checkpoint of a shard that has something in common with
	// its own. What is not in its own shard is forgotten: its deletion is not delivered. If the
	// Checkpoint has all of the shard, the informer goes on from there without a list. Otherwise it
	// lists the whole shard. So what the Checkpoint of a shard has is divided by copies of it. A
	// Checkpoint of a shard that has nothing in common is refused: see BeginAnew.
	//
	// A Storage should have objects of the shard only. Others are forgotten when Run begins, and
	// their deletion is not delivered. Where the shard is by UID, an object whose UID is not known
	// stays, unless an informer of another shard has used the Storage before.
	Shard Shard

	// ExampleObject is an object of the type that the handler gets; others are
	// skipped. Where it has an apiVersion and a kind, so are objects of another kind.
	// An object without a name is always skipped, because it has no key. Each skipped
	// object is reported to the ErrorHandler and counted in Status.Skipped.
	//
	// With a ListerWatcher of a DynamicListerWatcherFactory it decides how objects
	// are decoded. *RawObject: not at all, in JSON, or in protobuf where the
	// rest.Config of the factory asks for that (ContentType or AcceptContentTypes)
	// and the server has it. *metav1.PartialObjectMetadata: the server is asked for
	// no more. *unstructured.Unstructured: to a map. Any other pointer to a struct,
	// *v1.Pod for instance: to that type, in protobuf where the type and the server
	// have it, and otherwise in JSON; objects are skipped whose kind is not the
	// type's name. Default: what a typed Handler takes, or *unstructured.Unstructured.
	//
	// Of other ListerWatchers it has to be the type that they return. Default: what a
	// typed Handler takes, or any type.
	ExampleObject runtime.Object

	// Handler is called for what happens. Its return acknowledges the call.
	//
	// A panic acknowledges nothing. Where utilruntime lets the process survive it, the
	// call is tried again, after 100 ms at first and 30 s at most. The change is a dead letter when
	// the call has panicked for the sixth time, or MaxAttempts times.
	Handler ResourceEventHandler

	// BatchHandler, instead of Handler, gets batches, and may fail.
	BatchHandler BatchHandler

	// MaxBatch is the most events of a batch. Default: 500.
	MaxBatch int

	// MaxAttempts is how often the handler may fail for an event by itself before the event is a
	// DeadLetter: it is not handed over any more, what comes after it counts as acknowledged, and
	// the condition DeadLetters holds. A newer state of the object is tried at once, and so is its
	// deletion. The handler has failed for an event by itself if it
	//
	//   - has named the event in FailedEvents, without Later;
	//   - has panicked for the event alone;
	//   - has failed for the event alone, and takes other events in: it did so within the last minute,
	//     and no other event has begun to fail since. Where nothing tells that, because nothing else
	//     comes, the event must have failed for fifteen minutes too. While several events fail and
	//     none is taken in, the destination is away, and there are no dead letters.
	//
	// Failures count for the object, also those for states that newer ones have replaced.
	//
	// Default: for ever, but for a panic, which makes a dead letter at the sixth time.
	MaxAttempts int

	// MaxDeadLetters is how many dead letters there may be. If there are so many, what else fails is
	// tried for ever. A dead letter takes about one KiB. Default: 10,000.
	MaxDeadLetters int

	// ErrorHandler gets what goes wrong, and nil each time a watch has
	// started. Default: DefaultWatchErrorHandler.
	ErrorHandler WatchErrorHandler

	// ExtraStore, if there is one, gets every object too.
	ExtraStore ExtraStore

	// WatchListPageSize is the number of objects in a page of a list. Default: 500.
	WatchListPageSize int64

	// ForcePaginatedList is ListModePaged, under its older name. It wins over
	// ListMode.
	ForcePaginatedList bool

	// StreamHandleForPaginatedList has no effect: objects are always handed on
	// as they arrive. It is kept so that older code compiles.
	StreamHandleForPaginatedList bool

	// ListMode is how complete sets are read. Default: ListModeAuto.
	ListMode ListMode

	// Budget is what the objects may take that wait for the handler, together with
	// those of other informers that name it. Default: one of 16 MiB, which all
	// informers share that name none.
	Budget *Budget

	// Checkpoint, if there is one, keeps what was acknowledged across restarts, for one
	// informer. It is saved when a complete list was acknowledged, then from time to
	// time, when another list begins, and when Run ends.
	//
	// The first Run loads it and, where it can, goes on with a watch, without a list.
	// What that means, and when it cannot, see CheckpointStore. Default: none, and each
	// Run begins with a list.
	Checkpoint CheckpointStore

	// BeginAnew replaces a Checkpoint that is not this informer's: of another cluster, server,
	// resource, namespace or selector, of a shard that has nothing in common, of a newer version of
	// the library, or no checkpoint at all. It is reported, and everything is listed. Default: Run
	// waits, and delivers nothing.
	BeginAnew bool

	// CheckpointInterval is how soon changes are saved. Default: one minute. Where only
	// the resource version has moved on, the checkpoint is saved ten times less often. A
	// save that failed is tried again after a second, and then after pauses that grow to
	// the interval.
	CheckpointInterval time.Duration

	// CheckpointChanges is the number of changes that are saved sooner, except that
	// no more than a twentieth of the time is spent on saving. A complete list does not
	// wait for that if the checkpoint has no resource version yet. Default: 10,000.
	CheckpointChanges int

	// Transform changes an object before the handler sees it. It may change its
	// argument, unless that is a *RawObject. It is not given tombstones. Where it
	// fails, the object is skipped and reported. With Workers, and during a Redeliver, it is called
	// side by side.
	Transform cache.TransformFunc

	// Keep are the only fields to keep of each object, for instance "metadata.labels",
	// "spec.nodeName" and "spec.containers.image". They are written as in Prune. What identifies
	// an object is always kept: its apiVersion and kind, and the name, namespace, uid and
	// resourceVersion of its metadata. A field is kept with all that is in it. A path leads through
	// arrays, into each object there. Objects and arrays on the way to a field are kept, but
	// only for what is named in them. Default: all fields.
	//
	// The other fields are dropped before Transform and, off the wire, before anything is
	// allocated for them, in JSON and in protobuf. Raw objects whose Keep names more than
	// metadata are asked for in JSON, because their Go type is not known. Where ExampleObject is of
	// a Go type, each path must lead to a field of the type.
	Keep []string

	// Prune are fields to drop from each object, or from what Keep leaves of it: the names of the
	// JSON fields with dots between them, a dot within a name written `\.`, for instance
	// "metadata.managedFields" or
	// `metadata.annotations.kubectl\.kubernetes\.io/last-applied-configuration`. The fields that
	// identify an object cannot be dropped. A path does not lead into arrays, and drops nothing
	// from an object without the field. Default: none.
	//
	// The fields are dropped before Transform and, off the wire, before anything is allocated for
	// them, in JSON and in protobuf. Raw objects are asked for in JSON if Prune names more than
	// fields of the metadata.
	Prune []string

	// Workers is the number of calls of the handler side by side. Those for one key
	// stay in order, and no two of them are under way at a time. Default: 1.
	Workers int

	// MinWatchTimeout is the least time for which a watch is asked for, and half
	// the most. Default, and least: 15 minutes for a ListerWatcher of a
	// DynamicListerWatcherFactory, 5 minutes for others.
	MinWatchTimeout time.Duration

	// MaxInternalErrorRetryDuration is for how long a watch that the server breaks
	// with an internal error (500) is tried again from where it was, before a new
	// list. Default: a second break in a row, without an event between, is a new list.
	MaxInternalErrorRetryDuration time.Duration

	// StallTimeout is the silence after which a watch counts as broken and is started anew, without
	// a list, and a page of a list is asked for again. Default, for a watch: 150 seconds once a
	// bookmark was received; before that, the time for which the watch was asked for and 30
	// seconds; for a list: 75 seconds. It is also how long List and Watch of a ListerWatcher of
	// others may take, if they take a context. Default for these: five minutes.
	StallTimeout time.Duration

	// AuditEvery is how often the informer is audited while it runs: see Audit of
	// ResourceVersionInformer. The time is drawn anew for each audit, up to a quarter shorter or
	// longer, and informers of one server take turns. Results are in Status.LastAudit; the
	// ErrorHandler gets an ErrDiffered when something differs. It needs a ListerWatcher of a
	// DynamicListerWatcherFactory, and takes a goroutine. Default: never.
	AuditEvery time.Duration

	// AuditOptions are those of AuditEvery.
	AuditOptions AuditOptions

	// Backoff is how long to wait after a failed request, and between two lists. It starts again
	// after progress: a complete list, or a watch that has lasted for ten seconds, or for one and
	// brought something; between lists, only after a watch of ten seconds. While the server of a
	// DynamicListerWatcherFactory is away, all its informers wait for it together, and go on within
	// seconds of its return, whatever their backoff. Default: 800 ms, doubled up to 30 s, and as
	// much again at random.
	Backoff *wait.Backoff
}

// ResourceVersionInformer follows a set of objects and remembers only their keys
// and resource versions. It merges the changes of one object that wait for the handler,
// so that the handler gets the newest state: see the package documentation.
//
// Any version of the library may add methods to it. A type of yours that implements it embeds one.
type ResourceVersionInformer interface {
	// Run is RunWithContext for a channel that is closed to stop.
	Run(stopCh <-chan struct{})
	// RunWithContext lists, watches and calls the handler until ctx ends, and
	// returns after the last call has returned. What was read and not handed on
	// by then is read again by the next Run, which may follow: it goes on from the
	// Storage. A Run beside a running one reports ErrAlreadyRunning and returns, and one
	// beside that of another informer with the same Storage, ErrStorageInUse.
	RunWithContext(ctx context.Context)
	// HasSynced reports whether the first complete list was delivered to the
	// handler: every call returned, those for deletions included. It never
	// becomes false again.
	HasSynced() bool
	// HasSyncedChecker has a channel that is closed when HasSynced becomes true.
	HasSyncedChecker() cache.DoneChecker
	// LastSyncResourceVersion is the newest resource version read, acknowledged or
	// not; empty before the first complete list, unless Run has resumed.
	LastSyncResourceVersion() string
	// Status is a snapshot of the informer.
	Status() Status
	// DeadLetters returns the changes that the handler has refused so often that they are not handed
	// over any more, sorted by key: see InformerConfig.MaxAttempts. A Checkpoint keeps them, so that
	// they are known after a restart. They are the caller's.
	DeadLetters() []DeadLetter
	// Audit compares the Storage with the server, while both change, and reports what differs. An
	// informer that is right has no differences: see AuditReport. It lists the server's metadata at
	// one version, in pages, and waits until everything up to that version is acknowledged, if
	// something looks wrong before; on a quiet resource, that may take until the next bookmark. It
	// takes about ten bytes for each object, and needs no other permission than list.
	//
	// The error says how far the audit came. It wraps ErrNotRunning, or ErrNotSynced before the
	// first list is delivered; ErrAuditRunning if another audit is under way; ErrNoMetadata, or
	// what the server has answered, if metadata cannot be listed; ErrUnorderedVersion or
	// ErrServerRestored if versions cannot be compared; the error of ctx, or ErrStopped if Run has
	// ended meanwhile.
	Audit(ctx context.Context, opts AuditOptions) (AuditReport, error)
	// Redeliver delivers objects once more to the handler, in their newest state and as updates,
	// while the watch goes on: after the handler was mended, for instance, or what it writes to was
	// restored or has got new columns. It returns when the handler has acknowledged all of them. An
	// object that changes meanwhile is delivered in its newer state, one that is deleted as a
	// deletion, and never in a state older than one that was acknowledged.
	//
	// Where resource versions have no order, it does not wait for changes that the watch is yet to
	// bring.
	//
	// The objects are listed beside the watch, in pages of the newest state. They wait for the
	// Budget as others do. Changes that the watch brings go before them, and
	// Status.ResourceVersion does not wait for them. Progress is in Status.Redelivery and in the
	// Checkpoint: if Run ends meanwhile, also by a crash, the next Run goes on with it by itself,
	// and delivers some of the objects twice. If ctx ends, and Run goes on, it is given up. So give
	// it the context of Run, or one made of that: any other one that ends with the process, but an
	// instant before that of Run, gives it up.
	//
	// Of Keys, those that the server does not have, or that the selectors of the informer leave out,
	// are delivered as deletions. An informer that follows a Shard does so only for keys that it
	// knows. A key of another namespace than the informer's is an error. Without Keys and Selector,
	// those deletions are delivered again that the handler has not acknowledged.
	//
	// Requests that fail are made again: see Status.Redelivery. The error says what is wrong with the
	// options, or wraps ErrNotRunning, ErrNotSynced before the first list is delivered,
	// ErrRedelivering if another one is under way, ErrStopped if Run has ended, or the error of ctx.
	// It may also be the answer to a request that the server calls bad (400 or 422), or say that
	// objects have no resource version. The ErrorHandler gets these two as well.
	Redeliver(ctx context.Context, opts RedeliverOptions) error
	// WaitUntil waits until the handler has acknowledged a resource version of the resource, and
	// all before it: see WaitError for how it can fail. The version may be that of an object that
	// was written, of its deletion, or of a list. An object that could not be read is not waited for,
	// nor is a dead letter: with MaxAttempts, DeadLetters tells whether the handler has refused a
	// write.
	//
	// A version of an object that the informer follows arrives as soon as the server tells it.
	// Where no object that the informer follows has the version, because a selector leaves it out
	// for instance, the next bookmark tells that it has passed: servers send one about each minute.
	// So ctx should allow for that.
	WaitUntil(ctx context.Context, resourceVersion string) error
}

// NewResourceVersionInformer returns an informer that delivers the newest state of each
// object: changes of one object that arrive while they wait for the handler are merged
// into one call. NewInformer delivers every change.
//
// Name is for logs. It panics on
// a configuration that cannot work: an empty name, a nil ListerWatcher, no handler or two, a
// negative number or duration, a Shard that makes no sense, an unknown ListMode, a path of Keep or
// Prune that makes no sense, a RawObject with a ListerWatcher that decodes, an ExampleObject that a
// typed Handler does not take.
func NewResourceVersionInformer(name string, config InformerConfig) ResourceVersionInformer {
	return newResourceVersionInformer(name, config.mustCheck(name))
}

func newResourceVersionInformer(name string, config checkedConfig) *resourceVersionInformer {
	r := NewNamedReflector(name, config.ListerWatcher, config.ExampleObject, nil, 0)
	r.WatchListPageSize = config.WatchListPageSize
	r.MinWatchTimeout = config.MinWatchTimeout
	r.MaxInternalErrorRetryDuration = config.MaxInternalErrorRetryDuration
	r.StallTimeout = config.StallTimeout
	r.Backoff = config.Backoff
	r.mode = config.ListMode
	r.setup.UseFields(config.fields)
	r.setup.Shard = config.Shard
	r.setup.Report.UseListMode(r.mode, nil)
	if config.ErrorHandler != nil {
		r.reportTo(config.ErrorHandler)
	}

	i := &resourceVersionInformer{handler: config.Handler}
	options, transform := r.flow(&config.Storage.versions), config.Transform
	if config.BatchHandler != nil {
		options.Consumer = flow.Batches{Limit: config.MaxBatch, Handle: handBatch(config.BatchHandler)}
		options.SkipUnchanged = !hearsSync(config.BatchHandler)
		transform = objectsOnly(transform)
	} else {
		options.Consumer = flow.Keys{Process: i.handle, Failing: flow.Bury}
		options.SkipUnchanged = !hearsSync(config.Handler)
	}
	options.Shard = config.Shard
	if r.setup.Resource != nil {
		options.Namespace = r.setup.Resource.Namespace()
	}
	options.Workers = config.Workers
	options.MaxAttempts = int32(min(config.MaxAttempts, math.MaxInt32))
	options.MaxDeadLetters = int32(min(config.MaxDeadLetters, math.MaxInt32))
	options.Budget = config.Budget.shared()
	options.Intake = intake.New(intake.Options{
		Report: &r.setup.Report, Form: &r.setup.Form, Kind: kindOf(config.ExampleObject), Fields: config.fields, Transform: transform,
		Accepts: config.taken.Accepts, Taken: config.taken.Type, Extra: config.ExtraStore, Lent: true,
	})
	if config.Checkpoint != nil {
		options.Keeper = keeper.New(keeper.Options{
			Store:     config.Checkpoint,
			BeginAnew: config.BeginAnew,
			Interval:  config.CheckpointInterval,
			Changes:   config.CheckpointChanges,
			Backoff:   config.Backoff,
			Server:    r.setup.Server,
			Cluster:   &r.setup.Cluster,
			Shard:     config.Shard,
			Report:    &r.setup.Report,
			Extra:     config.ExtraStore != nil,
		}, &config.Storage.versions)
	}
	options.Objects = r.objects
	if config.AuditEvery > 0 {
		every, opts := config.AuditEvery, config.AuditOptions
		options.Beside = func(ctx context.Context) { i.auditor().Repeat(ctx, every, opts) }
	}
	i.flowController = newFlowController(r, options)
	return i
}

// kindOf is the kind that an example object says that it is of.
func kindOf(example runtime.Object) (kind metav1.TypeMeta) {
	if example != nil {
		kind.APIVersion, kind.Kind = example.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	}
	return kind
}

// resourceVersionInformer is a flow into a handler.
type resourceVersionInformer struct {
	flowController
	handler ResourceEventHandler
}

var _ ResourceVersionInformer = &resourceVersionInformer{}

// Status returns a snapshot of the informer.
func (i *resourceVersionInformer) Status() Status {
	return Status(i.flow.Snapshot())
}

// DeadLetters returns the dead letters.
func (i *resourceVersionInformer) DeadLetters() []DeadLetter { return i.flow.Versions.DeadLetters() }

// Audit compares the Storage with the server.
func (i *resourceVersionInformer) Audit(ctx context.Context, opts AuditOptions) (AuditReport, error) {
	return i.auditor().Audit(ctx, opts)
}

func (i *resourceVersionInformer) auditor() auditor.Auditor {
	r := i.reflector
	return auditor.Auditor{
		Setup: &r.setup, PageSize: r.WatchListPageSize, Patience: source.Patience(r.StallTimeout),
		Informer: func() (audit.Informer, error) { return i.flow.Running() },
	}
}

// Redeliver delivers objects once more.
func (i *resourceVersionInformer) Redeliver(ctx context.Context, opts RedeliverOptions) error {
	return i.flow.Redeliver(ctx, opts)
}

// WaitUntil waits until the handler has acknowledged a resource version and all before it.
func (i *resourceVersionInformer) WaitUntil(ctx context.Context, resourceVersion string) error {
	return i.flow.WaitUntil(ctx, resourceVersion, nil)
}

// handle calls the handler for the deltas of one key.
func (i *resourceVersionInformer) handle(e *deltaqueue.Entry, deltas []deltaqueue.Delta) error {
	if len(deltas) == 0 { // no call, which would settle what the last one left
		return nil
	}
	settled := false
	defer func() { i.flow.Versions.Settle(e.Key, settled) }()
	var room [flow.MaxNotices]flow.Notice
	for _, n := range i.flow.Notices(room[:0], e, deltas) {
		settled = n.Type == Synced
		notify(i.handler, n, e.Initial)
	}
	settled = true
	return nil
}

// notify calls a handler.
func notify(handler ResourceEventHandler, n flow.Notice, isInInitialList bool) {
	switch n.Type {
	case Added:
		handler.OnAdd(n.Object, isInInitialList)
	case Updated:
		handler.OnUpdate(nil, n.Object)
	case Deleted:
		handler.OnDelete(n.Object)
	case Synced:
		handler.OnSync(n.Object)
	}
}
