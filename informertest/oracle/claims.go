package oracle

import (
	"container/heap"
	"fmt"
)

func bookmarkable() Validator {
	return newValidator("bookmarkable", "Up to the version that the informer's status claims, which bookmarks move on as well, everything is acknowledged: "+
		"the newest state of each object, or its deletion if it was ever told, unless it was passed over.",
		func(j *judge) {
			if j.options.Unreadable || j.options.Overtaken {
				return
			}
			checkClaims(j, func(what any) (version string, ok bool) {
				c, ok := what.(claim)
				return c.version, ok && c.source != FromCheckpoint
			}, func(*knowledge) bool { return true })
		})
}

// checkClaims checks the claims among the records. Excused tells whether they leave out what was
// passed over of a key.
func checkClaims(j *judge, claimed func(what any) (version string, ok bool), excused func(*knowledge) bool) {
	d := newDebts(j.History)
	for n, r := range j.records {
		d.step(n)
		version, ok := claimed(r.what)
		if !ok || version == "" || !d.knows(r.what) {
			continue
		}
		to, ok := d.judged(version, n)
		if !ok {
			continue
		}
		var excuses []debt
		for key := range d.due(to) {
			line, owed := &j.keys[key], d.owed[key]
			if d.cameAndWent(key, to) {
				excuses = append(excuses, debt{key, owed, line.states[owed].record})
				continue
			}
			if run, ok := r.what.(Run); ok && run.Dead[line.key] { // the handler may have taken it in since
				continue
			}
			if passed := d.keys[key].passed; owed < passed && excused(&d.keys[key]) {
				excuses = append(excuses, debt{key, owed, line.states[owed].record})
				for passed < j.written(line, n+1) && !d.includes(line.key, line.states[passed].uid) {
					passed++ // it is of an object that is not in the shard
				}
				if passed >= j.written(line, n+1) || line.states[passed].record > to {
					continue
				}
				owed = passed
			}
			reason := fmt.Sprintf("all up to version %s is acknowledged, it is said, and %s is not", version, line.states[owed].brief())
			j.blame(line.key, reason, d.told(key), n)
		}
		for _, e := range excuses { // it is owed all the same
			heap.Push(&d.queue, e)
		}
	}
}

// judged returns the record up to which a claim says that all is acknowledged. It is false for a
// version that this epoch does not have yet, or an earlier one had too: an informer that has not
// noticed the restore means that. Without a list, the restore cannot be noticed.
func (m *memory) judged(version string, n int) (to int, ok bool) {
	if m.unnoticed {
		return 0, false
	}
	for i := range m.epoch {
		e := &m.h.epochs[i]
		if len(e.writes) == 0 {
			continue
		}
		if _, had := e.versions[version]; had {
			return 0, false
		}
		newest := m.h.versionOf(e.writes[len(e.writes)-1])
		if order, err := m.h.options.Compare(newest, version); err == nil && order >= 0 {
			return 0, false
		}
	}
	to, ok = m.h.position(m.epoch, version)
	_, own := m.h.epochs[m.epoch].versions[version]
	return to, ok && !(own && m.h.earliest(to) > n)
}

// debts are what is not acknowledged of each key while the records go by.
type debts struct {
	*memory
	// owed is the first state of a key that is not acknowledged and has to be; never: none.
	owed  []int
	queue debtQueue
}

type debt struct{ key, place, record int }

func newDebts(h *History) *debts {
	d := &debts{memory: newMemory(h), owed: make([]int, len(h.keys))}
	for i := range d.owed {
		d.owed[i] = never
	}
	return d
}

func (d *debts) step(n int) {
	var batch []telling
	if a, ok := d.h.records[n].what.(answer); ok {
		if first, ok := d.under[a.number]; ok {
			batch = d.h.batch(first)
		}
	}
	d.memory.step(n)
	switch w := d.h.records[n].what.(type) {
	case Write:
		if w.Type != Other {
			d.update(d.h.numbers[w.Key], n)
		}
	case restoration, Run, listed:
		for key := range d.owed {
			d.update(key, n)
		}
	case answer:
		for i := range batch {
			d.update(batch[i].key, n)
		}
	}
}

// update finds what is owed of a key after a record.
func (d *debts) update(key, n int) {
	k, line := &d.keys[key], &d.h.keys[key]
	owed := never
	switch last := d.h.written(line, n+1) - 1; {
	case last <= k.newest || k.present && k.newest == never || d.wentBack(k, line.states[last]):
	case k.present && !k.lost:
		owed = k.newest + 1
	case !d.includes(line.key, line.states[last].uid):
	case !line.states[last].gone: // an object that came and went need not be told
		owed = max(line.states[last].start, k.newest+1)
	}
	if owed != d.owed[key] && owed != never {
		heap.Push(&d.queue, debt{key, owed, line.states[owed].record})
	}
	d.owed[key] = owed
}

// due yields the keys that are owed something that was written until a record. It
// does so once for each debt.
func (d *debts) due(to int) func(yield func(key int) bool) {
	return func(yield func(key int) bool) {
		for len(d.queue) > 0 && d.queue[0].record <= to {
			first := heap.Pop(&d.queue).(debt)
			if d.owed[first.key] == first.place && !yield(first.key) {
				return
			}
		}
	}
}

// cameAndWent reports whether an object that the handler does not have is gone at a record. With
// Options.Late, its deletion may be recorded after a claim that includes it.
func (d *debts) cameAndWent(key, by int) bool {
	line := &d.h.keys[key]
	return !d.keys[key].present && line.states[d.h.written(line, by+1)-1].gone
}

// knows reports whether it is known what the handler had acknowledged where a run goes
// on from a version.
func (d *debts) knows(what any) bool {
	r, started := what.(Run)
	return !started || d.run > 1 || r.Known != nil
}

// brief is a state in a few words.
func (s state) brief() string {
	if s.gone && s.version == "" {
		return "that a restore has taken it away"
	}
	if s.gone {
		return fmt.Sprintf("the deletion in version %s", s.version)
	}
	return "version " + s.version
}

type debtQueue []debt

func (q debtQueue) Len() int           { return len(q) }
func (q debtQueue) Less(i, j int) bool { return q[i].record < q[j].record }
func (q debtQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *debtQueue) Push(x any)        { *q = append(*q, x.(debt)) }

func (q *debtQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
