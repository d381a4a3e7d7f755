package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/rvinformer/informer/internal/backoff"
	"github.com/rvinformer/informer/internal/checkpoint"
	"github.com/rvinformer/informer/internal/deltaqueue"
	"github.com/rvinformer/informer/internal/journal"
	"github.com/rvinformer/informer/internal/keytable"
	"github.com/rvinformer/informer/internal/known"
	"github.com/rvinformer/informer/internal/listwatch"
	"github.com/rvinformer/informer/internal/object"
	"github.com/rvinformer/informer/internal/report"
	"github.com/rvinformer/informer/internal/rv"
	"github.com/rvinformer/informer/internal/server"
)

const (
	// defaultCheckpointInterval and defaultCheckpointChanges are those of
	// InformerConfig.
	defaultCheckpointInterval = time.Minute
	defaultCheckpointChanges  = 10_000
	// checkpointLonger is how many intervals a checkpoint stays as it is of which only
	// the resource version has moved on.
	checkpointLonger = 10
	// checkpointShare is which part of the time is spent on saving at most.
	checkpointShare = 20
	// lockPoll is how often a store is tried that another process has locked: the process that
	// follows in a rolling update begins soon after the old one has ended.
	lockPoll = 2 * time.Second
	// mostAnswers is how often a server may answer with an error when it is asked which
	// cluster it is of, which takes some minutes, before a run begins without.
	mostAnswers = 10
	// lastSaveLimit is how long the save at the end of a run may take.
	lastSaveLimit = 30 * time.Second
)

// checkpointer loads the checkpoint of a flow when a run begins, and saves it.
type checkpointer struct {
	store    CheckpointStore
	interval time.Duration
	// manyChanges are saved before the interval is over.
	manyChanges int64
	reflector   *Reflector
	storage     *known.Versions
	// journal is that of the store, nil if it takes none.
	journal *journal.Journal

	// source is what the checkpoint is of, once that is identified.
	source     checkpoint.Source
	identified bool
	// unanswered tells that the source answers other questions than what it is.
	unanswered bool
	// unlock gives the lock of the store back, nil while there is none.
	unlock func() error
	phase  storePhase
	// loaded tells that what the store had was read, in this run or in one before.
	loaded bool

	// coverage is the number of gaps when the newest generation began, if that was
	// complete, and else uncovered.
	coverage atomic.Int64

	// unsaved counts the informer's changes of the storage since the last save.
	unsaved atomic.Int64
	// savedEdits is the number of changes by others that the last save had.
	savedEdits int64
	// savedCluster is the cluster that the last checkpoint names.
	savedCluster string
	// listed tells that a generation has begun, or was acknowledged, since the last save.
	listed atomic.Bool
	// due wakes who saves.
	due chan struct{}
	// saved is the resource version of the last checkpoint, and savedAt when that was.
	saved   string
	savedAt time.Time
	// failure is that of the last save, nil if it did not fail.
	failure error
}

// storePhase is how far a run has come with its store.
type storePhase int

const (
	// awayFromStore: no run is under way, or another informer has locked the store.
	awayFromStore storePhase = iota
	// refusedStore: the store has something that is not this informer's to replace. It stays so.
	refusedStore
	// holdsStore: the store is locked, and what it has was not read.
	holdsStore
	// ownsStore: what the store had is known, and may be replaced.
	ownsStore
)

// uncovered is the coverage without a complete generation.
const uncovered = -1

func newCheckpointer(config InformerConfig, r *Reflector, storage *known.Versions) *checkpointer {
	c := &checkpointer{
		store:       config.Checkpoint,
		interval:    config.CheckpointInterval,
		manyChanges: int64(config.CheckpointChanges),
		reflector:   r,
		storage:     storage,
		due:         make(chan struct{}, 1),
	}
	if c.interval == 0 {
		c.interval = defaultCheckpointInterval
	}
	if c.manyChanges == 0 {
		c.manyChanges = defaultCheckpointChanges
	}
	c.coverage.Store(uncovered)
	r.report.NameCheckpoint(nameOf(config.Checkpoint))
	if store, ok := c.store.(CheckpointAppender); ok {
		c.journal = journal.New(store, c.journalFailed)
	}
	return c
}

