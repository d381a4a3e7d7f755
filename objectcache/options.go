package objectcache

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/engine/follower"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/prune"
)

// Options are options of an Informer. The zero value of each field is its default.
type Options struct {
	// Name is for logs. Default: the type of the objects.
	Name string

	// ResyncPeriod is how often a handler without a period of its own gets all objects again, as
	// updates. Default: never. If it is zero, no handler can have a period that is not.
	ResyncPeriod time.Duration

	// Indexers are the first indexes of the Store. AddIndexers adds others.
	Indexers cache.Indexers

	// Keep are the only fields to keep of each object, and Prune are fields to drop, before
	// Transform, as in informer.InformerConfig. What identifies an object always stays. Labels that
	// are not kept cannot be selected by.
	Keep, Prune []string

	// Transform changes an object before it is stored. It may change its argument. It is not given
	// tombstones. A resource version or UID that it drops is put back, because the store and its
	// readers compare them. Where it fails, the object is skipped and reported, and the store keeps
	// what it has.
	//
	// It should leave names and namespaces as they are. An object that it renames has its new key in
	// the store and for handlers, as in client-go, but the server does not know that key: an Audit
	// finds the object as missing and as superfluous, and what is asked about it after an outage, or
	// after a start with a Snapshot, ends in a list of everything.
	Transform cache.TransformFunc

	// Snapshot, if set, keeps the objects across restarts. They are saved as the store has them,
	// beside readers and the writer, each SnapshotInterval, after each list and at the end of Run,
	// by the rules of informer.CheckpointStore: source, lock, versions. informer.FileCheckpoint
	// saves atomically, with a checksum, to a file that only its owner can read. It must be another
	// store than the Checkpoint of an informer, and of this informer alone.
	//
	// The next process restores the store as soon as the server has said which cluster it is of. It
	// has nothing decoded, except for indexes of its own functions. From then on readers are
	// served, and handlers get the restored objects as additions of the initial list. HasSynced is
	// true when the server has accepted the resource version. The watch goes on from there without
	// a list, and handlers get what has changed since. If the server does not have the version any
	// more, a list follows, and handlers get what differs from the restored objects. A snapshot
	// that is damaged, of a newer version of the library, or was saved with another type or kind of
	// objects, Keep or Prune, is reported and replaced, and everything is listed. Use another name
	// for it when Transform changes: objects that have not changed since are not transformed again.
	// Status has the fields of a checkpoint.
	Snapshot informer.CheckpointStore

	// BeginAnew replaces a Snapshot that is not this informer's: of another cluster, server,
	// resource, namespace or selector, or no snapshot at all. It is reported, and everything is
	// listed. Default: Run waits, and the store stays empty.
	BeginAnew bool

	// SnapshotInterval is how often a store that has changed is saved. Default: 3 minutes. A
	// kube-apiserver keeps a version for 5 minutes at least, from which a process that was killed
	// can go on.
	SnapshotInterval time.Duration

	// SnapshotSecrets lets a Snapshot have Secrets. Without it, they are refused, metadata only
	// too: an annotation of kubectl has what was last applied. Metadata and types of the program whose
	// kind neither the example nor the ListerWatcher says are refused too. Unstructured ones whose example does not
	// say their kind are found out when they are read; then each save fails with an error that says
	// so, also if a Transform drops their kind. Fields that Prune drops are never written.
	SnapshotSecrets bool

	// Shard is the part of the objects that is followed, as in informer.InformerConfig. Others are
	// not in the store: a Get finds none, and a WaitUntil of their versions waits for a bookmark. A
	// Snapshot of another shard is not used. Default: all objects. SetShardSelector sets it too.
	Shard informer.Shard

	// Decoded keeps the objects decoded, in as much memory as client-go takes for them. A Get is a
	// lookup in a map then. It returns the object itself, as List does, and handlers get the same
	// one: nobody may change it. GetIndexer is client-go's own, and Store is nil. An object that a
	// list shows unchanged is not decoded again, and stays the same pointer. It cannot be set
	// beside Snapshot or HotBytes. Status does not know how many bytes decoded objects
	// take: its QueuedBytes and Counts.StoredBytes leave them out.
	Decoded bool

	// Identifier names the metrics that client-go publishes of the indexer with Decoded: that of
	// its resource version, with client-go 0.37 or newer. Those of client-go's queues do not exist
	// here. It needs Decoded.
	Identifier cache.InformerNameAndResource

	// HotBytes is StoreOptions.HotBytes.
	HotBytes int64

	// Budget has the turns in which the lists of all its informers are read, so that many that
	// start together take little memory. What waits for handlers counts in it, and what is stored
	// does not. An Informer reads on while its Budget is spent, so that its store stays current;
	// resource-version informers of that Budget read less until its handlers have caught up.
	// Default: informer.DefaultBudget.
	Budget *informer.Budget

	// ErrorHandler is called with everything that goes wrong, and with nil each time a watch has
	// started. Its Reflector has the name of the Informer, and never runs. SetWatchErrorHandler
	// replaces it. Default: informer.DefaultWatchErrorHandler.
	ErrorHandler informer.WatchErrorHandler

	// AuditEvery and AuditOptions are those of informer.InformerConfig. They need lw of an
	// informer.DynamicListerWatcherFactory.
	AuditEvery   time.Duration
	AuditOptions informer.AuditOptions

	// ListMode, WatchListPageSize, StallTimeout and Backoff are those of informer.InformerConfig.
	ListMode          informer.ListMode
	WatchListPageSize int64
	StallTimeout      time.Duration
	Backoff           *wait.Backoff
}

