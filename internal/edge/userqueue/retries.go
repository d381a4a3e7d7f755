package userqueue

import (
	"context"
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/backoff"
	"github.com/rvinformer/informer/internal/leaf/budget"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// retries keeps the deltas that a queue of the user's has popped and Process has
// failed for. Such a queue cannot take them back: it has no place for them
// before what has arrived since.
type retries struct {
	call func(ctx context.Context, obj interface{}, isInInitialList bool) error
	// parked holds them until they are processed.
	parked *deltaqueue.Queue
	// turn holds a value while Process is called, for the queue's pop or for a retry.
	turn chan struct{}
}

func newRetries(call func(context.Context, interface{}, bool) error) *retries {
	return &retries{
		call: call,
		parked: deltaqueue.New(deltaqueue.Options{
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
		r.parked.EndGeneration() // entries from here on are not initial
	}
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	key := popKey(obj)
	switch {
	case key == "":
		r.retryUntilDone(ctx, obj, isInInitialList)
		r.outdate(ctx, obj)
	case r.parked.Holds(key):
		r.keep(ctx, key, obj.(cache.Deltas))
	case r.call(ctx, obj, isInInitialList) != nil:
		r.parked.PutParked(failedDeltas(key, obj.(cache.Deltas)), backoff.RetryDelay(0))
	}
}

// retryUntilDone tries until Process succeeds or ctx ends. It is for pops of many
// keys: the objects of a whole list, or a resync of all. Later pops wait.
func (r *retries) retryUntilDone(ctx context.Context, obj interface{}, isInInitialList bool) {
	for attempt := 0; r.call(ctx, obj, isInInitialList) != nil; attempt++ {
		if backoff.Sleep(ctx, backoff.RetryDelay(attempt)) != nil {
			return
		}
	}
}

// outdate replaces what has failed by the newer state of it in a whole list, if
// obj is one.
func (r *retries) outdate(ctx context.Context, obj interface{}) {
	for _, obj := range objectsIn(obj) {
		if key, err := object.Key(obj); err == nil && r.parked.Holds(key) {
			r.keep(ctx, key, cache.Deltas{{Type: cache.Replaced, Object: obj}})
		}
	}
}

// keep adds newer deltas of a key that has parked.
func (r *retries) keep(ctx context.Context, key string, deltas cache.Deltas) {
	for _, d := range failedDeltas(key, deltas) {
		// The queue is unbounded: Put waits for nothing, and cannot fail.
		_ = r.parked.Put(ctx, d)
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
		e, err := r.parked.Take(ctx)
		if err != nil {
			return
		}
		r.again(ctx, e)
	}
}

// again tries again to process an entry. It drops the entry if Process ends the goroutine.
func (r *retries) again(ctx context.Context, e *deltaqueue.Entry) {
	r.turn <- struct{}{}
	giveBack := r.parked.Drop
	defer func() {
		<-r.turn
		giveBack(e)
	}()
	if r.call(ctx, poppedAgain(e), e.Initial) != nil {
		giveBack = func(e *deltaqueue.Entry) { r.parked.Retry(e, backoff.RetryDelay(e.Attempts+1)) }
	} else {
		giveBack = r.parked.Done
	}
}

// poppedAgain is an entry in the form that the queue had popped.
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