// nameOf is the name of a store in Status.
func nameOf(store CheckpointStore) string {
	if named, ok := store.(fmt.Stringer); ok {
		return named.String()
	}
	return fmt.Sprintf("%T", store)
}

// unused notes why the checkpoint is not in use, and returns err as it is to be reported.
func (c *checkpointer) unused(err error) error {
	err = &report.UnusedCheckpointError{Checkpoint: nameOf(c.store), NeverSaved: isForeign(err), Err: err}
	c.reflector.report.CheckpointUnused(err)
	return err
}

// begin locks the store and returns the resource version from which a run can go on, or
// nothing. Acknowledged is that of the run before, if there was one. It waits until the store
// is free, the server has said which cluster it is, and the store can be read, or ctx ends: a
// run that does not know what is in the store could not tell the deletions that it has missed,
// and a save would forget them for good.
func (c *checkpointer) begin(ctx context.Context, acknowledged string) (resume string) {
	resume = c.open(ctx, acknowledged)
	if c.phase == ownsStore && c.journal != nil && c.journal.Full() {
		// Before the handler is called, so that what it is told can be written down.
		c.failure = c.saveAll(ctx, func() savePoint { return savePoint{resume, c.reflector.cluster.UID()} })
		if c.failure != nil && ctx.Err() == nil {
			c.reflector.report.Fail(c.failure)
		}
	}
	return resume
}

// open is begin without the save that a journal may need.
func (c *checkpointer) open(ctx context.Context, acknowledged string) (resume string) {
	if c.phase != refusedStore {
		c.phase = awayFromStore
		if c.retryUntil(ctx, c.lock, anyFailure, lockPoll) != nil {
			return ""
		}
		c.phase = holdsStore
	}
	before := c.source
	before.Cluster = c.reflector.cluster.UID()
	if !c.identify(ctx) {
		return ""
	}
	if c.loaded { // what is known is newer
		if c.phase == holdsStore {
			c.phase = ownsStore
		}
		if c.journal != nil {
			c.journal.Stop() // another process may have used the store meanwhile
		}
		return c.goOn(before, acknowledged)
	}
	err := c.retryUntil(ctx, func() (err error) {
		resume, err = c.load(ctx)
		return err
	}, ofStore, backoff.Longest)
	if err != nil && ctx.Err() != nil { // the next run loads
		return ""
	}
	c.loaded, c.phase = true, ownsStore
	c.refuse(err)
	c.reflector.cluster.Learn(c.source.Cluster)
	return resume
}

// refuse leaves the store alone if what is in it is not this informer's to replace.
func (c *checkpointer) refuse(err error) {
	if isForeign(err) {
		c.phase = refusedStore
		c.release()
	}
}

// isForeign reports whether err is of a checkpoint that is not this informer's to replace.
func isForeign(err error) bool {
	for _, reason := range []error{ErrCheckpointSource, ErrCheckpointFormat, ErrCheckpointVersion} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// retryUntil calls do, at least every poll, until it succeeds, fails for a reason that does not
// pass, or ctx ends. It reports failures after growing pauses.
func (c *checkpointer) retryUntil(ctx context.Context, do func() error, passes func(error) bool, poll time.Duration) error {
	waits := backoff.OrDefault(c.reflector.Backoff)
	var reported error
	failed := false
	for next := time.Now(); ; {
		err := do()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			if failed {
				c.reflector.report.Forget(reported)
				c.reflector.report.CheckpointUnused(nil)
			}
			return nil
		case !passes(err):
			c.reflector.report.Fail(c.unused(err))
			return err
		}
		err, failed = c.unused(err), true
		if now := time.Now(); !now.Before(next) {
			c.reflector.report.Fail(err)
			c.reflector.report.Enter(PhaseBackoff)
			reported, next = err, now.Add(waits.Step())
		}
		if err := backoff.Sleep(ctx, min(time.Until(next), poll)); err != nil {
			return err
		}
	}
}

