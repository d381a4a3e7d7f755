package oracle

import "fmt"

func equal() Validator {
	return newValidator("equal",
		"When all has settled, the informer's store holds the versions that the server has, and nothing else.",
		checkEqual)
}

func checkEqual(j *judge) {
	j.follow(func(m *memory, n int, what any) {
		settled, ok := what.(rest)
		if !ok || settled.stored == nil {
			return
		}
		for i := range j.keys {
			reason, from := m.unequal(i, n, settled.stored)
			j.blame(j.keys[i].key, reason, from, n)
		}
	})
}

// unequal is what is wrong with what is stored of a key, and since which record.
func (m *memory) unequal(key, n int, stored map[string]string) (reason string, from int) {
	line := &m.h.keys[key]
	version, has := stored[line.key]
	at, ok := m.h.at(line, n)
	if m.excuses(key, n) {
		return "", 0
	}
	if !ok {
		if has {
			return fmt.Sprintf("stored in version %s, and was never there", version), 0
		}
		return "", 0
	}
	switch s := line.states[at]; {
	case !m.includes(line.key, s.uid) && has:
		return fmt.Sprintf("stored in version %s, and not in the shard", version), line.since(at)
	case !m.includes(line.key, s.uid):
		return "", 0
	case s.gone && has:
		return fmt.Sprintf("stored in version %s, and is gone since %s", version, m.h.when(s)), line.since(at)
	case !s.gone && !has:
		return fmt.Sprintf("not stored, and there in version %s", s.version), line.since(at)
	case !s.gone && version != s.version:
		return fmt.Sprintf("stored in version %s, and there in version %s", version, s.version), line.since(at)
	}
	return "", 0
}

// since is the record of the state before one.
func (l *timeline) since(at int) int { return l.states[max(0, at-1)].record }

// excuses reports whether the informer does not have to tell of the newest state of a
// key.
func (m *memory) excuses(key, n int) bool {
	line, excused := &m.h.keys[key], m.keys[key].excused
	for at := excused; at < m.h.written(line, n); at++ {
		if m.includes(line.key, line.states[at].uid) { // the others of that name are not in the shard
			return false
		}
	}
	return excused > 0
}
