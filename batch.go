package informer

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/backoff"
	"github.com/rvinformer/informer/internal/deltaqueue"
	"github.com/rvinformer/informer/internal/report"
)

// BatchHandler is told what happens in batches, and says whether it has taken them
// in: it is for destinations that can take many changes in one step, a transaction
// of a database or a bulk request for instance.
type BatchHandler interface {
	// OnBatch takes in events: of many keys, one of each, in the order in which the
	// keys came, as many as wait and MaxBatch at most. It is not waited for more.
	//
	// Nil acknowledges all of them. An error acknowledges none: the batch is tried
	// again, after 100 ms at first and 30 s at most, until it succeeds; an event of it
	// is replaced by what happens to its object meanwhile. Other batches go on, and the
	// keys of this one wait; when the queue is full of such keys, or the Budget spent on
	// them, nothing more is read. What a batch has done before it failed has to bear
	// being done again, or has to be undone.
	//
	// A panic acknowledges nothing either. Where utilruntime lets the process survive
	// it, the events are tried again one by one, and one that has panicked for the sixth
	// time is passed over.
	//
	// Ctx ends with Run, which waits for OnBatch to return. Events is the handler's to
	// keep, but a *RawObject in it is valid only until OnBatch returns; all other objects
	// may be kept as well. An object of a batch that comes again may be the same one, with
	// what the handler has changed in it.
	OnBatch(ctx context.Context, events []Event) error
}

// BatchHandlerFunc is a function as a BatchHandler.
type BatchHandlerFunc func(ctx context.Context, events []Event) error

// OnBatch calls f.
func (f BatchHandlerFunc) OnBatch(ctx context.Context, events []Event) error { return f(ctx, events) }

var _ BatchHandler = BatchHandlerFunc(nil)

// IgnoreSynced is handler without the events of type Synced. That is more than
// leaving them out: objects that a list shows unchanged are not even kept, nor
// decoded, for a handler that ignores them.
func IgnoreSynced(handler BatchHandler) BatchHandler { return synclessBatchHandler{handler} }

type synclessBatchHandler struct{ BatchHandler }

func (synclessBatchHandler) wantsSync() bool { return false }

// EventType is what happened to an object.
type EventType string

const (
	// Added: an object that was not known.
	Added EventType = "Added"
	// Updated: an object that was known, in another version.
	Updated EventType = "Updated"
	// Deleted: an object that is gone. An object that took the place of another
	// one of its name is the Deleted of that and, in a later batch, an Added.
	Deleted EventType = "Deleted"
	// Synced: a list shows the object in the version that was acknowledged.
	Synced EventType = "Synced"
)

// Event is what happened to one object.
type Event struct {
	Type EventType
	// Key is "namespace/name", or "name" for a cluster-scoped object.
	Key string
	// Object is the object as ExampleObject and Transform have it; of one that was
	// deleted, its final state.
	Object runtime.Object
	// ResourceVersion is that of the object as the server sent it; of a deletion whose
	// final state is unknown, the one that was acknowledged last, empty where there is
	// none.
	ResourceVersion string
	// IsInInitialList tells that the first complete list brought the event.
	IsInInitialList bool
	// FinalStateUnknown tells that a list found the deletion: Object is then a
	// *metav1.PartialObjectMetadata of what was last known, its name, UID and resource
	// version.
	FinalStateUnknown bool
}

// defaultMaxBatch is the default of InformerConfig.MaxBatch.
const defaultMaxBatch = 500

// batchDelivery delivers to a BatchHandler.
type batchDelivery struct {
	*resourceVersionInformer
	handler  BatchHandler
	maxBatch int
}

func (d batchDelivery) most() int { return d.maxBatch }

func (d batchDelivery) deliver(ctx context.Context, queue *deltaqueue.Queue, entries []*deltaqueue.Entry) {
	batch := d.batchOf(entries)
	if len(batch.events) > 0 {
		d.announce(ctx, queue, entries)
		if err := d.tell(ctx, batch); err != nil {
			d.failed(ctx, queue, batch.sent, err)
		} else {
			d.reflector.report.Handled()
			for _, a := range batch.sent {
				d.acknowledge(queue, a)
			}
		}
	}
	for _, a := range batch.rest {
		d.acknowledge(queue, a)
	}
}

