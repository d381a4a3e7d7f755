package informer

import (
	"context"
	"math"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/backoff"
	"github.com/rvinformer/informer/internal/budget"
	"github.com/rvinformer/informer/internal/deltaqueue"
	"github.com/rvinformer/informer/internal/keytable"
	"github.com/rvinformer/informer/internal/object"
	"github.com/rvinformer/informer/internal/sink"
)

// retries keeps the deltas that a queue of the user's has popped and Process has
// failed for. Such a queue can not take them back: it has no place for them
// before what has arrived since.
type retries struct {
	call func(ctx context.Context, obj interface{}, isInInitialList bool) error
	// failed holds them until they are processed.
	failed *deltaqueue.Queue
	// turn is held by who calls Process: the queue's pop, or a retry.
	turn chan struct{}
}

func newRetries(call func(context.Context, interface{}, bool) error) *retries {
	return &retries{
		call: call,
		failed: deltaqueue.New(deltaqueue.Options{
			Known:  unacknowledged{keytable.New()},
			Limit:  math.MaxInt,
			Budget: budget.New(math.MaxInt64),
		}),
		turn: make(chan struct{}, 1),
	}
}

// unacknowledged is a table that stays empty: what was processed is known to
// the user's own store.
type unacknowledged struct{ *keytable.Table }

func (unacknowledged) Set(string, keytable.Version, uint64) {}

// process calls Process for what the queue popped. Where the key has failed
// before, what was popped joins it there, and is tried at once.
func (r *retries) process(ctx context.Context, obj interface{}, isInInitialList bool) {
	if !isInInitialList {
		r.failed.EndUnswept() // entries from here on are not initial
	}
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	key := popKey(obj)
	switch {
	case key == "":
		r.insist(ctx, obj, isInInitialList)
		r.outdate(ctx, obj)
	case r.failed.Holds(key):
		r.keep(ctx, key, obj.(cache.Deltas))
	case r.call(ctx, obj, isInInitialList) != nil:
		r.failed.PutParked(failedDeltas(key, obj.(cache.Deltas)), backoff.RetryDelay(0))
	}
}

// insist tries until Process succeeds or ctx ends. It is for what is of many
// keys: the objects of a whole list, a resync of all. What comes after must wait.
func (r *retries) insist(ctx context.Context, obj interface{}, isInInitialList bool) {
	for attempt := 0; r.call(ctx, obj, isInInitialList) != nil; attempt++ {
		if backoff.Sleep(ctx, backoff.RetryDelay(attempt)) != nil {
			return
		}
	}
}

// outdate replaces what has failed by the newer state of it in a whole list, if
// obj is one.
func (r *retries) outdate(ctx context.Context, obj interface{}) {
	deltas, _ := obj.(cache.Deltas)
	for _, d := range deltas {
		info, ok := d.Object.(cache.ReplacedAllInfo)
		if !ok {
			continue
		}
		for _, obj := range info.Objects {
			if key, err := object.Key(obj); err == nil && r.failed.Holds(key) {
				r.keep(ctx, key, cache.Deltas{{Type: cache.Replaced, Object: obj}})
			}
		}
	}
}

// keep adds newer deltas of a key that has failed.
func (r *retries) keep(ctx context.Context, key string, deltas cache.Deltas) {
	for _, d := range failedDeltas(key, deltas) {
		// The queue is unbounded: Put waits for nothing, and cannot fail.
		_ = r.failed.Put(ctx, d)
	}
}

// failedDeltas are the deltas of a key as the queue of the failed has them.
func failedDeltas(key string, deltas cache.Deltas) []deltaqueue.Delta {
	kept := make([]deltaqueue.Delta, len(deltas))
	for i, d := range deltas {
		kept[i] = deltaqueue.Delta{Type: d.Type, Key: key, Object: d.Object}
		if _, version, err := object.KeyAndVersion(d.Object); err == nil {
			kept[i].Version = version
		}
	}
	return kept
}

// run tries again, one key after the other, until ctx ends.
func (r *retries) run(ctx context.Context) {
	for {
		e, err := r.failed.Take(ctx)
		if err != nil {
			return
		}
		r.again(ctx, e)
	}
}

// again tries again to process an entry. It drops the entry if Process ends the goroutine.
func (r *retries) again(ctx context.Context, e *deltaqueue.Entry) {
	r.turn <- struct{}{}
	giveBack := r.failed.Drop
	defer func() {
		<-r.turn
		giveBack(e)
	}()
	if r.call(ctx, poppedAgain(e), e.Initial) != nil {
		giveBack = func(e *deltaqueue.Entry) { r.failed.Retry(e, backoff.RetryDelay(e.Attempts+1)) }
	} else {
		giveBack = r.failed.Done
	}
}

// poppedAgain is an entry in the form in which the queue had popped it.
func poppedAgain(e *deltaqueue.Entry) cache.Deltas {
	deltas := make(cache.Deltas, len(e.Deltas))
	for i, d := range e.Deltas {
		deltas[i] = cache.Delta{Type: d.Type, Object: d.Object}
		if d.FinalStateUnknown() {
			deltas[i].Object = object.Tombstone(metav1.TypeMeta{}, e.Key, e.Version)
		}
	}
	return deltas
}

// retriedSink tells the retries of deletions. The queue may not queue one: for
// it, an object that was popped and that Process has not stored does not exist.
type retriedSink struct {
	sink.Sink
	retries *retries
}

func (s retriedSink) Put(ctx context.Context, event watch.EventType, it object.Item) (bool, error) {
	own, unreadable := it.Owned()
	if unreadable == nil {
		it = own
	} else {
		own.Object = nil // a deletion counts, whatever becomes of its object
	}
	stale, err := s.Sink.Put(ctx, event, it)
	// Asked only now, for the queue may have waited for a call that then failed.
	if event == watch.Deleted && s.retries.failed.Holds(own.Key) {
		s.retries.keep(ctx, own.Key, cache.Deltas{{Type: cache.Deleted, Object: own.Object}})
	}
	return stale, err
}

func (s retriedSink) Begin(ctx context.Context) (sink.Generation, error) {
	g, err := s.Sink.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &retriedGeneration{Generation: g, retries: s.retries, shown: map[string]struct{}{}}, nil
}

type retriedGeneration struct {
	sink.Generation
	retries *retries
	shown   map[string]struct{}
}

func (g *retriedGeneration) Show(ctx context.Context, it object.Item) error {
	g.shown[strings.Clone(it.Key)] = struct{}{}
	return g.Generation.Show(ctx, it)
}

func (g *retriedGeneration) Keep(key string) {
	g.shown[key] = struct{}{}
	g.Generation.Keep(key)
}

func (g *retriedGeneration) End(ctx context.Context, resourceVersion string, complete bool) error {
	if err := g.Generation.End(ctx, resourceVersion, complete); err != nil || !complete {
		return err
	}
	select { // a call under way may fail for what the list did not show
	case g.retries.turn <- struct{}{}:
		defer func() { <-g.retries.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	failed := g.retries.failed
	failed.BeginGeneration()
	for key := range g.shown {
		failed.Keep(key)
	}
	return failed.Sweep(ctx, func(string, keytable.Version) {})
}
