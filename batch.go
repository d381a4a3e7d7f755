package informer

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/flow"
)

// BatchHandler gets changes in batches, and says whether it has taken them in. It is for
// destinations that can take many changes in one step, a transaction of a database or a
// bulk request for instance.
type BatchHandler interface {
	// OnBatch takes in events: of many keys, one of each, in the order of the keys'
	// arrival. It gets as many as wait, and MaxBatch at most; no batch waits for more.
	//
	// Nil acknowledges all events. FailedEvents acknowledge all events but those that they name. They
	// may be wrapped. An event that they name as Later is not at fault: it comes again with others
	// of that kind when its own pause is over. FailedEvents are wrong, and acknowledge no event, if the list is empty, has an
	// event twice or one that is not in the batch, or is joined with another error. Any other error
	// acknowledges no event.
	//
	// Events that are not acknowledged are tried again together, after 100 ms at first and 30 s at
	// most, until they are. Meanwhile, a newer event of an object replaces the one that failed. Other
	// batches go on, and the keys of this one wait. When such keys fill the queue or the Budget,
	// nothing more is read. The steps of a batch that failed are done again, so they must be
	// repeatable or be undone.
	//
	// A batch that has failed three times with another error than FailedEvents is tried in parts,
	// one call after the other: halves, halves of a half that fails, and so on, down to the events
	// that fail by themselves. A part that succeeds is acknowledged. Up to sixteen events that fail
	// by themselves are then tried again one by one; more of them are tried together. Two calls
	// with single events come first. If both fail, the destination is taken to be away: the batch
	// stays whole, and is tried in parts after three more failures.
	//
	// A panic acknowledges nothing either. Where utilruntime lets the process survive
	// it, the events are tried again one by one, and one that has panicked for the sixth
	// time is a DeadLetter. So is an event that has failed by itself MaxAttempts times.
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
type EventType = api.EventType

// The types of events. Package api says more of each.
const (
	// Added: an object that was not known.
	Added = api.Added
	// Updated: an object that was known, in another version.
	Updated = api.Updated
	// Deleted: an object that is gone.
	Deleted = api.Deleted
	// Synced: a list shows the object in the version that was acknowledged.
	Synced = api.Synced
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
	// *metav1.PartialObjectMetadata with the last known name, UID and resource
	// version.
	FinalStateUnknown bool
	// Epoch is that of the context that Run was given, which WithEpoch has made; zero if it has
	// none.
	Epoch int64
}

// defaultMaxBatch is the default of InformerConfig.MaxBatch.
const defaultMaxBatch = 500

// defaultMaxDeadLetters is the default of InformerConfig.MaxDeadLetters.
const defaultMaxDeadLetters = 10_000

// handBatch calls the BatchHandler.
func handBatch(handler BatchHandler) func(context.Context, []flow.Sent) error {
	return func(ctx context.Context, batch []flow.Sent) error {
		events := make([]Event, len(batch))
		epoch, _ := EpochOf(ctx)
		for i, s := range batch {
			events[i] = eventOf(s)
			events[i].Epoch = epoch
		}
		return handler.OnBatch(ctx, events)
	}
}

// eventOf returns a notice as a BatchHandler is given it.
func eventOf(s flow.Sent) Event {
	event := Event{Type: s.Type, Key: s.Entry.Key, ResourceVersion: s.Version, IsInInitialList: s.Entry.Initial}
	obj := s.Object
	tombstone, ok := obj.(cache.DeletedFinalStateUnknown)
	if ok {
		obj = tombstone.Obj
	}
	event.FinalStateUnknown = ok
	event.Object, _ = obj.(runtime.Object)
	return event
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
