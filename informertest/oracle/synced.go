package oracle

import "fmt"

func syncedDone() Validator {
	return newValidator("synced", "When the informer is synced, the handler has acknowledged what the first list brought: "+
		"everything that was there when the run began and has not changed since, and the deletion of everything that was gone.",
		checkSynced)
}

func checkSynced(j *judge) {
	j.follow(func(m *memory, n int, what any) {
		if _, ok := what.(synced); !ok || m.seen {
			return
		}
		if m.run == 0 {
			j.blame("", "before any run began", 0, n)
		}
		for i := range m.keys {
			if m.running {
				j.blame(j.keys[i].key, m.unsyncedKey(i, n), min(m.began, m.told(i)), n)
			}
		}
	})
}

// unsyncedKey is what is missing of a key where the informer says that it is synced.
func (m *memory) unsyncedKey(key, n int) string {
	k, line := &m.keys[key], &m.h.keys[key]
	at, ok := m.h.at(line, m.began)
	switch {
	case k.initial:
		return "synced, and a call with this object of the first list has not returned, or has failed"
	case m.h.options.Unreadable:
		return ""
	case !ok || !m.includes(line.key, line.states[at].uid) || !m.beganWithList() || !m.unchanged(line, at, n) || m.excuses(key, n):
		return ""
	case k.released == m.run: // a list that tells of it again may come after the first
		return ""
	case k.is(line.states[at]) || m.wentBack(k, line.states[at]):
		return ""
	case line.states[at].gone && k.lost:
		return ""
	case line.states[at].gone:
		return fmt.Sprintf("synced, and the deletion of this object, gone before the run began, is not acknowledged: known is version %s", k.version)
	}
	return fmt.Sprintf("synced, and this object, there in version %s before the run began, is not acknowledged", line.states[at].version)
}
