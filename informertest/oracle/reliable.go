package oracle

import "fmt"

func reliable() Validator {
	return newValidator("reliable",
		"When all has settled, the newest state of every object was acknowledged, and the deletion of all that is gone and was ever told.",
		checkReliable)
}

func checkReliable(j *judge) {
	j.follow(func(m *memory, n int, what any) {
		if _, ok := what.(rest); ok {
			for i := range j.keys {
				j.blame(j.keys[i].key, m.missing(i, n), m.told(i), n)
			}
		}
	})
}

// told is the record of the last acknowledgement of a key, or of the write behind it
// if that is known.
func (m *memory) told(key int) int {
	k, from := &m.keys[key], 0
	if k.record != never {
		from = k.record
	}
	if k.newest != never {
		from = min(from, m.h.keys[key].states[k.newest].record)
	}
	return from
}

// missing is what the handler should know of a key, and does not.
func (m *memory) missing(key, n int) string {
	k, line := &m.keys[key], &m.h.keys[key]
	at, ok := m.h.at(line, n)
	switch {
	case m.excuses(key, n):
		return ""
	case !ok || line.states[at].gone || !m.includes(line.key, line.states[at].uid):
		if !k.present || k.lost {
			return ""
		}
		if !ok {
			return fmt.Sprintf("known in version %s, and was never there: its deletion was not acknowledged", k.version)
		}
		return fmt.Sprintf("acknowledged in version %s, and gone since %s: its deletion was not acknowledged", k.version, m.h.when(line.states[at]))
	case k.is(line.states[at]) || m.wentBack(k, line.states[at]):
		return ""
	case !k.present:
		return fmt.Sprintf("not acknowledged, and there in version %s since %s", line.states[at].version, m.h.when(line.states[at]))
	}
	return fmt.Sprintf("acknowledged only in version %s, UID %s, and there in version %s, UID %s, since %s",
		k.version, k.uid, line.states[at].version, line.states[at].uid, m.h.when(line.states[at]))
}

// wentBack reports whether a crash has made the informer forget what the handler knows,
// and a restore has brought back what the informer knows.
func (m *memory) wentBack(k *knowledge, s state) bool {
	return k.behind && s.epoch > 0 && k.record < m.h.epochs[s.epoch].begins
}

// when is when a state began.
func (h *History) when(s state) string { return fmt.Sprintf("%.3fs", h.records[s.record].at.Seconds()) }
