package oracle

import (
	"fmt"
	"strings"
	"time"
)

// Requests is how many requests an informer may send in any minute, whatever the server does: two
// a second, and five more, for the UID of the cluster and for what is asked again at once.
//
// A server that answers each list with "Retry-After: 1" is asked once a second, and once more
// whether it responds, or without a shardSelector that it refuses without naming it. One that ends
// each watch when it has lasted for a second gets a watch, and two questions what state it is in,
// each two seconds. Of informers whose backoff grows, the others are asked less often than that.
const Requests = 2*60 + 5

func paced() Validator {
	return newValidator("paced", fmt.Sprintf("In no minute of a run, an informer sends more than %d requests, whatever the server does. "+
		"The further pages of a list do not count, each once, for they bring objects.", Requests),
		checkPaced)
}

func checkPaced(j *judge) {
	var minute []int // the requests of the last minute of the run
	most := 0
	for n, r := range j.records {
		switch w := r.what.(type) {
		case Run:
			minute, most = minute[:0], Requests*max(1, w.Followers)
		case request:
			for len(minute) > 0 && r.at-j.records[minute[0]].at >= time.Minute {
				minute = minute[1:]
			}
			if minute = append(minute, n); most > 0 && len(minute) > most {
				j.found = append(j.found, j.hammering(minute, most))
				minute = nil
			}
		}
	}
}

// hammering is a violation that requests show.
func (h *History) hammering(requests []int, most int) *Violation {
	first, last := requests[0], requests[len(requests)-1]
	over := h.records[last].at - h.records[first].at
	v := h.violation("paced", "", fmt.Sprintf("%d requests within %v, and %d may come in a minute", len(requests), over, most), first, last)
	lines := v.History[:len(v.History)-1]
	for _, n := range requests {
		lines = append(lines, h.records[n].line(""))
	}
	v.History = shorten(lines)
	return v
}

func (r request) text() string { return "asked: " + strings.TrimSpace(r.what) }
