package userqueue

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/engine/sink"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// retriedSink hands deletions to the retries. The queue may drop one: for
// it, an object that was popped and that Process has not stored does not exist.
type retriedSink struct {
	sink.Sink
	retries *retries
}

func (s retriedSink) Put(ctx context.Context, event watch.EventType, it object.Item) (sink.Verdict, error) {
	own, unreadable := it.Owned()
	if unreadable == nil {
		it = own
	} else {
		own.Object = nil // a deletion counts, whatever becomes of its object
	}
	verdict, err := s.Sink.Put(ctx, event, it)
	// This comes last, because the queue may have waited for a call that then failed.
	if event == watch.Deleted && s.retries.parked.Holds(own.Key) {
		s.retries.keep(ctx, own.Key, cache.Deltas{{Type: cache.Deleted, Object: own.Object}})
	}
	return verdict, err
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
	parked := g.retries.parked
	parked.BeginGeneration()
	for key := range g.shown {
		parked.Keep(key)
	}
	return parked.Sweep(ctx, func(string, keytable.Version) {})
}
