package oracle

import (
	"fmt"

	"github.com/rvinformer/informer"
)

func noFalseDelete() Validator {
	return Validator{
		Name:  "no-false-delete",
		Doc:   "An object that is told to be deleted was gone at some moment between what was last acknowledged of it and the call.",
		Check: checkNoFalseDelete,
	}
}

func checkNoFalseDelete(h *History) []*Violation {
	var found []*Violation
	for i := range h.tellings {
		t := &h.tellings[i]
		if t.place != never && !t.back || !h.lives(t) {
			continue
		}
		now, _ := h.newest(t)
		since := h.keys[t.key].states[now.start]
		reason := fmt.Sprintf("%s, and it has been there all the time since version %s", t.text(), since.version)
		found = append(found, h.violation("no-false-delete", t.Key, reason, min(t.before.record, since.record), t.record))
	}
	return found
}

// lives reports whether t is the deletion of an object that is there.
func (h *History) lives(t *telling) bool {
	if t.Type != informer.Deleted {
		return false
	}
	uid := t.UID
	if uid == "" {
		uid = t.before.uid
	}
	now, ok := h.newest(t)
	return ok && !now.gone && (uid == "" || now.uid == uid)
}

// newest is the newest state of its key that can be seen when t is told.
func (h *History) newest(t *telling) (s state, ok bool) {
	line := &h.keys[t.key]
	if seen := h.seen(line, t.record); seen > 0 {
		return line.states[seen-1], true
	}
	return state{}, false
}
