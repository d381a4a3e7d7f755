// Package sink says where a follower puts what it reads: into a store, or into the delta queue.
package sink

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/moment"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// Sink takes what a follower reads. It has one caller at a time.
type Sink interface {
	// Begin begins a generation, which is to be ended or abandoned.
	Begin(ctx context.Context) (Generation, error)
	// Put takes a watch event, unless it is not newer than what is known. An *api.ItemError
	// says that the object could not be read, so that the event was not taken. A sink that takes a
	// deletion without its object reports what is wrong with the object itself.
	Put(ctx context.Context, event watch.EventType, it object.Item) (Verdict, error)
	// Observed follows each Put, each bookmark and each generation.
	Observed(p Progress) error
	// Resync repeats what the sink has.
	Resync(ctx context.Context) error
}

// Verdict is what becomes of a watch event.
type Verdict uint8

const (
	// Taken: it was put, or could not be.
	Taken Verdict = iota
	// TakenAgain: it was put, although the object is known in just this state. A store takes all.
	TakenAgain
	// Stale: it was dropped, because something newer is known.
	Stale
	// Known: it was dropped, because the object is known in just this state.
	Known
)

// IsStale reports whether the event was dropped.
func (v Verdict) IsStale() bool { return v == Stale || v == Known }

// IsKnown reports whether the object was known in just the state of the event.
func (v Verdict) IsKnown() bool { return v == TakenAgain || v == Known }

// Progress is how far a follower has come.
type Progress struct {
	// Reached has the version of what came last, and Bookmark tells that it was a bookmark.
	rv.Reached
	Bookmark bool
	// Current, if it is not zero, is a moment: everything that the server had then has been put, or was
	// in a complete generation.
	Current moment.Moment
}

// Generation takes the objects of one complete pass over the server's set. A *api.ItemError says
// that an object could not be read.
type Generation interface {
	Show(ctx context.Context, it object.Item) error
	// Keep is called for an object that the list has but that could not be read.
	Keep(key string)
	// Deletes reports whether End would delete something now, if the list was seen completely. It is
	// true if that cannot be told.
	Deletes() bool
	// End deletes what was not shown, if the list was seen completely: if the key of each
	// of its objects is known.
	End(ctx context.Context, resourceVersion string, complete bool) error
	Abandon()
}
