package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rvinformer/informer/internal/deltaqueue"
	"github.com/rvinformer/informer/internal/listwatch"
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
	// mostAnswers is how often a server may answer with an error when it is asked which
	// cluster it is of, which takes some minutes, before a run begins without.
	mostAnswers = 10
	// lastSaveLimit is how long the save at the end of a run may take.
	lastSaveLimit = 30 * time.Second
)

// metadataResourceVersion names the resource version in the metadata of a
// checkpoint.
const metadataResourceVersion = "resourceVersion"

// checkpointer loads the checkpoint of a flow when a run begins, and saves it.
type checkpointer struct {
	store     CheckpointStore
	interval  time.Duration
	changes   int64
	reflector *Reflector
	storage   *ResourceVersionStorage

	// source is what the checkpoint is of.
	source checkpointSource
	// unlock gives the lock of the store back, nil while there is none.
	unlock func() error
	// refused tells that what is in the store is not this informer's to replace.
	refused bool
	// loaded tells that a run has looked at what is in the store.
	loaded bool

	// coverage is the number of gaps when the newest generation began, if that was
	// complete, and else uncovered.
	coverage atomic.Int64
	// listing tells that a generation is under way.
	listing atomic.Bool

	// unsaved counts the changes of the storage since the last save.
	unsaved atomic.Int64
	// completed tells that a generation was acknowledged since the last save.
	completed atomic.Bool
	// due wakes who saves.
	due chan struct{}
	// saved is the resource version of the last checkpoint, and savedAt when that was.
	saved   string
	savedAt time.Time
	// failure is that of the last save, nil if it did not fail.
	failure error
}

// uncovered is the coverage without a complete generation.
const uncovered = -1

func newCheckpointer(config InformerConfig, r *Reflector, storage *ResourceVersionStorage) *checkpointer {
	c := &checkpointer{
		store:     config.Checkpoint,
		interval:  config.CheckpointInterval,
		changes:   int64(config.CheckpointChanges),
		reflector: r,
		storage:   storage,
		due:       make(chan struct{}, 1),
	}
	if c.interval == 0 {
		c.interval = defaultCheckpointInterval
	}
	if c.changes == 0 {
		c.changes = defaultCheckpointChanges
	}
	c.coverage.Store(uncovered)
	return c
}

// begin locks the store and returns the resource version from which a run can go
// on, or nothing. Acknowledged is that of the run before, if there was one. It waits
// until the server has said who it is, or ctx ends.
func (c *checkpointer) begin(ctx context.Context, acknowledged string) (resume string) {
	locked := c.lock()
	if locked != nil {
		c.reflector.fail(locked)
	}
	before := c.source
	if !c.identify(ctx) {
		return ""
	}
	switch {
	case c.loaded: // what is known is newer
		resume = c.goOn(before, acknowledged)
	case locked == nil: // or what is in the store is of whoever uses it
		var err error
		resume, err = c.load(ctx)
		if err != nil && ctx.Err() != nil { // the next run loads
			return ""
		}
		if err != nil {
			c.refused = errors.Is(err, ErrCheckpointSource) || errors.Is(err, ErrCheckpointFormat)
			c.reflector.fail(err)
		}
	}
	c.loaded = true
	return resume
}

// goOn is the resource version from which a later run of the informer can go on.
func (c *checkpointer) goOn(before checkpointSource, acknowledged string) (resume string) {
	if err := c.source.check(before); err != nil { // there is another cluster at the same address
		c.coverage.Store(uncovered)
		c.reflector.fail(err)
	}
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
		return storeError("CheckpointStore.Lock", "", err)
	}
	c.unlock = unlock
	return nil
}

