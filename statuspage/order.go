package statuspage

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// orders are those that rows can be shown in. The first is that of an empty name: what is wrong
// comes first, and of that what has been so for longest.
var orders = map[string]func(a, b *row) int{
	"":        byTrouble,
	"cluster": func(a, b *row) int { return strings.Compare(a.name.labels.Cluster, b.name.labels.Cluster) },
	"resource": func(a, b *row) int {
		x, y := &a.name.labels, &b.name.labels
		return cmp.Or(strings.Compare(x.Resource, y.Resource), strings.Compare(x.Group, y.Group))
	},
	"informer": func(a, b *row) int { return strings.Compare(a.name.labels.Informer, b.name.labels.Informer) },
	// The most is first, and the oldest.
	"objects": func(a, b *row) int { return cmp.Compare(b.objects, a.objects) },
	"bytes":   func(a, b *row) int { return cmp.Compare(b.stored, a.stored) },
	"queued": func(a, b *row) int {
		return cmp.Or(cmp.Compare(b.queued, a.queued), cmp.Compare(b.queuedBytes, a.queuedBytes))
	},
	"age":   func(a, b *row) int { return oldestFirst(a.currentAsOf, b.currentAsOf) },
	"heard": func(a, b *row) int { return oldestFirst(a.heard, b.heard) },
	"since": func(a, b *row) int { return oldestFirst(a.condition.Since, b.condition.Since) },
}

func byTrouble(a, b *row) int {
	return cmp.Or(cmp.Compare(kinds[a.rank].level, kinds[b.rank].level), cmp.Compare(a.rank, b.rank), oldestFirst(a.condition.Since, b.condition.Since))
}

// oldestFirst compares times. One that is not known is the oldest.
func oldestFirst(a, b time.Time) int { return a.Compare(b) }

// first returns the first n rows that a query selects, in its order, and how many it selects.
func (q query) first(rows []row, n int) (first []*row, matching int) {
	compare := q.compare()
	// The best rows so far are sorted whenever there is no room for more, and all but n dropped. So
	// hardly any of the others is compared more than once, with the last of these.
	first = make([]*row, 0, min(len(rows), max(4*n, 1024)))
	var last *row
	shorten := func() {
		slices.SortFunc(first, compare)
		if len(first) > n {
			first = first[:n]
			last = first[n-1]
		}
	}
	for i := range rows {
		r := &rows[i]
		if !q.selects(r) {
			continue
		}
		matching++
		if last != nil && compare(r, last) > 0 {
			continue
		}
		if len(first) == cap(first) {
			shorten()
		}
		first = append(first, r)
	}
	shorten()
	return first, matching
}

// compare is the order of the query. It is a complete one, so that no row stands on two pages of
// rows, or on none.
func (q query) compare() func(a, b *row) int {
	name, reverse := strings.CutPrefix(q.Sort, "-")
	order := orders[name]
	return func(a, b *row) int {
		switch c := order(a, b); {
		case c == 0:
			return byName(a, b)
		case reverse:
			return -c
		default:
			return c
		}
	}
}

func byName(a, b *row) int {
	x, y := &a.name, &b.name
	if c := strings.Compare(x.labels.Cluster, y.labels.Cluster); c != 0 {
		return c
	}
	return cmp.Or(
		strings.Compare(x.labels.Group, y.labels.Group), strings.Compare(x.labels.Resource, y.labels.Resource),
		strings.Compare(x.labels.Version, y.labels.Version), strings.Compare(x.labels.Informer, y.labels.Informer), cmp.Compare(x.number, y.number),
	)
}
