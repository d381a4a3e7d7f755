package shards

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Problem is something that this replica tries again until it succeeds.
type Problem struct {
	Doing string // for instance "watching leases"
	Err   error
	Since time.Time // of the first failure in a row
	Last  time.Time // of the last failure
}

func (p Problem) String() string { return fmt.Sprintf("%s: %v", p.Doing, p.Err) }

// forgetAfter is when a problem that did not come again counts as solved: what failed may have
// become needless.
const forgetAfter = time.Minute

// problems are what does not succeed at present.
type problems map[string]Problem

func (p *problems) note(doing string, err error, now time.Time) {
	maps.DeleteFunc(*p, func(_ string, old Problem) bool { return now.Sub(old.Last) > forgetAfter })
	if err == nil {
		delete(*p, doing)
		return
	}
	since := now
	if before, ok := (*p)[doing]; ok {
		since = before.Since
	}
	if *p == nil {
		*p = problems{}
	}
	(*p)[doing] = Problem{Doing: doing, Err: err, Since: since, Last: now}
}

func (p problems) list(now time.Time) []Problem {
	list := make([]Problem, 0, len(p))
	for _, doing := range slices.Sorted(maps.Keys(p)) {
		if now.Sub(p[doing].Last) <= forgetAfter {
			list = append(list, p[doing])
		}
	}
	return list
}
