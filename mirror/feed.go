package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rvinformer/informer"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// settleTick is how often a feed in its first sync is asked whether it still gets on.
const settleTick = 250 * time.Millisecond

// feed brings one resource of one cluster into the database: an informer whose batches are
// transactions.
type feed struct {
	place    place
	informer informer.ResourceVersionInformer
	writer   *writer
	patience *patience
	tally    tally
	started  time.Time
	seeded   int           // objects that the database had at the start
	listed   atomic.Bool   // a first list has told something
	synced   chan struct{} // closed when the database has all that the first sync brought, and no row of another version
	settled  chan struct{} // closed when the first sync has an outcome: synced, given up, or stopped

	mu      sync.Mutex
	took    time.Duration // the first sync, until it was complete or given up
	resumed bool          // there was no first list
	gaveUp  error         // why the feed was ended before it was synced
	problem error         // the first object that could not be taken in
}

// feedConfig is what all feeds of a run have in common.
type feedConfig struct {
	writer  *writer
	timeout time.Duration // without progress, before a feed gives up its first sync; 0 = never
	prune   []string
	// Objects in a page of a list; 0 = the informer's default. All first lists run side by side,
	// and each of them may hold a page, so this is what the memory of a start depends on.
	pageSize  int64
	raw       bool             // the database takes objects as they are on the wire
	beginAnew bool             // a checkpoint of another cluster is replaced, and the rows are
	workers   int              // batches of one feed at a time; 0 = 1
	budget    *informer.Budget // of the objects on their way to the database
}

func (c feedConfig) exampleObject() runtime.Object {
	if c.raw {
		return &informer.RawObject{}
	}
	return &unstructured.Unstructured{}
}

// newFeed prepares a feed. storage holds what the database knows already, and from says where to go
// on.
func newFeed(at place, source cache.ListerWatcher, storage *informer.ResourceVersionStorage, from informer.CheckpointStore, config feedConfig) *feed {
	now := time.Now()
	f := &feed{
		place:    at,
		writer:   config.writer,
		patience: newPatience(config.timeout, now),
		started:  now,
		seeded:   storage.Len(),
		synced:   make(chan struct{}),
		settled:  make(chan struct{}),
	}
	f.informer = informer.NewResourceVersionInformer(at.String(), f.config(source, storage, from, config))
	return f
}

// config is the configuration of the feed's informer.
func (f *feed) config(source cache.ListerWatcher, storage *informer.ResourceVersionStorage, from informer.CheckpointStore, config feedConfig) informer.InformerConfig {
	return informer.InformerConfig{
		ListerWatcher: source,
		Shard:         f.place.shard,
		Storage:       storage,
		Checkpoint:    from,
		BeginAnew:     config.beginAnew,
		ExampleObject: config.exampleObject(),
		Prune:         config.prune,
		Budget:        config.budget,
		Workers:       config.workers,

		WatchListPageSize: config.pageSize,
		ErrorHandler:      func(_ *informer.Reflector, err error) { f.failed(err) },
		BatchHandler:      f,
	}
}

// Run follows the resource until the context ends, or until the feed has given up its first sync.
func (f *feed) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	var settling sync.WaitGroup
	settling.Go(func() {
		defer close(f.settled)
		if err := f.settle(ctx); err != nil && ctx.Err() == nil {
			f.mu.Lock()
			f.gaveUp, f.took = err, time.Since(f.started)
			f.mu.Unlock()
			cancel()
		}
	})
	f.informer.RunWithContext(ctx)
	cancel()
	settling.Wait()
}

// settle waits for the first sync. The error says why there is no sense in waiting longer.
func (f *feed) settle(ctx context.Context) error {
	if err := f.await(ctx, f.informer.HasSyncedChecker().Done()); err != nil {
		return err
	}
	resumed := f.seeded > 0 && !f.listed.Load() // a list tells something of each object
	// Synced means acknowledged, and so committed. The rows of another version stay until now, so
	// that the mirror is never empty in between.
	within, cancel := f.patience.Context(ctx)
	defer cancel()
	if err := f.writer.Insist(within, change{kind: dropOldVersions, place: f.place}); err != nil {
		return err
	}
	f.mu.Lock()
	f.took = time.Since(f.started)
	f.resumed = resumed
	f.mu.Unlock()
	close(f.synced)
	return nil
}

