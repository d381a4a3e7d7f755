package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rvinformer/informer"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// settleTick is how often a feed in its first sync is asked whether it still gets on.
const settleTick = 250 * time.Millisecond

// feed brings one resource of one cluster into the database: an informer whose handler puts changes to the writer.
type feed struct {
	place    place
	informer informer.ResourceVersionInformer
	writer   *writer
	patience *patience
	tally    tally
	started  time.Time
	synced   chan struct{} // closed when all that the first sync brought is committed
	settled  chan struct{} // closed when the first sync has an outcome: synced, given up, or stopped

	mu      sync.Mutex
	took    time.Duration // the first sync, until it was complete or given up
	gaveUp  error         // why the feed was ended before it was synced
	problem error         // the first thing that went wrong in the handler
}

// feedConfig is what all feeds of a run have in common.
type feedConfig struct {
	writer  *writer
	timeout time.Duration // without progress, before a feed gives up its first sync; 0 = never
	prune   []string
	// Objects in a page of a list; 0 = the informer's default. All first lists run side by side, and each of them may hold
	// a page, so this is what the memory of a start depends on.
	pageSize int64
}

// newFeed prepares a feed. storage holds what the database knows already.
func newFeed(ctx context.Context, at place, source cache.ListerWatcher, storage *informer.ResourceVersionStorage, config feedConfig) *feed {
	now := time.Now()
	f := &feed{
		place:    at,
		writer:   config.writer,
		patience: newPatience(config.timeout, now),
		started:  now,
		synced:   make(chan struct{}),
		settled:  make(chan struct{}),
	}
	f.informer = informer.NewResourceVersionInformer(at.String(), informer.InformerConfig{
		ListerWatcher: source,
		Storage:       storage,
		ExampleObject: &unstructured.Unstructured{},
		Prune:         config.prune,

		WatchListPageSize: config.pageSize,
		ErrorHandler:      func(_ *informer.Reflector, err error) { f.patience.Failed(err) },
		Handler: informer.ResourceEventHandlerDetailedFuncs{
			AddFunc:    func(obj interface{}, _ bool) { f.put(ctx, obj, f.countAdded) },
			UpdateFunc: func(_, obj interface{}) { f.put(ctx, obj, f.countUpdated) },
			DeleteFunc: func(obj interface{}) { f.remove(ctx, obj) },
			SyncFunc: func(interface{}) {
				f.tally.unchanged.Add(1)
				f.tally.handled.Add(1)
			},
		},
	})
	return f
}

func (f *feed) countAdded()   { f.tally.added.Add(1) }
func (f *feed) countUpdated() { f.tally.updated.Add(1) }
func (f *feed) countDeleted() { f.tally.deleted.Add(1) }

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
	// The rows of another version stay until now, so that the mirror is never empty in between. This change is behind all
	// that the first sync brought: when it is committed, they are.
	ctx, cancel := f.patience.Context(ctx)
	defer cancel()
	last := change{kind: dropOldVersions, place: f.place, committed: func() {
		f.mu.Lock()
		f.took = time.Since(f.started)
		f.mu.Unlock()
		close(f.synced)
	}}
	if err := f.writer.Put(ctx, last); err != nil {
		return fmt.Errorf("waiting for %s: %w", f.writer.name, err)
	}
	return f.await(ctx, f.synced)
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
			if err := f.patience.Spent(now, f.tally.handled.Load()); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// put writes what the informer shows. It returns before the row is committed: after a crash the file holds an older resource
// version for this object, and the next start sees the difference.
func (f *feed) put(ctx context.Context, obj interface{}, committed func()) {
	defer f.tally.handled.Add(1)

	object, ok := obj.(*unstructured.Unstructured)
	if !ok {
		f.trouble(fmt.Errorf("an object came as %T, not as *unstructured.Unstructured", obj))
		return
	}
	text, err := encode(object)
	if err != nil {
		f.trouble(fmt.Errorf("%s cannot be written as JSON: %w", cache.MetaObjectToName(object), err))
		return
	}
	f.trouble(f.handOver(ctx, change{
		kind:            putRow,
		place:           f.place,
		namespace:       object.GetNamespace(),
		name:            object.GetName(),
		uid:             string(object.GetUID()),
		resourceVersion: object.GetResourceVersion(),
		object:          text,
		committed:       committed,
	}))
}

// remove deletes the row of an object that is gone. Where only a relist has found that out, the informer passes a tombstone
// with the metadata that it knew.
func (f *feed) remove(ctx context.Context, obj interface{}) {
	defer f.tally.handled.Add(1)

	name, err := nameOf(obj)
	if err != nil {
		f.trouble(fmt.Errorf("a deleted object has no name: %w", err))
		return
	}
	f.trouble(f.handOver(ctx, change{
		kind:      removeRow,
		place:     f.place,
		namespace: name.Namespace,
		name:      name.Name,
		committed: f.countDeleted,
	}))
}

// handOver puts a change to the writer. That the context ended first is no error: what is not written now differs at the
// next start.
func (f *feed) handOver(ctx context.Context, c change) error {
	if err := f.writer.Put(ctx, c); err != nil && ctx.Err() == nil {
		return fmt.Errorf("handing a change over to the writer: %w", err)
	}
	return nil
}

// trouble keeps the first thing that went wrong in a handler, which has no other way to report it. nil is ignored.
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
		place:  f.place,
		phase:  status.Phase.String(),
		rows:   status.Objects,
		queued: status.QueuedBytes,
		counts: f.tally.counts(),
		took:   time.Since(f.started),
		failed: f.gaveUp != nil,
	}
	select {
	case <-f.synced:
		r.synced = true
	default:
	}
	if r.settled() {
		r.took = f.took
	}
	if err := errors.Join(f.gaveUp, f.problem); err != nil {
		r.problem = reason(err)
	} else if status.LastError != nil && !errors.Is(status.LastError, context.Canceled) { // the end of the run is no problem
		r.problem = reason(status.LastError)
	}
	return r
}

// nameOf finds the name of a deleted object, tombstones included.
func nameOf(obj interface{}) (cache.ObjectName, error) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return cache.ParseObjectName(gone.Key)
	}
	object, err := meta.Accessor(obj)
	if err != nil {
		return cache.ObjectName{}, err
	}
	return cache.MetaObjectToName(object), nil
}

// encode is the one form in which an object is stored: JSON with sorted keys, so that equal objects are equal texts.
func encode(object *unstructured.Unstructured) (string, error) {
	text, err := object.MarshalJSON()
	if err != nil {
		return "", err
	}
	return string(bytes.TrimSpace(text)), nil
}
