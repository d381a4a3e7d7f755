package follower

import (
	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/engine/listwatch"
)

// whyNext is the reason for what follows the watch.
func (w *watching) whyNext() report.Reason {
	_, list := w.next.State.(listwatch.Start)
	switch {
	case !list && w.ownEnd():
		return report.Quiet
	case !list && w.outcome.Kind == listwatch.WatchEnded:
		return report.Ended
	case !list:
		return report.Failed
	case w.at.Lost, w.Policy.NoResume:
		return report.Lost
	}
	return whyAgain(*w.outcome)
}

// whyAgain is the reason for a list that follows an outcome.
func whyAgain(o listwatch.Outcome) report.Reason {
	switch o.Kind {
	case listwatch.Expired:
		return report.Expired
	case listwatch.TooLarge:
		return report.Restored
	}
	return report.Failed
}
