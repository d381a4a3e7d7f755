package follower

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/engine/source"
	"github.com/rvinformer/informer/internal/leaf/moment"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// list does one request of a generation and decides what is next.
func (f *Follower) list(ctx context.Context) error {
	if at, ok := f.state.(listwatch.Listing); ok && f.Server.Address() != f.pass.address {
		f.abandon() // the other pages may be those of another cluster
		f.state = at.Start
	}
	if start, ok := f.state.(listwatch.Start); ok {
		f.state = f.prepare(start)
	}
	f.Report.Enter(api.PhaseListing)
	streams := f.Policy.Streams(f.state)
	outcome, err := f.read(ctx)
	outcome, err = f.believe(ctx, outcome, err)
	f.next = f.Policy.Next(f.state, outcome)
	if streams {
		f.refusal = err
	}
	f.why = report.AfterList
	if _, again := f.next.State.(listwatch.Start); again {
		f.why = whyAgain(outcome)
	}
	if f.next.Fallback {
		f.rememberFallback()
	}
	if start, _ := f.next.State.(listwatch.Start); streams && start.Lists && outcome.Refused && f.next.Pause == listwatch.NoPause {
		err = nil // the list will tell whether this is a failure
	}
	switch f.next.Effect {
	case listwatch.AbandonGeneration:
		f.abandon()
	case listwatch.CompleteGeneration:
		if err := f.complete(ctx, outcome.ResourceVersion); err != nil {
			f.closeOpened()
			f.why = report.Failed
			again := listwatch.Start{Known: f.Report.LastResourceVersion(), Gone: f.begun().Gone}
			f.next = listwatch.Step{State: again, Pause: listwatch.ListPause}
			return err
		}
	}
	return err
}

// prepare returns the state that a generation begins with. It must not be older than what is known,
// or was shown by a shared watch.
func (f *Follower) prepare(start listwatch.Start) listwatch.Start {
	f.chooseMode(start)
	if f.resuming != nil {
		f.resuming.confirmed = nil
		start.Known = rv.AtLeast(start.Known, f.resuming.floor)
	}
	f.pass.shown = f.Source.Shown()
	start.Known = rv.AtLeast(start.Known, f.pass.shown)
	return start
}

// read does one request: a page, or a watch-list. It waits until the budget has room for it.
func (f *Follower) read(ctx context.Context) (outcome listwatch.Outcome, err error) {
	if err = f.beginGeneration(ctx); err != nil {
		return listwatch.Outcome{Kind: listwatch.Failed}, err
	}
	start, begins := f.state.(listwatch.Start)
	streams, timeout := f.Policy.Streams(f.state), f.Source.WatchTimeout()
	var opts metav1.ListOptions
	if streams {
		opts = f.Policy.WatchListOptions(start, timeout)
	} else {
		opts = f.Policy.ListOptions(f.state)
	}
	newest := begins && f.Policy.Newest(start)
	f.asks(newest) // others may have asked for a joint list before Join returns
	joined, err := f.Source.Join(ctx, opts)
	if err == nil && !joined {
		err = f.Source.BeginTurn(ctx)
		f.asks(newest)
	}
	if err != nil {
		return listwatch.Outcome{Kind: listwatch.Failed}, err
	}
	defer f.Source.EndTurn()
	if streams {
		outcome, err = f.watchList(ctx, start, opts, timeout)
	} else {
		outcome, err = f.page(ctx, opts)
	}
	if errors.Is(err, source.ErrUnread) {
		f.Source.Narrow, err = true, nil
	}
	return outcome, err
}

// asks notes that the server is asked for the newest state from now on, if so.
func (f *Follower) asks(newest bool) {
	if newest {
		f.pass.asked = moment.Now()
	}
}

// page reads a page into the generation.
func (f *Follower) page(ctx context.Context, opts metav1.ListOptions) (listwatch.Outcome, error) {
	answered := false
	page, err := f.Source.Page(ctx, opts, func(it object.Item, unreadable error) error {
		if !answered {
			answered = true
			f.Report.Succeed() // the rest may wait for the handler for long
		}
		f.show(ctx, it, unreadable)
		return ctx.Err()
	})
	shown := page.Objects > 0
	if err != nil {
		return listwatch.Outcome{
			Kind: listwatch.Classify(err), Shown: shown, Refused: !shown, RetryAfter: listwatch.RetryAfter(err), At: time.Now(),
		}, err
	}
	if at, ok := f.state.(listwatch.Listing); ok && page.Continue != "" && at.Circular(page.Continue, page.First) {
		return listwatch.Outcome{Kind: listwatch.Circular, Shown: shown}, listwatch.ErrCircular
	}
	f.Policy.CachePaged = f.Source.CachePaged()
	return listwatch.Outcome{Kind: listwatch.PageRead, ResourceVersion: page.ResourceVersion, Continue: page.Continue, First: page.First, Shown: shown}, nil
}
