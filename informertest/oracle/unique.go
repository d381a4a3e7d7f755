package oracle

import (
	"fmt"

	"github.com/rvinformer/informer"
)

func unique() Validator {
	return newValidator("unique", "What was acknowledged is not told again, unless a call failed, the informer was asked to, or the run goes on from before it. "+
		"An informer that was asked not to tell of unchanged objects does not.",
		checkUnique)
}

func checkUnique(j *judge) {
	for i := range j.tellings {
		t := &j.tellings[i]
		if t.ignored {
			j.blame(t.Key, fmt.Sprintf("%s, which this run was not to tell", t.text()), t.record, t.record)
		}
		if t.repeats(j.History) {
			j.blame(t.Key, fmt.Sprintf("%s, which was acknowledged before", t.text()), j.from(t), t.record)
		}
	}
}

// repeats reports whether t tells what was acknowledged, without a reason.
func (t *telling) repeats(h *History) bool {
	k, line := &t.before, &h.keys[t.key]
	if k.unsure || k.record == never || t.redelivery {
		return false
	}
	same := k.uid == "" || t.UID == "" || k.uid == t.UID
	if t.Type == informer.Deleted {
		_, again := line.findEnd(t.UID, k.same+1, h.seen(line, t.record))
		return !k.present && same && k.place != never && !again
	}
	resync := t.Type == informer.Updated && h.options.Resyncs
	if !k.present || !same || t.Type == informer.Synced || resync || k.version != t.ResourceVersion {
		return false
	}
	seen := h.seen(line, t.record)
	if _, again := line.find(t.ResourceVersion, t.UID, k.newest+1, seen); again {
		return false
	}
	return !h.rewritten(line, t.Event, k.same+1, seen)
}

// rewritten reports whether one of the states from one on, and before another, is a write that got
// the version of an event. After a restore a version can be of something else, which may be told.
func (h *History) rewritten(line *timeline, e Event, from, before int) bool {
	for at, ok := line.find(e.ResourceVersion, e.UID, from, before); ok; at, ok = line.find(e.ResourceVersion, e.UID, at+1, before) {
		if _, written := h.records[line.states[at].record].what.(Write); written {
			return true
		}
	}
	return false
}