func anyFailure(error) bool { return true }

// ofStore tells what is wrong with a store from what is wrong with the checkpoint in it.
func ofStore(err error) bool {
	for _, reason := range []error{ErrCheckpointSource, ErrCheckpointFormat, ErrCheckpointVersion, ErrCheckpointDamaged, io.ErrUnexpectedEOF} {
		if errors.Is(err, reason) {
			return false
		}
	}
	return true
}

// goOn is the resource version from which a later run of the informer can go on.
func (c *checkpointer) goOn(before checkpoint.Source, acknowledged string) (resume string) {
	if err := c.source.Check(before); err != nil { // there is another cluster at the same address
		c.reflector.cluster.Replace(c.source.Cluster, &c.reflector.report.Gaps)
		c.reflector.report.Fail(err)
	}
	c.reflector.cluster.Learn(c.source.Cluster)
	return c.covered(acknowledged)
}

// lock locks the store, if it can be locked and is not.
func (c *checkpointer) lock() error {
	locker, ok := c.store.(CheckpointLocker)
	if !ok || c.unlock != nil {
		return nil
	}
	unlock, err := locker.Lock()
	if err != nil {
		return report.OfStore("CheckpointStore.Lock", "", err)
	}
	c.unlock = unlock
	return nil
}

// identify asks the source what it is until it knows, or ctx ends. A server that answers
// with errors is asked some times only, and one that answers nothing but lists, once.
func (c *checkpointer) identify(ctx context.Context) (known bool) {
	waits := backoff.OrDefault(c.reflector.Backoff)
	for answers := 0; ; {
		source, err := c.reflector.identifier.Identify(ctx)
		if !c.identified {
			c.source = source
		}
		if ctx.Err() != nil {
			return false
		}
		var answer apierrors.APIStatus
		if errors.As(err, &answer) {
			answers++
		}
		if err == nil || answers >= mostAnswers || answer == nil && c.reflector.identifier.Responds(ctx) {
			c.source, c.identified, c.unanswered = source, true, err != nil
			return true
		}
		c.reflector.report.Fail(fmt.Errorf("what the checkpoint is of: %w", err))
		c.reflector.report.Enter(PhaseBackoff)
		if backoff.Sleep(ctx, max(waits.Step(), listwatch.RetryAfter(err))) != nil {
			return false
		}
	}
}

// load reads what is in the store: into the storage, if that is empty, and else it
// only looks whether the storage has all of it. It returns the resource version to
// go on from.
func (c *checkpointer) load(ctx context.Context) (resume string, err error) {
	from, err := c.store.Load(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", report.OfStore("CheckpointStore.Load", "", err)
	}
	defer c.close(from)
	gaps := c.gaps()
	state, err := c.storage.ReadSaved(from)
	if err != nil {
		return "", err
	}
	metadata := state.Metadata
	if errors.Is(state.Torn, ErrCheckpointDamaged) {
		c.reflector.report.Fail(state.Torn)
	}
	if c.storage.Len() > 0 {
		if err := c.accept(metadata); err != nil || !c.storage.Includes(state) {
			return "", err
		}
		if err := c.vouch(ctx, metadata, c.storage.Sample(func(string) bool { return false }), false); err != nil {
			return "", err
		}
		return c.loadedVersion(metadata, gaps), nil
	}
	if err := c.accept(metadata); err != nil {
		return "", err
	}
	if err := c.vouch(ctx, metadata, state.Sample(), state.Len() == 0); err != nil {
		return "", err
	}
	c.storage.Adopt(state)
	c.savedEdits = c.storage.Edits()
	c.savedCluster = checkpoint.SourceFrom(metadata).Cluster
	if c.journal != nil && state.Appendable {
		c.journal.Continue(state.Begun(), state.Journal, state.Base)
	}
	return c.loadedVersion(metadata, c.gaps()), nil
}

