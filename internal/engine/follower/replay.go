package follower

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/engine/sink"
	"github.com/rvinformer/informer/internal/engine/source"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// Some servers take a resource version to go on from, and begin the watch with an ADDED of each object.
// Such a watch does not tell what was deleted before it. A kube-apiserver never sends what is not newer
// than the version that it was asked to go on from. Two such events, of objects that are known in just
// these states, prove what the server does. Where versions have no order, the states alone prove it. That
// is remembered for the resource, until an hour after the newest proof, and a list follows each watch. Where the watch was to go on from an earlier one, a list follows at once.

// enoughReplays is how many events prove that the server does not go on from a version.
const enoughReplays = 2

// errNotResumed says what the server does.
var errNotResumed = errors.New("the server does not go on from a resource version, so that a list follows each watch")

// noteReplay notes an event that the sink has judged. After the watch has told of a change, a repeated event
// proves nothing: a broken proxy may have repeated it.
func (w *watching) noteReplay(c *source.Change, verdict sink.Verdict) {
	if c.Event != watch.Added {
		w.changed = true
	}
	from := w.state.(listwatch.Watching).Reached().Resume()
	if w.changed || c.Joined || !verdict.IsKnown() || !rv.IsPlace(from) || rv.Compare(c.Item.Version.ResourceVersion, from) == rv.Newer {
		return
	}
	w.replayed = true
	if w.replays++; w.replays == enoughReplays {
		w.proveReplays(fmt.Errorf("%w: the watch from version %s told again of %s in version %s",
			errNotResumed, from, c.Item.Key, c.Item.Version.ResourceVersion))
	}
}

// proveReplays notes that the server does not go on from a version. A watch that directly follows a list
// has left out hardly anything.
func (w *watching) proveReplays(why error) {
	isNew := w.Source.ResumeFailure() == nil
	w.Source.ResumeFailed(why)
	if isNew {
		w.Source.GiveUpShared()
		w.Report.FallBack(why)
		w.Report.Logger().Info("The server does not go on from a resource version: a list follows each watch", "informer", w.Name, "reason", why.Error())
	}
	if w.why != report.AfterList {
		w.Relist()
	}
}

// noteResume notes, at the end of a watch, whether the next one may go on from it.
func (w *watching) noteResume() {
	if !w.replayed && w.moved || w.replays >= enoughReplays {
		w.replays = 0
	}
	was := w.Policy.NoResume
	w.Policy.NoResume = w.Source.ResumeFailure() != nil
	if was && !w.Policy.NoResume { // it is time to see whether it does now
		w.noteFallback(w.noWatchList())
	}
}

// listsInstead reports whether a list is read in place of the watch of the state, because that would go
// on from an earlier watch, and the server does not do that. It decides what is next then.
func (f *Follower) listsInstead() bool {
	if f.why == report.AfterList || f.Source.ResumeFailure() == nil {
		return false
	}
	f.Policy.NoResume = true
	f.next = f.Policy.Next(f.state, listwatch.Outcome{Kind: listwatch.WatchEnded})
	f.why = report.Lost
	return true
}

// noteFallback notes why sets are read in another way, or more often, than they would be.
func (f *Follower) noteFallback(lists error) {
	if resume := f.Source.ResumeFailure(); resume != nil {
		lists = errors.Join(lists, resume)
	}
	f.Report.FallBack(lists)
}
