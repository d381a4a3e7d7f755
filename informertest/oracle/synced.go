package oracle

import "fmt"

func syncedDone() Validator {
	return Validator{
		Name: "synced",
		Doc: "When the informer is synced, the handler has acknowledged what the first list brought: " +
			"everything that was there when the run began and has not changed since, and the deletion of everything that was gone.",
		Check: checkSynced,
	}
}

func checkSynced(h *History) []*Violation {
	var found []*Violation
	m := newMemory(h)
	for n := range h.records {
		if _, ok := h.records[n].what.(synced); ok && !m.seen {
			if m.run == 0 {
				found = append(found, h.violation("synced", "", "before any run began", 0, n))
			}
			if m.running {
				found = append(found, m.unsynced(n)...)
			}
		}
		m.step(n)
	}
	return found
}

// unsynced is what is missing where the informer says that it is synced.
func (m *memory) unsynced(n int) []*Violation {
	var found []*Violation
	for i := range m.keys {
		if reason := m.unsyncedKey(i, n); reason != "" {
			found = append(found, m.h.violation("synced", m.h.keys[i].key, reason, min(m.began, m.told(i)), n))
		}
	}
	return found
}

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