// vouch checks by its objects that a checkpoint is of the cluster of the server, where that
// does not say which it is of. What it does not tell now, it is asked again when a watch is
// open.
func (c *checkpointer) vouch(ctx context.Context, metadata map[string]string, objects []object.Known, empty bool) error {
	resume, saved := metadata[checkpoint.MetadataResourceVersion], checkpoint.SourceFrom(metadata).Cluster
	if resume == "" || resume == "0" || saved != "" && saved == c.source.Cluster {
		return nil
	}
	a, _ := c.reflector.identifier.Ask(ctx, server.Inquiry{
		ResourceVersion: resume,
		Objects:         func() []object.Known { return objects },
		ResourceOnly:    saved != "" || c.unanswered,
		Empty:           empty,
	})
	if a.Identity != server.Another {
		return nil
	}
	return &CheckpointSourceError{Differences: []CheckpointSourceDifference{{Field: "cluster", Saved: a.Expected, Wanted: a.Found}}}
}

// close reports what a store fails with when all was read.
func (c *checkpointer) close(from io.Closer) {
	if err := from.Close(); err != nil {
		c.reflector.report.Fail(report.OfStore("CheckpointStore.Load", "", err))
	}
}

// accept checks that a checkpoint is of this source.
func (c *checkpointer) accept(metadata map[string]string) error {
	source := checkpoint.SourceFrom(metadata)
	if err := c.source.Check(source); err != nil {
		return err
	}
	c.reflector.cluster.Learn(source.Cluster)
	return nil
}

func (c *checkpointer) loadedVersion(metadata map[string]string, gaps int64) (resume string) {
	resume = metadata[checkpoint.MetadataResourceVersion]
	if resume == "0" { // of which a server takes any for the same
		resume = ""
	}
	c.saved, c.savedAt = resume, time.Now()
	if resume != "" {
		c.coverage.Store(gaps)
	}
	return resume
}

// gaps counts what only a list can repair: those of the report, and changes of the storage that
// others have made. An object that the handler cannot be shown counts when that is found, and
// again when the queue gives it up: a generation that begins in between may show it without
// reading it again.
func (c *checkpointer) gaps() int64 {
	return c.reflector.report.Gaps.Count() + c.storage.Edits()
}

// covered is resourceVersion, if there is no gap up to it: if everything that it
// stands for was shown to the handler.
func (c *checkpointer) covered(resourceVersion string) string {
	if c.coverage.Load() != c.gaps() {
		return ""
	}
	return resourceVersion
}