// Check returns an error that names the field that an informer of objects like example cannot work
// with, or nil. With a nil example, it says what can be said without a type.
func (o Options) Check(example runtime.Object) error {
	_, err := o.check(example)
	return err
}

// check returns the fields to keep.
func (o Options) check(example runtime.Object) (*prune.Fields, error) {
	switch _, raw := example.(*informer.RawObject); {
	case raw:
		return nil, fmt.Errorf("an example of type %T: the store keeps objects encoded anyway; use the type that readers want", example)
	case o.ResyncPeriod < 0:
		return nil, fmt.Errorf("ResyncPeriod is %v", o.ResyncPeriod)
	case o.AuditEvery < 0:
		return nil, fmt.Errorf("AuditEvery is %v", o.AuditEvery)
	case o.StallTimeout < 0:
		return nil, fmt.Errorf("StallTimeout is %v", o.StallTimeout)
	case o.SnapshotInterval < 0:
		return nil, fmt.Errorf("SnapshotInterval is %v", o.SnapshotInterval)
	case o.refusesSecrets() && isSecret(example):
		return nil, errSecrets
	case !o.Decoded && o.Identifier.Name() != "":
		return nil, errors.New("an Identifier is for metrics of client-go's indexer, which needs Decoded")
	case o.Decoded && o.Snapshot != nil:
		return nil, errors.New("a Snapshot is of objects that are kept encoded, which Decoded rules out")
	case o.Decoded && o.HotBytes > 0:
		return nil, fmt.Errorf("HotBytes is %d beside Decoded, which keeps all objects decoded", o.HotBytes)
	case o.WatchListPageSize < 0:
		return nil, fmt.Errorf("WatchListPageSize is %d", o.WatchListPageSize)
	case o.ListMode < informer.ListModeAuto || o.ListMode > informer.ListModeWatchList:
		return nil, fmt.Errorf("unknown ListMode %d", o.ListMode)
	}
	if err := o.Shard.Validate(); err != nil {
		return nil, err
	}
	fields, err := prune.Parse(o.Keep, o.Prune)
	if err != nil || example == nil {
		return fields, err
	}
	return fields, object.Expect(example, "", object.Public{}).CheckFields(fields)
}

// withDefaults fills in what is empty.
func (o Options) withDefaults(example runtime.Object) Options {
	if o.Name == "" {
		o.Name = fmt.Sprintf("%T", example)
	}
	if o.Budget == nil {
		o.Budget = informer.DefaultBudget()
	}
	if o.ErrorHandler == nil {
		o.ErrorHandler = informer.DefaultWatchErrorHandler
	}
	return o
}

func (o Options) tuning() follower.Tuning {
	return follower.Tuning{
		ListMode:     o.ListMode,
		PageSize:     o.WatchListPageSize,
		StallTimeout: o.StallTimeout,
		Backoff:      o.Backoff,
	}
}