// tell calls the handler.
func (d batchDelivery) tell(ctx context.Context, batch batch) error {
	taken := false
	defer func() { // also where the handler ends the goroutine
		for i, a := range batch.sent {
			d.storage.Settle(a.entry.Key, taken || batch.events[i].Type == Synced)
		}
	}()
	fail := func(err error) { d.report(batch.sent, err) }
	err := report.Guard(ctx, fail, func() error { return d.handler.OnBatch(ctx, batch.events) })
	taken = err == nil
	return err
}

// batch is what is handed over at once.
type batch struct {
	events []Event
	// sent are the entries of the events, and rest those of which there is nothing to
	// tell.
	sent, rest []acknowledgement
}

// acknowledgement is an entry, and what its acknowledgement means.
type acknowledgement struct {
	entry *deltaqueue.Entry
	means meaning
	// why is set where it is unreadable.
	why error
}

type meaning int

const (
	// handled: that is all of the entry.
	handled meaning = iota
	// unreadable: all but its newest delta, the object of which can not be read.
	unreadable
	// ended: the object that the handler knew is gone, and told of the next one it is
	// in another batch.
	ended
)

// batchOf has the first event of each of entries.
func (d batchDelivery) batchOf(entries []*deltaqueue.Entry) batch {
	b := batch{events: make([]Event, 0, len(entries)), sent: make([]acknowledgement, 0, len(entries))}
	for _, e := range entries {
		a := acknowledgement{entry: e}
		deltas, err := d.intake.Refined(e)
		if err != nil {
			d.reflector.report.Skip(err)
			a.means, a.why = unreadable, err
		}
		var room [mostNotices]notice
		notices := d.notices(room[:0], e, deltas)
		if len(notices) > 1 {
			a.means = ended
		}
		if len(notices) == 0 {
			b.rest = append(b.rest, a)
			continue
		}
		b.events = append(b.events, notices[0].event(e))
		b.sent = append(b.sent, a)
	}
	return b
}

// acknowledge gives back an entry whose event was taken in, or that has none.
func (d batchDelivery) acknowledge(queue *deltaqueue.Queue, a acknowledgement) {
	taken := a.entry.Deltas
	switch a.means {
	case handled:
		queue.Done(a.entry)
	case unreadable:
		d.leave(queue, a.entry, a.why)
	case ended:
		taken = queue.Advance(a.entry)
	}
	d.intake.TakeBack(taken)
}

// failed has a batch tried again, or passes over its only event if that has
// panicked too often.
func (d batchDelivery) failed(ctx context.Context, queue *deltaqueue.Queue, sent []acknowledgement, err error) {
	entries := make([]*deltaqueue.Entry, len(sent))
	for i, a := range sent {
		entries[i] = a.entry
	}
	attempts := entries[0].Attempts // all have failed together
	panicked := report.IsPanic(err)
	last := panicked && len(entries) == 1 && entries[0].Panics >= mostRetries
	if last {
		err = passedOver(err)
	}
	if ctx.Err() == nil || !errors.Is(err, ctx.Err()) { // which is no failure of the handler's
		d.report(sent, err)
	}
	if !last {
		queue.Postpone(entries, backoff.RetryDelay(attempts), panicked)
		return
	}
	taken := entries[0].Deltas
	queue.Drop(entries[0])
	d.intake.TakeBack(taken)
}

// report reports a failure of the handler.
func (d batchDelivery) report(sent []acknowledgement, err error) {
	failed := &report.BatchError{Err: err, Attempts: sent[0].entry.Attempts + 1}
	for _, a := range sent {
		failed.Keys = append(failed.Keys, a.entry.Key)
	}
	d.reflector.report.FailHandling(failed)
}

// objectsOnly is transform, and an error where that returns what is no object: an
// Event has nothing else.
func objectsOnly(transform cache.TransformFunc) cache.TransformFunc {
	if transform == nil {
		return nil
	}
	return func(obj interface{}) (interface{}, error) {
		obj, err := transform(obj)
		if err != nil || obj == nil {
			return nil, err
		}
		if _, ok := obj.(runtime.Object); !ok {
			return nil, fmt.Errorf("transform returned a %T, which is no runtime.Object", obj)
		}
		return obj, nil
	}
}