// run saves what is worth it until ctx ends. A save that failed is tried again after
// growing pauses.
func (c *checkpointer) run(ctx context.Context, queue *deltaqueue.Queue) {
	tick := time.NewTicker(c.interval)
	defer tick.Stop()
	waits := c.retries()
	for {
		ticked := false
		if c.failure == nil {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				ticked = true
			case <-c.due:
			}
			if !c.worthwhile(queue, ticked) {
				continue
			}
		}
		began := time.Now()
		err := c.save(ctx, queue, false)
		pause := (checkpointShare - 1) * time.Since(began)
		if err == nil {
			c.reflector.report.Forget(c.failure)
			c.failure = nil
			waits = c.retries()
		} else if ctx.Err() == nil {
			err = c.unused(err)
			c.reflector.report.Fail(err)
			c.failure = err
			pause = max(pause, waits.Step())
		}
		if backoff.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// retries are the pauses after saves that failed: an interval in the end, since to write
// all of a large set in vain costs as much as to write it.
func (c *checkpointer) retries() *wait.Backoff {
	return &wait.Backoff{Duration: min(time.Second, c.interval), Factor: 2, Steps: math.MaxInt, Cap: c.interval}
}

// worthwhile tells whether to save now.
func (c *checkpointer) worthwhile(queue *deltaqueue.Queue, ticked bool) bool {
	unsaved := c.changes()
	switch {
	case c.listed.Swap(false):
		news := unsaved > 0 || c.moved(queue, false)
		if news {
			c.listed.Store(true)
		}
		return news
	case unsaved >= c.manyChanges, ticked && unsaved > 0:
		return true
	default:
		return ticked && time.Since(c.savedAt) >= checkpointLonger*c.interval && c.moved(queue, false)
	}
}

// changes is the number of changes of the storage that are not saved. What others have put
// into it counts too: a run that lists nothing must save a storage that was filled before.
func (c *checkpointer) changes() int64 {
	return c.unsaved.Load() + c.storage.Edits() - c.savedEdits
}

// moved tells whether the run could go on from another version than the saved one.
func (c *checkpointer) moved(queue *deltaqueue.Queue, ended bool) bool {
	return c.covered(safePoint(queue, queue.SafeResumePoint(), ended)) != c.saved
}

// safePoint is resume if another run can go on from there. What was acknowledged beyond
// it is shown again, and known by its version to be old. Versions without an order do not
// tell that, so with them nothing may lie beyond: the run has ended, and everything is
// acknowledged.
func safePoint(queue *deltaqueue.Queue, resume string, ended bool) string {
	if rv.Ordered(resume) || ended && queue.Drained() {
		return resume
	}
	return ""
}

// end saves what is not saved and unlocks the store. Ctx has ended.
func (c *checkpointer) end(ctx context.Context, queue *deltaqueue.Queue) {
	defer c.release()
	if c.changes() == 0 && !c.moved(queue, true) && len(c.storage.UnsettledUnknown()) == 0 && !c.begun() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSaveLimit)
	defer cancel()
	if err := c.claimEmpty(ctx); err != nil {
		c.reflector.report.Fail(c.unused(err))
	}
	if err := c.save(ctx, queue, true); err != nil {
		c.reflector.report.Fail(c.unused(err))
	}
}

// claimEmpty takes a store that has nothing yet, so that a run which never reached its server
// can save what its storage was filled with. A store that has something stays as it is.
func (c *checkpointer) claimEmpty(ctx context.Context) error {
	if c.phase != holdsStore || c.loaded {
		return nil
	}
	from, err := c.store.Load(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.loaded, c.phase = true, ownsStore
		return nil
	case err != nil:
		return report.OfStore("CheckpointStore.Load", "", err)
	}
	c.close(from)
	return nil
}

// release gives the lock back.
func (c *checkpointer) release() {
	if c.unlock == nil {
		return
	}
	if err := c.unlock(); err != nil {
		c.reflector.report.Fail(report.OfStore("CheckpointStore.Unlock", "", err))
	}
	c.unlock = nil
}

// save saves what is acknowledged. Ended tells that nothing more will be.
func (c *checkpointer) save(ctx context.Context, queue *deltaqueue.Queue, ended bool) error {
	if c.phase != ownsStore {
		return nil
	}
	// It is read before the first entry: no entry is older than it was at this version.
	// And before the gaps are counted: a gap after it does not matter.
	point := func() savePoint {
		resume := safePoint(queue, queue.SafeResumePoint(), ended)
		cluster := c.reflector.cluster.UID() // read before the gaps: a new one is one
		return savePoint{c.covered(resume), cluster}
	}
	if ended && c.journal != nil {
		c.conclude()
	}
	if c.journal != nil && c.storage.Edits() == c.savedEdits && !c.journal.Full() {
		if err := c.saveNews(ctx, point); !errors.Is(err, journal.ErrUnusable) {
			return err
		}
	}
	return c.saveAll(ctx, point)
}

// savePoint is what a save says beside the storage.
type savePoint struct {
	// resume is the resource version up to which all is acknowledged, empty where none is.
	resume, cluster string
}