// await waits for the channel, as long as the feed gets on.
func (f *feed) await(ctx context.Context, done <-chan struct{}) error {
	tick := time.NewTicker(settleTick)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return nil
		case now := <-tick.C:
			if err := f.patience.Spent(now, f.tally.Counts().handled); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// failed is told what goes wrong, and nil when a watch has started.
func (f *feed) failed(err error) {
	if unwritten := (*unwrittenError)(nil); errors.As(err, &unwritten) {
		err = unwritten // whatever was to be written
	}
	f.patience.Failed(err)
}

// OnBatch writes a batch in one transaction. When that is committed, the informer acknowledges the
// batch: its Storage never has anything that the database does not have. When it fails, the
// informer tries it again.
func (f *feed) OnBatch(ctx context.Context, events []informer.Event) error {
	changes := make([]change, 0, len(events))
	for _, e := range events {
		if e.IsInInitialList {
			f.listed.Store(true)
		}
		if e.Type == informer.Synced {
			continue
		}
		c, err := f.changeFor(e)
		if err != nil {
			f.trouble(fmt.Errorf("%s is passed over: %w", e.Key, err))
			continue
		}
		changes = append(changes, c)
	}
	if len(changes) > 0 {
		if err := f.writer.Write(ctx, changes...); err != nil {
			return err
		}
	}
	f.tally.Add(events)
	return nil
}

// changeFor is what an event means for the table. Its error is for good: trying again would not
// help.
func (f *feed) changeFor(e informer.Event) (change, error) {
	name, err := cache.ParseObjectName(e.Key)
	if err != nil {
		return change{}, err
	}
	c := change{kind: removeRow, place: f.place, namespace: name.Namespace, name: name.Name}
	if e.Type == informer.Deleted {
		return c, nil
	}
	c.kind, c.resourceVersion = putRow, e.ResourceVersion
	switch object := e.Object.(type) {
	case *informer.RawObject:
		if object.ContentType() != runtime.ContentTypeJSON {
			return change{}, fmt.Errorf("it came as %s, not as JSON", object.ContentType())
		}
		c.uid, c.object = string(object.GetUID()), string(object.Bytes())
	case *unstructured.Unstructured:
		c.uid = string(object.GetUID())
		c.object, err = encode(object)
	default:
		err = fmt.Errorf("it came as %T", e.Object)
	}
	return c, err
}

// trouble keeps the first object that could not be taken in.
func (f *feed) trouble(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.problem == nil {
		f.problem = err
	}
}

// Row is the feed as display and summary show it.
func (f *feed) Row() row {
	status := f.informer.Status()
	f.mu.Lock()
	defer f.mu.Unlock()

	r := row{
		place:     f.place,
		phase:     status.Phase.String(),
		condition: status.Condition.Reason,
		rows:      status.Objects,
		queued:    status.QueuedBytes,
		counts:    f.tally.Counts(),
		took:      time.Since(f.started),
		failed:    f.gaveUp != nil,
	}
	select {
	case <-f.synced:
		r.synced = true
		r.resumed = f.resumed
	default:
	}
	if r.settled() {
		r.took = f.took
	}
	if err := errors.Join(f.gaveUp, f.problem); err != nil {
		r.problem = reason(err)
	} else if isOwn(status.LastError) {
		r.problem, r.retry = reason(status.LastError), "tried again within a minute"
	}
	return r
}

// isOwn tells a problem of the feed from the end of the run, which is none, and from a database
// that cannot be written: that is a problem of all feeds, and the writer tells it.
func isOwn(err error) bool {
	unwritten := (*unwrittenError)(nil)
	return err != nil && !errors.Is(err, context.Canceled) && !errors.As(err, &unwritten)
}

// encode is the one form of a stored object: JSON with sorted keys, so that equal objects are equal
// texts.
func encode(object *unstructured.Unstructured) (string, error) {
	text, err := object.MarshalJSON()
	if err != nil {
		return "", err
	}
	return string(bytes.TrimSpace(text)), nil
}
