package oracle

import (
	"fmt"

	"github.com/rvinformer/informer"
)

func initialList() Validator {
	return newValidator("initial-list", "What is told as part of the first list is told before the informer is synced. "+
		"What was there when a run began that listed, and is told unchanged and for the first time before it is synced, is told as part of the first list.",
		checkInitialList)
}

func checkInitialList(j *judge) {
	j.judgeTellings((*memory).mislabelled, func(m *memory, _ *telling) int { return m.began })
}

// mislabelled is why t is wrong to say that it is in the first list, or that it is not.
func (m *memory) mislabelled(t *telling) string {
	switch {
	case !m.running:
		return ""
	case t.IsInInitialList && m.seen:
		return t.text() + ", after the informer was seen synced"
	case t.Type == informer.Added && !t.IsInInitialList && !m.seen && m.listed(t):
		return fmt.Sprintf("%s, which was there when the run began, is not told as part of the first list", t.text())
	}
	return ""
}

// listed reports whether it must have been the first list that brought t: the handler knew
// nothing of the key when the run began, and it has not changed since. What cannot be read
// in the first list may come with a later one.
func (m *memory) listed(t *telling) bool {
	k, line := &t.before, &m.h.keys[t.key]
	_, known := m.now.Known[t.Key]
	first := !known && !k.present && !k.unsure && k.record <= m.began && k.excused == 0
	return first && !m.h.options.Unreadable && m.beganWithList() && t.place != never && m.unchanged(line, t.place, t.record)
}

// beganWithList reports whether this run has begun with a list that shows what there was.
func (m *memory) beganWithList() bool {
	return m.now.Resumed == "" && !m.h.options.StaleLists && m.h.epochs[m.epoch].begins <= m.began
}

// unchanged reports whether a state was there when the run began, and is until a record.
func (m *memory) unchanged(line *timeline, place, until int) bool {
	return line.states[place].record < m.began && m.h.seen(line, until) == place+1
}
