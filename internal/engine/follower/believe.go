package follower

import (
	"context"
	"fmt"
	"time"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/engine/server"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// begun is what the generation under way began from.
func (f *Follower) begun() listwatch.Start {
	switch s := f.state.(type) {
	case listwatch.Start:
		return s
	case listwatch.Listing:
		return s.Start
	}
	return listwatch.Start{}
}

// believe returns the outcome of a request, and the error to report. A complete set that is odd deletes
// nothing, and ends no shared watches, unless the server has gone back. A server that shows odd lists for minutes, with objects, is
// believed if nothing proves that it has the known version.
func (f *Follower) believe(ctx context.Context, o listwatch.Outcome, err error) (listwatch.Outcome, error) {
	if err != nil || o.Kind != listwatch.PageRead || o.Continue != "" {
		return o, err
	}
	start, lists := f.begun(), !f.Policy.Streams(f.state)
	known := rv.AtLeast(start.Known, f.trusted)
	odd := listwatch.OddityOf(known, o.ResourceVersion)
	objects := f.pass.objects || o.Shown
	versions := o.ResourceVersion != "" || known != "" // else there is nothing to compare
	insists := lists && versions && f.Source.HeardList(odd, objects)
	if odd == listwatch.Plain || odd == listwatch.Backward && start.Gone {
		f.trusted = o.ResourceVersion
		return o, nil
	}
	deletes := f.pass.generation.Deletes()
	if !deletes && rv.Compare(o.ResourceVersion, f.pass.shown) != rv.Older { // shared watches are not further
		f.trusted = known
		return o, nil
	}
	has, why := f.askVersion(ctx, known)
	switch {
	case ctx.Err() != nil:
		return listwatch.Outcome{Kind: listwatch.Failed}, ctx.Err()
	case has == hasNot:
		f.Report.CountRestore()
		f.provenGone()
	case !deletes && objects: // what follows it is told by a watch from there
		f.trusted = known
		return o, nil
	case has != hasVersion && insists:
		f.provenGone()
	default:
		f.closeOpened()
		return listwatch.Outcome{Kind: listwatch.Unproven, Shown: objects, At: time.Now()}, notBelieved(odd, o.ResourceVersion, known, why)
	}
	f.trusted = o.ResourceVersion
	return o, nil
}

// provenGone notes that the server does not have the version that the generation under way must not
// be older than, or that it insists.
func (f *Follower) provenGone() {
	switch s := f.state.(type) {
	case listwatch.Start:
		s.Gone = true
		f.state = s
	case listwatch.Listing:
		s.Start.Gone = true
		f.state = s
	}
}

// askVersion asks whether the server has a resource version. It has the version if the resource says
// that itself; what the namespace kube-system says is not proof, because the resource may have versions
// of its own. The error says what the server has said, or why it did not answer.
func (f *Follower) askVersion(ctx context.Context, known string) (standing, error) {
	a, err := f.ask(ctx, server.Inquiry{ResourceVersion: known, VersionOnly: true})
	switch {
	case a.Identity == server.Another, listwatch.Classify(err) == listwatch.TooLarge:
		return hasNot, err
	case err != nil:
		return unproven, err
	case a.Itself:
		return hasVersion, fmt.Errorf("the server still has version %s", known)
	case a.HasVersion:
		return unproven, fmt.Errorf("the namespace kube-system is of version %s or newer", known)
	}
	return unproven, fmt.Errorf("the server does not say whether it still has version %s", known)
}

// notBelieved says why a complete set was not believed.
func notBelieved(odd listwatch.Oddity, listed, known string, why error) error {
	switch odd {
	case listwatch.Unversioned:
		return fmt.Errorf("%w: it has no resource version, and %s is known, so it deletes nothing: %w", api.ErrNotList, known, why)
	case listwatch.Unordered:
		return fmt.Errorf("the list has version %q, which has no order, and %s is known, so it deletes nothing: %w", listed, known, why)
	}
	return fmt.Errorf("the list has version %s, which is older than %s, so it deletes nothing: %w", listed, known, why)
}
