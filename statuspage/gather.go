package statuspage

import (
	"hash/maphash"
	"slices"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
)

// target is an informer of the page.
type target struct {
	name name
	// source is nil for an informer of a factory that has no Status of its own. Then member has
	// one.
	source Source
	member *factory.Member
}

// targets returns all informers of the page, in the order of Add and AddFactory. It asks none of
// them how it is.
func (p *Page) targets() []target {
	p.mu.Lock()
	registrations := slices.Clone(p.registrations)
	p.mu.Unlock()

	all := make([]target, 0, len(registrations))
	for _, r := range registrations {
		if r.factory == nil {
			all = append(all, target{name: name{labels: r.labels}, source: r.source})
			continue
		}
		members := r.factory.Members()
		all = slices.Grow(all, len(members))
		for i := range members {
			m := &members[i]
			source, _ := m.Informer().(Source)
			all = append(all, target{name: name{labels: masked(m.Key().Labels())}, source: source, member: m})
		}
	}
	number(all, len(registrations) == 1)
	return all
}

// number tells apart the targets with the same labels. Those of one registration have different
// labels.
func number(all []target, different bool) {
	if different {
		for i := range all {
			all[i].name.number = 1
		}
		return
	}
	// A hash of labels takes a tenth of their memory.
	seed, numbers := maphash.MakeSeed(), make(map[uint64]int32, len(all))
	for i := range all {
		n := &all[i].name
		hash := maphash.Comparable(seed, n.labels)
		numbers[hash]++
		n.number = int(numbers[hash])
	}
}

// find returns the target of a name.
func (p *Page) find(n name) (target, bool) {
	all := p.targets()
	for i := range all {
		if all[i].name == n {
			return all[i], true
		}
	}
	return target{}, false
}

// status returns how the informer is. What a client-go informer of a factory does not tell is zero,
// and partial then.
func (t *target) status() (s informer.Status, partial bool) {
	if t.source != nil {
		return t.source.Status(), false
	}
	m := t.member.Status()
	return informer.Status{
		Phase: m.Phase, Synced: m.Synced, Listed: m.Synced, LastError: m.LastError, LastErrorTime: m.LastErrorTime, FailingSince: m.FailingSince,
		SkippedError: m.SkippedError, CheckpointError: m.CheckpointError, Condition: m.Condition,
	}, true
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
	s, partial := t.status()
	*r = row{
		target: *t, condition: s.Condition, rank: rankOf(s.Condition.Reason), partial: partial, phase: s.Phase, synced: s.Synced,
		objects: s.Objects, stored: s.Counts.StoredBytes, queued: s.Queued, queuedBytes: s.QueuedBytes, currentAsOf: s.CurrentAsOf, oldest: s.OldestQueued, heard: s.LastContact,
	}
}
