package follower

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/engine/server"
)

// confirmAfter is how long a server may take to refuse, within a watch that it has
// opened, the version that it is to begin from. One that has said meanwhile that it has the
// version may have forgotten the changes since: the refusal has come by then, and confirmSaid
// is the time to read it.
const confirmAfter, confirmSaid = 2 * time.Second, 50 * time.Millisecond

// unprovenPatience is how long a watch may stay silent when the server did not say that it has
// the version. Bookmarks come each minute.
const unprovenPatience = 75 * time.Second

// confirm notes that the server has accepted the version that the run resumes from.
func (r *resuming) confirm() {
	if r != nil && r.confirmed != nil {
		r.confirmed()
		r.confirmed = nil
	}
}

// confirmLater takes the version for accepted when the watch has lasted for a time. A server that
// refuses the version says so at once, in an event.
func (w *watching) confirmLater(patience time.Duration) {
	if w.resuming == nil || w.resuming.confirmed == nil {
		return
	}
	w.unconfirm = later(patience, w.resuming.confirmed)
}

// later calls f after a time. Stop, which is to be called once, prevents that, or waits until f has
// returned.
func later(after time.Duration, f func()) (stop func()) {
	done := make(chan struct{})
	timer := time.AfterFunc(after, func() {
		defer close(done)
		f()
	})
	return func() {
		if !timer.Stop() {
			<-done
		}
	}
}

// standing is what a server has of the version that a watch goes on from.
type standing int

const (
	// unproven: the server did not say.
	unproven standing = iota
	hasVersion
	hasNot
	// hasOther: it has the version, and other objects in it. So the list that follows is not older.
	hasOther
)

// verify asks whether the server still is the one, in the state, that the watch goes on from.
// It is asked once the watch is open, which ends if the server is restored or replaced later.
// Where it does not answer, the watch has to prove itself.
func (w *watching) verify(ctx context.Context) (standing, error) {
	w.at.Unsure = false
	a, err := w.ask(ctx)
	switch {
	case ctx.Err() != nil:
		return unproven, nil
	case a.Identity == server.Another || a.Identity == server.Doubtful || listwatch.Classify(err) == listwatch.TooLarge:
		return hasNot, err
	case err != nil:
		w.at.Unsure = errors.Is(err, errPaced)
		w.failUnlessPaced(err)
		w.feed.Expect(min(unprovenPatience, w.Source.Patience.Watch(unprovenPatience)))
		return unproven, nil
	case a.HasVersion:
		return w.compare(ctx)
	}
	return unproven, nil
}

// failUnlessPaced reports why a question has failed, unless it was not asked.
func (w *watching) failUnlessPaced(err error) {
	if !errors.Is(err, errPaced) {
		w.Report.Fail(err)
	}
}

// reportReplacement asks whether the version has expired because the server is of another cluster,
// and reports it.
func (w *watching) reportReplacement(ctx context.Context) {
	if _, err := w.ask(ctx); errors.Is(err, server.ErrClusterReplaced) {
		w.Report.CountRestore()
		w.Report.Fail(err)
	}
}

// ask asks the server which cluster it is of, and whether it has the version that the watch
// begins from. That it is of another one is an error.
func (w *watching) ask(ctx context.Context) (server.Answer, error) {
	return w.Follower.ask(ctx, server.Inquiry{
		ResourceVersion: w.at.ResourceVersion, Objects: w.objects, Over: w.Source.Connection(), Period: w.listed,
	})
}

// errPaced says that the server was asked too much lately. It is asked again later.
var errPaced = errors.New("the server was asked too much lately")

// ask asks the server an Inquiry about the known cluster, and notes what is learnt of that.
func (f *Follower) ask(ctx context.Context, q server.Inquiry) (server.Answer, error) {
	if !f.questions.MayAsk(time.Now()) {
		return server.Answer{}, errPaced
	}
	known := f.Cluster.UID()
	q.Cluster = known
	a, err := f.Server.Ask(ctx, q)
	f.questions = f.questions.Asked(time.Now(), a.Requests)
	switch {
	case known == "" || a.Cluster == known:
		f.Cluster.Learn(a.Cluster)
	case a.Cluster != "":
		f.Cluster.Replace(a.Cluster, f.Report.Gaps.Add)
		return a, fmt.Errorf("%w: the UID of its namespace kube-system is %q, not %q", server.ErrClusterReplaced, a.Cluster, known)
	}
	if a.Identity == server.Doubtful || a.Identity == server.Another {
		// What it is the list will show; until then, no known UID is its own.
		f.Cluster.Replace(a.Cluster, f.Report.Gaps.Add)
	}
	if err != nil {
		err = fmt.Errorf("whether the server was restored: %w", err)
	}
	return a, err
}
