package follower

import (
	"context"
	"strings"

	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/engine/sink"
	"github.com/rvinformer/informer/internal/leaf/moment"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// pass is what is true only while one generation is read. The zero value is that between two.
type pass struct {
	// generation is nil until the first request.
	generation sink.Generation
	// partial tells that the generation has an object whose key is not known.
	partial bool
	// objects tells that it has shown some.
	objects bool
	// shown is the resource version that the shared watches had come to when the generation began.
	shown string
	// asked is when the first request of the generation was sent, zero if what it shows may be
	// older than that.
	asked moment.Moment
	// period is when it began: see server.Resource.Period.
	period uint64
	// address is where the server was when it began.
	address string
}

// beginGeneration begins a generation, unless one is under way.
func (f *Follower) beginGeneration(ctx context.Context) (err error) {
	if f.pass.generation != nil {
		return nil
	}
	if f.pass.generation, err = f.Sink.Begin(ctx); err != nil {
		return err
	}
	f.pass.period, f.pass.address, f.listed = f.Source.Period(), f.Server.Address(), 0
	f.Report.BeginGeneration()
	f.Report.CountList(f.why)
	f.Report.Gaps.BeginList()
	return nil
}

// show hands an object on to the generation, or what is wrong with it.
func (f *Follower) show(ctx context.Context, it object.Item, unreadable error) {
	f.Report.CountListed(1)
	f.pass.objects = true
	if unreadable != nil {
		f.Report.Skip(it.Unreadable(unreadable))
		f.pass.keep(it.Key)
		f.doubles.unread(it.Key)
		return
	}
	if kept, out := f.doubles.leavesOut(&it); out {
		f.leaveOut(it, kept, false)
		return
	}
	f.Source.Turn.Busy()
	err := f.pass.generation.Show(ctx, it)
	f.Source.Turn.Idle()
	if err != nil && !f.double(it, err) && f.refused(ctx, err) {
		f.pass.keep(it.Key)
	}
}

// keep notes that the generation has an object that could not be read. Its key is empty where it is
// not known.
func (p *pass) keep(key string) {
	if key == "" {
		p.partial = true
	} else {
		p.generation.Keep(strings.Clone(key))
	}
}

// complete ends the generation, which was read to its end.
func (f *Follower) complete(ctx context.Context, resourceVersion string) error {
	f.endDoubles(ctx, &f.pass)
	ended := f.pass
	f.pass = pass{}
	f.Source.Rest()
	// A caller that waits for the end may ask for the version then.
	before := f.Report.LastResourceVersion()
	f.Report.Reach(resourceVersion)
	f.Report.ListRead()
	if err := ended.generation.End(ctx, resourceVersion, !ended.partial); err != nil {
		f.Report.Reach(before)
		return err
	}
	if f.Source.Period() == ended.period {
		f.listed = ended.period
	}
	f.resuming, f.Source.Narrow = nil, false
	if f.begun().Gone {
		f.Source.CompareToShown(resourceVersion, ended.shown)
	}
	f.Report.EndGeneration()
	f.Report.Succeed()
	current := ended.asked
	if ended.partial {
		current = 0
	}
	return f.Sink.Observed(sink.Progress{Reached: rv.At(resourceVersion), Current: current})
}

// abandon gives the generation up, if one is under way.
func (f *Follower) abandon() {
	f.Source.Rest()
	if f.pass.generation != nil {
		f.pass.generation.Abandon()
		f.doubles.abandon()
	}
	f.pass = pass{}
}
