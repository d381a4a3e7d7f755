package follower

import (
	"context"

	"github.com/rvinformer/informer/internal/listwatch"
	"github.com/rvinformer/informer/internal/report"
	"github.com/rvinformer/informer/internal/rv"
	"github.com/rvinformer/informer/internal/shard"
	"github.com/rvinformer/informer/internal/sink"
	"github.com/rvinformer/informer/internal/source"
)

// shards is how far a follower has come with the changes of its shard.
type shards struct {
	// number is that of the change that the requests are for.
	number int
	// rest, if set, is where the watch of what was listed goes on, once a list of what is missing is complete.
	rest *listwatch.Watching
}

// unset is the number of no change.
const unset = -1

// ShardChanged has the new shard of the Extent followed: at once if a watch is followed, or else after the request under way. It may be called
// from any goroutine.
func (f *Follower) ShardChanged() { f.relist.interrupt() }

// shardChanged reports whether the shard is another one than that of the requests.
func (f *Follower) shardChanged() bool { return f.Extent.Number() != f.shards.number }

// followShard has the next request be of the shard, if that was changed. A list under way goes on: the Extent knows how much of it counts.
//
// Where everything up to a version is known of a part of the shard, the rest is listed, and then the watch goes on from that version. So
// nothing is missed. It tells again what has happened to the rest before the list, which the sink knows to be stale. Versions without an order
// do not tell that: with them, the whole shard is listed.
func (f *Follower) followShard() {
	for f.pass.generation == nil {
		f.takeShard()
		if _, watches := f.state.(listwatch.Watching); watches || f.Extent.Begin(f.shards.number) {
			return
		}
	}
}

// takeShard takes note of the shard, if it was changed.
func (f *Follower) takeShard() {
	if !f.shardChanged() {
		return
	}
	current, number := f.Extent.Shard()
	f.shards.number = number
	f.Source.Parts = shard.Of(current)
	if f.SharedOf != nil {
		f.Source.Shared = f.SharedOf(current)
	}
	at, watching := f.state.(listwatch.Watching)
	if rest := f.shards.rest; rest != nil {
		at, watching = *rest, true
		f.shards.rest = nil
	}
	if !watching {
		return // to a list of the whole shard
	}
	f.state = at
	missing, none := f.Extent.Missing()
	switch {
	case none || len(missing) > 0 && !rv.Ordered(at.ResourceVersion) || at.Lost || at.ResourceVersion == "" || at.ResourceVersion == "0":
		f.closeOpened()
		f.state = listwatch.Start{Known: at.ResourceVersion}
		f.why = report.AfterList
	case len(missing) > 0:
		f.closeOpened()
		f.shards.rest = &at
		f.Source.Parts = missing
		f.state = listwatch.Start{Known: at.ResourceVersion, Consistent: true}
	}
}

// beginInSink begins a generation in the sink: of the whole shard, or of what is missing of it.
func (f *Follower) beginInSink(ctx context.Context) (sink.Generation, error) {
	if f.shards.rest == nil {
		return f.Sink.Begin(ctx)
	}
	return f.Sink.(sink.Divided).BeginParts(ctx, f.Source.Parts)
}

// completeParts ends the generation that has shown what was missing of the shard. The watch of the rest follows.
func (f *Follower) completeParts(ctx context.Context, resourceVersion string) error {
	ended, rest := f.pass, *f.shards.rest
	f.pass = pass{}
	f.Source.Rest()
	again := listwatch.Step{State: listwatch.Start{Known: rest.ResourceVersion, Consistent: true}, Pause: listwatch.ListPause}
	if rv.Compare(resourceVersion, rest.ResourceVersion) == rv.Older {
		// The server was restored: what is known of the rest is not what it has.
		ended.generation.Abandon()
		f.Extent.Forget()
		f.shards = shards{number: unset}
		f.next = again
		return nil
	}
	if err := ended.generation.End(ctx, resourceVersion, !ended.partial); err != nil {
		f.next = again
		return err
	}
	// The watch goes on from before this list. If it has to end in a list, that must not be older, or it would not show what this one has shown.
	if f.resuming == nil {
		f.resuming = &resuming{}
	}
	f.resuming.floor = rv.AtLeast(resourceVersion, f.resuming.floor)
	f.Extent.End()
	f.Sink.(sink.Divided).PartsEnded()
	f.shards = shards{number: unset} // the watch is of the whole shard
	f.next.State, f.why = rest, report.AfterList
	f.Report.Succeed()
	return nil
}

// goOn has the watch go on at once, in place of what its end would be followed by, if it was ended because the shard was changed.
func (w *watching) goOn(err error) {
	next, watches := w.next.State.(listwatch.Watching)
	if err != nil || !watches || !w.shardChanged() {
		return
	}
	next.Unsure = w.at.Unsure
	w.next.State, w.next.Pause = next, listwatch.NoPause
}

// SharedWatches returns the watches of a shard that are shared with others.
type SharedWatches func(shard.Shard) *source.Shared
