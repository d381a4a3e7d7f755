package main

import (
	"context"
	"time"

	"github.com/rvinformer/informer"
)

// sharedFeed brings one resource of a unit into the database, as a feed does, for an informer of a fleet. The unit may have had another owner before, or get one at any time.
type sharedFeed struct{ *feed }

var _ informer.BatchHandler = sharedFeed{}

// newSharedFeed prepares a feed that has no informer of its own.
func newSharedFeed(at place, config feedConfig) sharedFeed {
	return sharedFeed{&feed{place: at, writer: config.writer, patience: newPatience(0, time.Now())}}
}

// OnBatch writes a batch if no later owner of the unit has written before it: else the database tells the replica.
func (f sharedFeed) OnBatch(ctx context.Context, events []informer.Event) error {
	if f.refused.Load() { // and the informer does not replace what it has refused
		if err := f.writer.Write(ctx, change{kind: dropCheckpoint, place: f.place}); err != nil {
			return err
		}
		f.refused.Store(false)
	}
	return f.feed.OnBatch(ctx, events)
}