// saveNews appends what is new to the journal. The error is journal.ErrUnusable if it cannot.
func (c *checkpointer) saveNews(ctx context.Context, point func() savePoint) error {
	revert := c.takeChanges()
	p, err := point(), journal.ErrUnusable
	if p.cluster == c.savedCluster {
		err = c.journal.Commit(ctx, p.resume)
	}
	if err != nil {
		revert()
		return err
	}
	c.noteSaved(p.resume)
	return nil
}

// saveAll saves the whole storage.
func (c *checkpointer) saveAll(ctx context.Context, point func() savePoint) error {
	revert, edits := c.takeChanges(), c.storage.Edits()
	var p savePoint
	var size int64
	var restarted journal.Restart
	err := c.store.Save(ctx, func(w io.Writer) (err error) {
		p = point()
		source := c.source
		source.Cluster = p.cluster
		metadata := source.Metadata()
		if p.resume != "" {
			metadata[checkpoint.MetadataResourceVersion] = p.resume
		}
		cw, begun := checkpoint.NewWriter(w), c.storage.UnsettledUnknown()
		if c.journal != nil {
			cw, begun = checkpoint.NewJournaledWriter(w), nil // the journal has them
			if restarted, err = c.journal.Restart(ctx, c.storage.Unsettled()); err != nil {
				return err
			}
		}
		err = c.storage.WriteCheckpoint(cw, metadata, begun)
		size = cw.Written()
		if err == nil && len(restarted.Tail) > 0 {
			_, err = w.Write(restarted.Tail)
		}
		return err
	})
	if c.journal != nil {
		c.journal.Saved(ctx, restarted, size, err)
	}
	if err != nil {
		revert()
		return report.OfStore("CheckpointStore.Save", "", err)
	}
	c.savedEdits, c.savedCluster = edits, p.cluster
	c.noteSaved(p.resume)
	return nil
}

// takeChanges takes the changes that a save is about to have, and returns what gives them back.
func (c *checkpointer) takeChanges() (revert func()) {
	listed, unsaved := c.listed.Swap(false), c.unsaved.Swap(0)
	return func() {
		c.unsaved.Add(unsaved)
		if listed {
			c.listed.Store(true)
		}
	}
}

func (c *checkpointer) noteSaved(resume string) {
	c.saved, c.savedAt = resume, time.Now()
	c.reflector.report.Checkpointed(c.savedAt)
}

// begun reports whether there are keys that the handler may have begun to take in.
func (c *checkpointer) begun() bool {
	return c.journal != nil && len(c.journal.Begun()) > 0
}

// conclude withdraws the keys for which no handler was called, at the end of a run: what was
// written down ahead and is not delivered any more.
func (c *checkpointer) conclude() {
	for _, key := range c.journal.Begun() {
		version, exists, unsettled := c.storage.Delivered(key)
		switch {
		case unsettled:
		case exists:
			c.journal.Acknowledge(key, version, keytable.Comparison{})
		default:
			c.journal.Forget(key)
		}
	}
}

// journalFailed reports why the journal cannot be used, and has all saved soon.
func (c *checkpointer) journalFailed(err error) {
	c.reflector.report.Fail(err)
	c.listed.Store(true)
	c.unsaved.Add(1)
	c.wake()
}

// changed notes a change of the storage.
func (c *checkpointer) changed() {
	if c.unsaved.Add(1) == c.manyChanges {
		c.wake()
	}
}

// noteList wakes who saves what a list changes.
func (c *checkpointer) noteList() {
	c.listed.Store(true)
	c.wake()
}

func (c *checkpointer) wake() {
	select {
	case c.due <- struct{}{}:
	default:
	}
}

// beginList notes that a checkpoint has no version from now on, which is saved at once: the reason
// for the list may be that a watch from the saved version does not show everything. Once the list
// has ended, and was acknowledged, it is saved.
func (c *checkpointer) beginList(queue *deltaqueue.Queue) (ended func(complete bool)) {
	gaps := c.gaps()
	c.coverage.Store(uncovered)
	c.noteList()
	return func(complete bool) {
		if complete {
			c.coverage.Store(gaps)
		}
		queue.WhenGivenBack(c.noteList)
	}
}
