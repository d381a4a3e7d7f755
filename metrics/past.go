package metrics

import (
	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/edge/report"
)

// past is what is remembered of informers with equal labels, so that their sums do not go down when
// one of them ends.
//
// The sums miss counts between the last scrape and the end of an informer, except those of its
// histograms.
type past struct {
	// ended is the sum of those that are gone, and living has what each of the others had counted
	// at the last scrape, by its Done: that keeps no informer in memory.
	ended  report.Totals
	living map[<-chan struct{}]report.Totals
}

// settle adds to all readings what informers with the same labels have counted that are gone, and
// returns what the next scrape has to know. Labels that no informer has any more are forgotten:
// their series vanish, and begin at zero when they come again. Nothing is remembered for an
// informer that is alone with its labels.
func settle(before map[Labels]*past, all []*reading) map[Labels]*past {
	after := map[Labels]*past{}
	for _, r := range all {
		p := before[r.Labels]
		switch {
		case p != nil:
			now := r.each()
			for id, t := range p.living {
				if _, lives := now[id]; !lives {
					p.ended = p.ended.Plus(t)
				}
			}
			p.living = now
		case r.parts != nil:
			p = &past{living: r.parts}
		default:
			continue
		}
		after[r.Labels] = p
		(*report.Snapshot)(&r.status).Add(p.ended)
	}
	return after
}

// each returns what each informer of the reading has counted.
func (r *reading) each() map[<-chan struct{}]report.Totals {
	if r.parts != nil {
		return r.parts
	}
	return map[<-chan struct{}]report.Totals{r.done: totals(&r.status)}
}

func totals(s *informer.Status) report.Totals { return (*report.Snapshot)(s).Totals() }
