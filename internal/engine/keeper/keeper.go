// Package keeper keeps the checkpoint of an informer. When a run begins, a Keeper locks the store,
// finds out which set of objects is followed, and loads what is known of it. While the run goes on,
// it decides when to save and which resource version may be claimed. At the end it saves once more.
//
// A Keeper belongs to a flow, which calls Begin, then Run beside the follower, then End. The
// follower reports each list to it by way of the intake, and the known versions each change.
package keeper

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/engine/journal"
	"github.com/rvinformer/informer/internal/engine/known"
	"github.com/rvinformer/informer/internal/engine/recency"
	"github.com/rvinformer/informer/internal/engine/server"
	"github.com/rvinformer/informer/internal/leaf/failure"
)

const (
	// defaultInterval and defaultChanges are those of InformerConfig.
	defaultInterval = time.Minute
	defaultChanges  = 10_000
	// lastSaveLimit is how long the save at the end of a run may take.
	lastSaveLimit = 30 * time.Second
)

// Store keeps a checkpoint. It is the CheckpointStore of the root package, which says what the
// methods promise. A Store may also be a Locker and a journal.Store.
type Store interface {
	Load(ctx context.Context) (io.ReadCloser, error)
	Save(ctx context.Context, write func(io.Writer) error) error
}

// Locker is a Store that only one may use at a time: the CheckpointLocker of the root package.
type Locker interface {
	Lock() (unlock func() error, err error)
}

// Options are what a Keeper and Snapshots need. All are required but for BeginAnew, Interval,
// Changes, Backoff, Shard and Extra.
type Options struct {
	Store Store
	// BeginAnew has content replaced that is not this informer's.
	BeginAnew bool
	// Interval is how often the content is saved if it has changed, and Changes how many changes
	// are saved before that. Their zero values are the defaults.
	Interval time.Duration
	Changes  int
	// Backoff is how long to wait after failures, nil for the default.
	Backoff *wait.Backoff
	// Server is asked which set of objects is followed.
	Server  server.Identifier
	Cluster *known.Cluster
	// Shard is the one that is followed.
	Shard  api.Shard
	Report *report.Report
	// Extra tells that the process itself keeps what every run has read. After another process has
	// written to the store, what is known is kept beside that, and listed, so that nothing stays there.
	Extra bool
}

// Keeper loads the checkpoint when a run begins, and saves it. Begin, Run and End are called one
// after the other, and the other methods by any goroutine.
type Keeper struct {
	lockedStore
	Versions *known.Versions
	// journal is that of the store, nil if it takes none.
	journal *journal.Journal
	covers  recency.Coverage
	// Redelivery, set before Begin, is what the checkpoint has beside the versions.
	Redelivery Redelivery
	// savedEdits is the number of changes of the known versions by others that the last save had.
	savedEdits int64
	// writer names the run in what it writes. Wrote is the writer of the store's content, if that is
	// known.
	writer, wrote string
	left          left
}

// left is how the last run has left things, so that the next one notices what others have done since.
type left struct {
	// changes is the number of changes of the known versions by then.
	changes int64
	// unsaved tells that the store lacks some of them.
	unsaved bool
}

// Redelivery is the redelivery of an informer, as a text.
type Redelivery interface {
	// Text returns how far it has come, empty if there is none.
	Text() string
	// Restore is called with the text of the checkpoint, empty if that has none, which counts from
	// then on. Here tells that the checkpoint is of all that is followed, and of no more.
	Restore(text string, here bool)
}

// SaveSoon has everything saved soon.
func (k *Keeper) SaveSoon() {
	k.pending.changes.Add(1)
	k.pending.noteList()
}

// New returns a Keeper of these versions, which has not begun.
func New(o Options, versions *known.Versions) *Keeper {
	k := &Keeper{lockedStore: newLockedStore(o, defaultInterval, defaultChanges), Versions: versions}
	if store, ok := o.Store.(journal.Store); ok {
		k.journal = journal.New(store, k.journalFailed)
	}
	return k
}

// Journal returns the journal of the store, nil if it takes none.
func (k *Keeper) Journal() *journal.Journal { return k.journal }

// Begin locks the store and returns the resource version from which a run can go on, or nothing.
// Acknowledged is that of the run before, if there was one.
//
// Of the known versions, it leaves those of the shard.
//
// It waits until the store is free, the server has said which cluster it is of, the store can be
// read and has no checkpoint of another informer, or ctx ends. A run that does not know what is in
// the store could not find the deletions that it has missed, and a save would forget them for good.
func (k *Keeper) Begin(ctx context.Context, acknowledged string) (resume string) {
	resume = k.open(ctx, acknowledged)
	if k.hold.phase == owns && k.journal != nil && k.journal.Full() {
		// Before the handler is called, so that what it is shown can be written down.
		k.failure = k.saveAll(ctx, func() point { return point{resume, k.Cluster.UID(), k.address(), k.Redelivery.Text()} })
		if k.failure != nil && ctx.Err() == nil {
			k.Report.Fail(k.failure)
		}
	}
	return resume
}

// End saves what is not saved and unlocks the store. Ctx has ended.
func (k *Keeper) End(ctx context.Context, queue *deltaqueue.Queue) {
	defer k.release()
	of, unsaved := k.saver(queue), false
	if of.changes() > 0 || of.moved(true) || len(k.Versions.UnsettledUnknown()) > 0 || k.hasBegun() {
		unsaved = k.saveLast(ctx, of) != nil
	}
	if k.hold.phase == owns {
		k.left = left{k.Versions.Changes(), unsaved}
	}
}

// Run saves what is worth it until ctx ends. A save that failed is tried again after growing
// pauses.
func (k *Keeper) Run(ctx context.Context, queue *deltaqueue.Queue) { k.keepSaving(ctx, k.saver(queue)) }

func (k *Keeper) saver(queue *deltaqueue.Queue) saver {
	return saver{
		// Changes by others count too: a run that lists nothing must save versions that were there before.
		changes: func() int64 { return k.pending.changes.Load() + k.Versions.Edits() - k.savedEdits },
		moved: func(ended bool) bool {
			return k.covered(SafePoint(queue, ended)) != k.saved.resume || k.Redelivery.Text() != k.saved.redelivery || k.hasMoved()
		},
		save: func(ctx context.Context, ended bool) error { return k.save(ctx, queue, ended) },
	}
}

// Release unlocks the store, for a run that did not start.
func (k *Keeper) Release() { k.release() }

// claimEmpty takes a store that has nothing yet, so that a run which never reached its server
// can save what its versions were filled with. A store that has something stays as it is.
func (k *Keeper) claimEmpty(ctx context.Context) error {
	if k.hold.phase != locked || k.hold.loaded {
		return nil
	}
	from, err := k.Store.Load(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		k.hold.loaded, k.hold.phase = true, owns
		return nil
	case err != nil:
		return failure.OfStore("CheckpointStore.Load", "", err)
	}
	k.close(from)
	return nil
}
