package oracle

import (
	"fmt"

	"github.com/rvinformer/informer"
)

func noFalseDelete() Validator {
	return newValidator("no-false-delete",
		"An object that is told to be deleted was gone at some moment between what was last acknowledged of it and the call.",
		checkNoFalseDelete)
}

func checkNoFalseDelete(j *judge) {
	for i := range j.tellings {
		t := &j.tellings[i]
		if t.place != never && !t.back || !j.lives(t) {
			continue
		}
		now, _ := j.newest(t)
		since := j.keys[t.key].states[now.start]
		reason := fmt.Sprintf("%s, and it has been there all the time since version %s", t.text(), since.version)
		j.blame(t.Key, reason, min(t.before.record, since.record), t.record)
	}
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