// identify asks the source what it is until it knows, or ctx ends. A server that
// answers with errors is asked some times only.
func (c *checkpointer) identify(ctx context.Context) (known bool) {
	waits := newBackoff(c.reflector.Backoff)
	for failures := 1; ; failures++ {
		source, err := sourceOf(ctx, c.reflector.source)
		if ctx.Err() != nil {
			return false
		}
		var answer apierrors.APIStatus
		if err == nil || errors.As(err, &answer) && failures >= mostAnswers {
			if source.Cluster == "" { // not readable now
				source.Cluster = c.source.Cluster
			}
			c.source = source
			return true
		}
		c.reflector.fail(fmt.Errorf("what the checkpoint is of: %w", err))
		c.reflector.enter(PhaseBackoff)
		if sleep(ctx, waits.delay(listwatch.RetryAfter(err))) != nil {
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
		return "", storeError("CheckpointStore.Load", "", err)
	}
	defer func() { err = errors.Join(err, storeError("CheckpointStore.Load", "", from.Close())) }()

	if c.storage.Len() > 0 {
		metadata, includes, err := c.storage.includes(from)
		if err != nil {
			return "", err
		}
		if err := c.accept(metadata); err != nil || !includes {
			return "", err
		}
		return c.loadedVersion(metadata), nil
	}
	table, metadata, err := c.storage.readTable(from)
	if err != nil {
		return "", err
	}
	if err := c.accept(metadata); err != nil {
		return "", err
	}
	c.storage.adopt(table)
	return c.loadedVersion(metadata), nil
}

// accept checks that a checkpoint is of this source.
func (c *checkpointer) accept(metadata map[string]string) error {
	source := checkpointSourceFrom(metadata)
	if err := c.source.check(source); err != nil {
		return err
	}
	if c.source.Cluster == "" {
		c.source.Cluster = source.Cluster
	}
	return nil
}

func (c *checkpointer) loadedVersion(metadata map[string]string) (resume string) {
	resume = metadata[metadataResourceVersion]
	if resume == "0" { // of which a server takes any for the same
		resume = ""
	}
	c.saved, c.savedAt = resume, time.Now()
	if resume != "" {
		c.coverage.Store(c.gaps())
	}
	return resume
}

// gaps counts what only a list can repair: objects that could not be read, and
// changes of the storage that others have made.
func (c *checkpointer) gaps() int64 {
	return c.reflector.snapshot().Skipped + c.storage.editCount()
}

// covered is resourceVersion, if there is no gap up to it: if everything that it
// stands for was shown to the handler.
func (c *checkpointer) covered(resourceVersion string) string {
	if c.coverage.Load() != c.gaps() {
		return ""
	}
	return resourceVersion
}

// run saves what is worth it until ctx ends.
func (c *checkpointer) run(ctx context.Context, queue *deltaqueue.Queue) {
	tick := time.NewTicker(c.interval)
	defer tick.Stop()
	for {
		ticked := false
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
		began := time.Now()
		pause := c.interval
		if err := c.save(ctx, queue); err == nil {
			pause = (checkpointShare - 1) * time.Since(began)
			c.reflector.forget(c.failure)
			c.failure = nil
		} else if ctx.Err() == nil {
			c.reflector.fail(err)
			c.failure = err
		}
		if sleep(ctx, pause) != nil {
			return
		}
	}
}

// worthwhile tells whether to save now.
func (c *checkpointer) worthwhile(queue *deltaqueue.Queue, ticked bool) bool {
	unsaved := c.unsaved.Load()
	switch {
	case c.completed.Load():
		news := unsaved > 0 || c.moved(queue)
		c.completed.Store(news)
		return news
	case c.listing.Load(): // it will soon be completed
		return false
	case unsaved >= c.changes, ticked && unsaved > 0:
		return true
	default:
		return ticked && time.Since(c.savedAt) >= checkpointLonger*c.interval && c.moved(queue)
	}
}

// moved tells whether the run could go on from another version than the saved one.
func (c *checkpointer) moved(queue *deltaqueue.Queue) bool {
	return c.covered(queue.ResumePoint()) != c.saved
}

// end saves what is not saved and unlocks the store. Ctx has ended.
func (c *checkpointer) end(ctx context.Context, queue *deltaqueue.Queue) {
	// Who has not come to look at what is in the store has nothing to put in its place.
	if c.loaded && (c.unsaved.Load() > 0 || c.moved(queue) || len(c.storage.unsettledKeys()) > 0) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSaveLimit)
		defer cancel()
		if err := c.save(ctx, queue); err != nil {
			c.reflector.fail(err)
		}
	}
	if c.unlock != nil {
		if err := c.unlock(); err != nil {
			c.reflector.fail(storeError("CheckpointStore.Unlock", "", err))
		}
		c.unlock = nil
	}
}

// save saves what is acknowledged.
func (c *checkpointer) save(ctx context.Context, queue *deltaqueue.Queue) error {
	if c.refused {
		return nil
	}
	if err := c.lock(); err != nil {
		return err
	}
	completed, unsaved := c.completed.Swap(false), c.unsaved.Swap(0)
	// Before the first entry is read: no entry is older than it was at this version.
	// And before the gaps are counted: a gap after it does not matter.
	resume := queue.ResumePoint()
	resume = c.covered(resume)
	metadata := c.source.metadata()
	if resume != "" {
		metadata[metadataResourceVersion] = resume
	}
	err := c.store.Save(ctx, func(w io.Writer) error { return c.storage.writeCheckpoint(w, metadata) })
	if err != nil {
		c.unsaved.Add(unsaved)
		if completed {
			c.completed.Store(true)
		}
		return storeError("CheckpointStore.Save", "", err)
	}
	c.saved, c.savedAt = resume, time.Now()
	c.reflector.checkpointed(c.savedAt)
	return nil
}

// changed notes a change of the storage.
func (c *checkpointer) changed() {
	if c.unsaved.Add(1) == c.changes {
		c.wake()
	}
}

func (c *checkpointer) wake() {
	select {
	case c.due <- struct{}{}:
	default:
	}
}

// sink is into, with an eye on what it covers.
func (c *checkpointer) sink(into queueSink) sink { return checkpointSink{into, c} }

type checkpointSink struct {
	queueSink
	checkpointer *checkpointer
}

func (s checkpointSink) begin(ctx context.Context) (generation, error) {
	gaps := s.checkpointer.gaps()
	s.checkpointer.coverage.Store(uncovered)
	s.checkpointer.listing.Store(true)
	g, err := s.queueSink.begin(ctx)
	if err != nil {
		return nil, err
	}
	return checkpointGeneration{g, s, gaps}, nil
}

// checkpointGeneration is a generation that is saved when it is acknowledged.
type checkpointGeneration struct {
	generation
	into checkpointSink
	// gaps is how many there were before it began.
	gaps int64
}

func (g checkpointGeneration) end(ctx context.Context, resourceVersion string, complete bool) error {
	err := g.generation.end(ctx, resourceVersion, complete)
	if err != nil {
		return err
	}
	c := g.into.checkpointer
	if complete {
		c.coverage.Store(g.gaps)
	}
	c.listing.Store(false)
	g.into.queue.WhenSettled(func() {
		c.completed.Store(true)
		c.wake()
	})
	return nil
}

// sleep waits, and returns the error of ctx if that ends first.
func sleep(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
