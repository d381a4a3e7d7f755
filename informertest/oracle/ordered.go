package oracle

import (
	"fmt"

	"github.com/rvinformer/informer"
)

func ordered() Validator {
	return newValidator("ordered", "For one key, calls come one at a time and while a run is on, in the order of the server's states, those that were not acknowledged included, Added first and Deleted last; "+
		"an object with another UID is the Deleted of the old and the Added of the new. A batch that failed comes again with its keys, or after three failures with a part of them.",
		checkOrdered)
}

func checkOrdered(j *judge) {
	j.judgeTellings((*memory).misplaced, func(_ *memory, t *telling) int { return j.from(t) })
}

// misplaced is why t cannot come now, if so.
func (m *memory) misplaced(t *telling) string {
	k := &m.keys[t.key]
	switch {
	case !m.running:
		return fmt.Sprintf("%s, and no run is on", t.text())
	case k.calls > 0:
		return fmt.Sprintf("%s, while another call of this key is under way", t.text())
	// Where a failed event was replaced by a state that cannot be read, there is nothing to try
	// again, and a later state comes by itself.
	case k.together != nil && !m.h.options.Unreadable && !k.mayComeIn(m.h.companions(t)):
		return fmt.Sprintf("%s, and not together with %v, as when it failed", t.text(), k.together)
	case t.repeats(m.h):
		return "" // not in the wrong order, but twice
	case t.back && !m.disordered(t) && !m.h.lives(t):
		return fmt.Sprintf("%s: back in time, acknowledged is version %s", t.text(), k.version)
	case t.older && !m.unnoticeable(t):
		return fmt.Sprintf("%s: back in time, this run has told of %s", t.text(), m.h.keys[t.key].states[k.reached].brief())
	case k.unsure:
		return ""
	}
	return m.unfit(t)
}

// companions are the keys that came with t.
func (h *History) companions(t *telling) []string {
	events := h.records[t.record].what.(call).events
	keys := make([]string, len(events))
	for i, e := range events {
		keys[i] = e.Key
	}
	return keys
}

// disordered reports whether an informer behind a broken proxy cannot know that t is
// back in time.
func (m *memory) disordered(t *telling) bool {
	if !m.h.options.Disorder {
		return false
	}
	_, err := m.h.options.Compare(t.before.version, t.ResourceVersion)
	return !t.before.present || err != nil
}

// unnoticeable reports whether an informer behind a broken proxy cannot know that this run has told
// of a newer state than t.
func (m *memory) unnoticeable(t *telling) bool {
	if !m.h.options.Disorder {
		return false
	}
	reached := m.h.keys[t.key].states[t.before.reached]
	_, err := m.h.options.Compare(reached.version, t.ResourceVersion)
	return t.before.unseen || err != nil
}

// unfit is why t is not what follows from what the handler knows for sure.
func (m *memory) unfit(t *telling) string {
	k := &m.keys[t.key]
	another := k.uid != "" && t.UID != "" && k.uid != t.UID
	switch {
	case !k.present && t.Type == informer.Deleted && (m.now.Resumed != "" || t.redelivery):
		return "" // it may have been known before the checkpoint
	case !k.present && t.Type != informer.Added:
		return fmt.Sprintf("%s, and the handler does not know it", t.text())
	case k.present && t.Type == informer.Added:
		return fmt.Sprintf("%s, and the handler knows it in version %s, UID %s", t.text(), k.version, k.uid)
	case k.present && t.Type == informer.Synced && k.version != t.ResourceVersion:
		return fmt.Sprintf("%s, and the handler knows version %s", t.text(), k.version)
	case k.present && another && !(t.Type == informer.Updated && m.h.options.UpdatesReplace):
		return fmt.Sprintf("%s, and the handler knows another object, UID %s", t.text(), k.uid)
	}
	return ""
}
