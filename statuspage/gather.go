package statuspage

import (
	"hash/maphash"
	"strings"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/registry"
)

// target is an informer of the page.
type target struct {
	name name
	*registry.Informer
}

// targets returns all informers of the page, in the order of its registry. It asks none of them how
// it is.
func (p *Page) targets() []target {
	informers := p.Informers()
	all := make([]target, len(informers))
	// A hash of labels takes a tenth of their memory.
	seed, numbers := maphash.MakeSeed(), make(map[uint64]int32, len(informers))
	for i := range informers {
		labels := masked(informers[i].Labels())
		hash := maphash.Comparable(seed, labels)
		numbers[hash]++
		all[i] = target{name{labels, int(numbers[hash])}, &informers[i]}
	}
	return all
}

// find returns the target of a name.
func (p *Page) find(n name) (target, bool) {
	number := 0
	for _, i := range p.Informers() {
		if masked(i.Labels()) != n.labels {
			continue
		}
		if number++; number == n.number {
			return target{n, &i}, true
		}
	}
	return target{}, false
}

// labelled returns the informers that have labels, or whose series have them in metrics: those of a
// factory that are restricted to some of the objects.
func (p *Page) labelled(l Labels) (all []target) {
	l = masked(l)
	for _, t := range p.targets() {
		its := t.name.labels
		its.Informer = l.Informer
		if its == l && isCalled(t.name.labels, l.Informer) {
			all = append(all, t)
		}
	}
	return all
}

// isCalled reports whether an informer has a label, apart from what restricts it.
func isCalled(l Labels, informer string) bool {
	return l.Informer == informer || strings.HasPrefix(l.Informer, informer+" (")
}

// row is what a screen of many informers shows of one, and is filtered and sorted by.
type row struct {
	target
	condition   informer.Condition
	rank        int
	partial     bool
	phase       informer.Phase
	synced      bool
	objects     int
	queued      int
	stored      int64
	queuedBytes int64
	currentAsOf time.Time
	oldest      time.Time
	heard       time.Time
}

// rows asks all informers how they are. It holds no lock meanwhile.
func (p *Page) rows() []row {
	targets := p.targets()
	rows := make([]row, len(targets))
	for i := range targets {
		rows[i].fill(&targets[i])
	}
	return rows
}

func (r *row) fill(t *target) {
	s := t.Status()
	*r = row{
		target: *t, condition: s.Condition, rank: rankOf(s.Condition.Reason), partial: t.Foreign, phase: s.Phase, synced: s.Synced,
		objects: s.Objects, stored: s.Counts.StoredBytes, queued: s.Queued, queuedBytes: s.QueuedBytes, currentAsOf: s.CurrentAsOf, oldest: s.OldestQueued, heard: s.LastContact,
	}
}
