package intake

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/engine/sink"
	"github.com/rvinformer/informer/internal/leaf/failure"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/moment"
)

// queueSink is the delta queue as a sink.
type queueSink struct {
	queue *deltaqueue.Queue
	*Intake
	begun Begun
}

// Begun is called when a generation begins, and the func that it returns when that generation has
// ended.
type Begun func() (ended func(complete bool))

func (s queueSink) Begin(context.Context) (sink.Generation, error) {
	g := queueGeneration{queueSink: s}
	if s.begun != nil {
		g.ended = s.begun()
	}
	s.queue.BeginGeneration()
	return g, nil
}

// Into returns queue as a sink. Begun may be nil.
func (i *Intake) Into(queue *deltaqueue.Queue, begun Begun) sink.Sink {
	return queueSink{queue, i, begun}
}

// deltaTypes are those of watch events.
var deltaTypes = map[watch.EventType]cache.DeltaType{
	watch.Added:    cache.Added,
	watch.Modified: cache.Updated,
	watch.Deleted:  cache.Deleted,
}

func (s queueSink) Put(ctx context.Context, event watch.EventType, it object.Item) (sink.Verdict, error) {
	d := deltaqueue.Delta{Type: deltaTypes[event], Key: it.Key, Version: it.Version, Arrived: it.Arrived}
	if s.queue.Stale(d) {
		if event == watch.Added && s.queue.Has(d) {
			return sink.Known, nil
		}
		return sink.Stale, nil
	}
	unreadable := s.fill(&d, it)
	informed := d.Object
	switch {
	case unreadable != nil && d.Type != cache.Deleted:
		return sink.Taken, unreadable
	case unreadable != nil: // a deletion counts, whatever becomes of its object
		d.Object, informed = nil, s.Tombstone(d.Key, d.Version)
	}
	s.inform(d.Type, d.Key, informed)
	if err := s.queue.Put(ctx, d); err != nil {
		return sink.Taken, err
	}
	if unreadable != nil {
		s.Report.Skip(unreadable)
	}
	return sink.Taken, nil
}

func (s queueSink) Observed(p sink.Progress) error {
	s.queue.Observed(p.Reached, p.Current)
	return nil
}

func (s queueSink) Resync(ctx context.Context) error {
	if s.Stored == nil {
		return nil
	}
	at := moment.Now()
	for _, obj := range s.Stored() {
		key, version, err := object.KeyAndVersion(obj)
		if err != nil {
			s.Report.Fail(failure.OfStore("List", "", err))
			continue
		}
		if err := s.queue.Resync(ctx, deltaqueue.Delta{Type: cache.Sync, Key: key, Version: version, Object: obj, Arrived: at}); err != nil {
			return err
		}
	}
	return nil
}

// queueGeneration is a generation that goes into the queue as it arrives.
type queueGeneration struct {
	queueSink
	ended func(complete bool)
}

func (g queueGeneration) Show(ctx context.Context, it object.Item) error {
	shown, other := g.queue.Shown(it.Key, it.Version)
	if other != "" {
		return sink.Twice(it, other)
	}
	if shown && g.Extra == nil { // the ExtraStore has unchanged objects too
		return nil
	}
	d := deltaqueue.Delta{Type: cache.Replaced, Key: it.Key, Version: it.Version, Arrived: it.Arrived}
	if err := g.fill(&d, it); err != nil {
		return err
	}
	if g.Extra != nil {
		change := cache.Added
		if g.queue.Knows(it.Key) {
			change = cache.Updated
		}
		g.inform(change, d.Key, d.Object)
	}
	if shown {
		return nil
	}
	return g.queue.Put(ctx, d)
}

func (g queueGeneration) Keep(key string) { g.queue.Keep(key) }

// Deletes implements sink.Generation.
func (g queueGeneration) Deletes() bool { return g.queue.Sweeps() }

func (g queueGeneration) End(ctx context.Context, resourceVersion string, complete bool) error {
	if complete {
		if err := g.queue.Sweep(ctx, g.informOfDeletion); err != nil {
			return err
		}
	}
	// Publish the version first: a caller woken by HasSynced may read it.
	g.queue.Listed(resourceVersion)
	g.queue.EndGeneration()
	if g.ended != nil {
		g.ended(complete)
	}
	return nil
}

func (g queueGeneration) informOfDeletion(key string, last keytable.Version) {
	g.inform(cache.Deleted, key, g.Tombstone(key, last))
}

// Abandon has nothing to undo: marks of a generation that did not end mean
// nothing to the next.
func (g queueGeneration) Abandon() {}
