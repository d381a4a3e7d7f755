// Package follower keeps a sink in step with a resource: it lists the resource, follows its
// changes, and lists again where it must.
//
// A Follower is the shell around the decisions of package listwatch. It does what a state asks for:
// a request of a list (listing.go), a watch-list (initial.go), or a watch (watching.go). A pass is
// one generation while it is read. What it reads goes from a source.Source into a sink.Sink.
package follower

import (
	"context"
	"errors"
	"time"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/engine/sink"
	"github.com/rvinformer/informer/internal/engine/source"
	"github.com/rvinformer/informer/internal/leaf/backoff"
	"github.com/rvinformer/informer/internal/leaf/moment"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// Follower is one run. It belongs to one goroutine, and lives no longer than that.
type Follower struct {
	*Setup
	Tuning
	Source *source.Source
	Sink   sink.Sink
	Policy listwatch.Policy
	// state is what is requested, and next what follows it, once the request is done.
	state listwatch.State
	next  listwatch.Step
	// questions paces what the server is asked about itself.
	questions listwatch.Questions
	// pace is nil until something has to wait.
	pace    *listwatch.Pace
	pass    pass
	doubles doubles
	// opened is the watch that follows the initial events of a watch-list, until it
	// is followed.
	opened opening
	// refusal is why the newest watch-list did not work, nil if it did.
	refusal error
	resync  *resync
	cuts    cuts
	// resuming is nil unless the run goes on from a resource version, and has not read a complete
	// set since.
	resuming *resuming
	// objects are those of the Origin.
	objects func() []object.Known
	// trusted is the newest resource version known that no odd set has put in doubt.
	trusted string
	// why is the reason for the next list or watch, if it is begun anew.
	why report.Reason
	// replays counts the events of watches, in a row, that the server would not send if it went on from
	// a version: see replay.go.
	replays uint8
	// hasBookmarks tells that a watch of the run has had a bookmark.
	hasBookmarks bool
	// told is the newest event that has moved the state.
	told   told
	relist relist
	// listed is the period in which the newest complete list was begun and ended, 0 if it has taken
	// longer: see server.Resource.Period.
	listed uint64
	// address is where the server was when the newest watch was opened, or the run has begun.
	address string
}

// Origin is what a run begins from.
type Origin struct {
	// Known is the newest resource version known: a list must not be older.
	Known string
	// Resume is the resource version to watch from, without a list; empty to list.
	Resume string
	// Resumed is called when the server has accepted Resume.
	Resumed func()
	// Objects returns some objects that the server is known to have had; nil if there are
	// none.
	Objects func() []object.Known
	// Latest returns the objects with the newest versions known, the newest first; nil if there are
	// none. A server that shows another version of one was restored from a backup before the run
	// resumes.
	Latest func() []object.Known
}

// resuming is what a run needs to know that goes on from a resource version.
type resuming struct {
	// floor is the newest resource version known before the run: what is listed next must not be
	// older.
	floor string
	// confirmed, if set, is to be called when the server has accepted the resource
	// version that the run resumes from.
	confirmed func()
	// latest are those of the Origin, nil once they were compared with the server.
	latest func() []object.Known
	missing
}

// Run lists and watches until ctx ends. Failures are reported, and tried again after a backoff. The
// caller reports that the informer has stopped.
func (f *Follower) Run(ctx context.Context, from *Origin) {
	f.Report.LogTo(ctx)
	defer moment.Attend()()
	defer f.end()
	f.begin(ctx, from)
	for ctx.Err() == nil {
		f.goOnAfter(ctx, f.step(ctx))
	}
}

// end ends what Run has begun.
func (f *Follower) end() {
	f.Report.Stop()
	f.close()
}

// goOnAfter goes on after a step that has ended with err, unless ctx has ended. It is not to be on
// the stack of Run.
//
//go:noinline
func (f *Follower) goOnAfter(ctx context.Context, err error) {
	if ctx.Err() == nil {
		f.reportAndGoOn(ctx, err)
	}
}

// ListAndWatch lists once and then watches, until ctx ends or the set has to be listed again, and
// returns nil. The error is that of a list that cannot be read.
func (f *Follower) ListAndWatch(ctx context.Context, known string) error {
	defer moment.Attend()()
	defer f.close()
	f.begin(ctx, &Origin{Known: known})
	for {
		err := f.step(ctx)
		if ctx.Err() != nil {
			return nil
		}
		_, watched := f.state.(listwatch.Watching)
		_, again := f.next.State.(listwatch.Start)
		if err != nil && !watched && f.next.Again() {
			f.Report.NoteFailure(err)
			return err
		}
		if watched && again {
			if err != nil {
				f.Report.Fail(err)
			}
			return nil
		}
		f.reportAndGoOn(ctx, err)
	}
}

// begin begins with the first state of a run.
func (f *Follower) begin(ctx context.Context, from *Origin) {
	f.resync.start(ctx)
	f.objects, f.trusted, f.address = from.Objects, rv.AtLeast(from.Known, from.Resume), f.Server.Address()
	if from.Resume == "" {
		f.state = listwatch.Start{Known: from.Known}
		return
	}
	f.Report.Reach(from.Resume)
	f.Report.ListRead()
	f.resuming = &resuming{floor: from.Known, confirmed: from.Resumed, latest: from.Latest}
	f.state, f.why = listwatch.Watching{ResourceVersion: from.Resume, Unsure: true}, report.Resumed
}

func (f *Follower) close() {
	f.resync.close()
	f.abandon()
	f.closeOpened()
	f.Source.Leave()
}

// step does the request of the state and decides what is next. It returns the error to
// report, if there was one.
//
// It, what calls it, and what it calls for a watch, is on the stack while a watch is
// idle: what is large stands in functions that have returned by then.
func (f *Follower) step(ctx context.Context) error {
	w := f.newWatching()
	switch {
	case w == nil:
		return f.list(ctx)
	case f.listsInstead():
		return nil
	}
	return w.conclude(w.follow(ctx))
}

// reportAndGoOn reports the error of a step, and goes on.
func (f *Follower) reportAndGoOn(ctx context.Context, err error) {
	if err != nil {
		f.Report.Fail(err)
	}
	f.rest(ctx, err)
	f.state = f.next.State
}

// rest waits before what is next, after a step that has ended with err. It returns early when ctx
// ends.
func (f *Follower) rest(ctx context.Context, err error) {
	wait := f.pause()
	if wait <= 0 {
		return
	}
	f.Report.Enter(api.PhaseBackoff)
	outage := f.Source.AwaitServer(ctx, wait, err)
	if outage && f.next.Pause == listwatch.RetryPause {
		f.pace.Forgive()
	}
	if outage || f.Source.ServerAway() {
		f.next.State = listwatch.Forgive(f.next.State)
	}
}

// pause is how long to wait before what is next.
func (f *Follower) pause() time.Duration {
	if f.next.Progress == listwatch.WatchProgress { // all backoffs start again
		f.pace = nil
	}
	if f.pace == nil {
		if f.next.Pause == listwatch.NoPause {
			return 0
		}
		f.pace = listwatch.NewPace(backoff.OrDefault(f.Backoff))
	}
	return f.pace.After(f.next)
}

// repeat has the sink repeat what it has, unless ShouldResync says no.
func (f *Follower) repeat(ctx context.Context) error {
	if f.ShouldResync != nil && !f.ShouldResync() {
		return nil
	}
	return f.Sink.Resync(ctx)
}

// put hands a change of an object on to the sink. A change that the sink did not take, although it
// was not stale, is reported; unreadable tells that the object was at fault.
func (f *Follower) put(ctx context.Context, c *source.Change) (verdict sink.Verdict, unreadable bool) {
	f.Source.Turn.Busy()
	verdict, err := f.Sink.Put(ctx, c.Event, c.Item)
	f.Source.Turn.Idle()
	switch {
	case err != nil:
		unreadable = f.refused(ctx, err)
		if unreadable && object.IsUndecodable(err) {
			f.Report.Gaps.Miss()
		}
	case verdict.IsStale():
		f.Report.Stale()
	}
	return verdict, unreadable
}

// refused reports why the sink did not take an object, and returns whether the object was at fault.
func (f *Follower) refused(ctx context.Context, err error) (unreadable bool) {
	var skipped *api.ItemError
	switch {
	case ctx.Err() != nil:
		return false
	case errors.As(err, &skipped):
		f.Report.Skip(skipped)
		return true
	default:
		f.Report.Fail(err)
		return false
	}
}
