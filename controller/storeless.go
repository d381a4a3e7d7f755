package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
)

// StorelessResource is a Resource whose objects are not kept: the Controller makes a
// ResourceVersionInformer for it. NewStorelessResource returns one; a struct with that
// embedded may be a Backgrounder too.
//
// What is different for it:
//
//   - Upsert is given the object of the event, decoded as ExampleObject says, and may
//     keep and change it (what it has changed before it failed, it may see again), except
//     that a *RawObject is lent until Upsert returns.
//   - Where a list found the deletion, Delete is given a *metav1.PartialObjectMetadata
//     with what was last known.
//   - An object that is listed in the version that was acknowledged is not an item. So
//     with a Storage that was filled, or a Checkpoint, a process begins with what has
//     changed since the last one, not with an Upsert of everything.
//   - An object that comes and goes while it waits is not told. One that was deleted and
//     created again under its name is a Delete and an Upsert.
//   - What failed is tried again after 100 ms at first and 30 s at most, and not by
//     RateLimiter. It keeps its place in the informer's queue and its bytes of the Budget
//     meanwhile: when failures fill these, nothing more is read.
//   - The Controller's MaxRetries say when it is given up, also after a panic, and not the
//     MaxAttempts of the configuration.
//   - What waits when Run ends is not processed, but told by the next Run.
//   - What was given up counts as acknowledged: it is not told again before the object
//     changes, neither by a resync nor by a restart. With the default of MaxRetries that is
//     after some seconds. A program that must not miss anything writes down what OnGiveUp is told,
//     or sets MaxRetries to be negative.
//   - HasSynced says that every item of the first list was processed or given up.
//   - Between the objects of a first list that is read as a watch-list
//     (ListModeWatchList), a server tells what changes meanwhile. A Delete of these is held
//     until the list was read, and then tried with the delays above. Only where what is
//     held stands in the way of the list itself, because nothing was read for two minutes
//     (or twice the StallTimeout, if that is more), it is let go before: its object is gone
//     in any case.
type StorelessResource interface {
	// Resource has an Informer that is not called.
	Resource
	// InformerConfig returns the name of the informer and its configuration, without a
	// Handler and a BatchHandler: these are the Controller's. It is called once for each
	// Controller, at its first Run; later ones go on with the same informer.
	InformerConfig() (name string, config informer.InformerConfig)
}

// NewStorelessResource returns a Resource that is followed with a ResourceVersionInformer
// of that name and configuration: with one of its own, because the handler of such an
// informer is chosen when it is made. Config must have neither Handler nor BatchHandler, nor
// MaxBatch; Workers is that of the Controller, if it has any. It panics if it does, or if
// upsert or delete is nil; what NewResourceVersionInformer panics on, it panics on in Run.
func NewStorelessResource(name string, config informer.InformerConfig, upsert ResourceUpsertFunc, delete ResourceDeleteFunc) StorelessResource {
	checkStoreless(name, config)
	return storelessResource{functionsOf(fmt.Sprintf("NewStorelessResource %q", name), upsert, delete), name, config}
}

func checkStoreless(name string, config informer.InformerConfig) {
	checkUnset(fmt.Sprintf("StorelessResource %q", name), config.Handler, config.BatchHandler, config.MaxBatch)
}

type storelessResource struct {
	functions
	name   string
	config informer.InformerConfig
}

func (r storelessResource) Informer() cache.SharedIndexInformer { return nil }

func (r storelessResource) InformerConfig() (string, informer.InformerConfig) {
	return r.name, r.config
}

// storeless is a ResourceVersionInformer as the source of a controller: see batches.
type storeless struct {
	batches
	informer informer.ResourceVersionInformer
}

func newStoreless(r StorelessResource, workers int, calls *calls) *storeless {
	name, config := r.InformerConfig()
	checkStoreless(name, config)
	s := &storeless{batches: batches{calls: calls, silence: 2 * max(time.Minute, config.StallTimeout)}}
	config.BatchHandler = informer.IgnoreSynced(&s.batches)
	config.MaxBatch = 1
	config.MaxAttempts = forEver
	if workers > 0 {
		config.Workers = workers
	}
	config.ErrorHandler = withoutHeld(config.ErrorHandler)
	s.informer = informer.NewResourceVersionInformer(name, config)
	s.follow(s.informer)
	return s
}

func (s *storeless) run(ctx context.Context, synced func()) error {
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		s.informer.RunWithContext(ctx)
	}()
	select {
	case <-s.informer.HasSyncedChecker().Done():
	case <-returned:
	}
	if s.informer.HasSynced() {
		synced()
	}
	<-returned
	return nil
}
