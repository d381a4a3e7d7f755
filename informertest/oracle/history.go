package oracle

import (
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// History is what an Oracle has recorded, for Validators to judge. It does not change.
//
// Records are known by their numbers, in their order. An epoch is
// the time between two restores of the server.
type History struct {
	options Options
	records []record

	numbers map[string]int // of keys, in keys
	keys    []timeline
	frames  []int // the records of runs and restores
	epochs  []epoch
	// tellings are the events of all calls, in order.
	tellings []telling
	calls    []call
	// first is, for a write, the number of the record before which it cannot have
	// happened; nil where that is its own.
	first []int
}

// timeline is what happened to one key.
type timeline struct {
	key     string
	records []int
	states  []state
	// versions are the states with an object, by its version; ends are the
	// others. Both are in order.
	versions map[string][]int
	ends     []int
}

// state is one of the states that a key had on the server.
type state struct {
	record int
	epoch  int
	// gone: there is no object any more. Uid is that of the one before, and version that
	// of the deletion, empty where a restore undid it.
	gone    bool
	uid     types.UID
	version string
	// start is the first state of the same object.
	start int
}

// epoch is the sequence of writes from one restore to the next.
type epoch struct {
	begins   int // record
	versions map[string]int
	writes   []int // records, and the restore that it begins with
}

func newHistory(options Options, records []record) *History {
	h := &History{options: options, records: records, numbers: map[string]int{}}
	h.epochs = []epoch{{versions: map[string]int{}}}
	for n, r := range records {
		h.add(n, r.what)
	}
	h.findFirst()
	m := newMemory(h)
	m.tells = true
	for n := range records {
		m.step(n)
	}
	return h
}

// String is all that was recorded, a line for each record.
func (h *History) String() string {
	var b strings.Builder
	for _, r := range h.records {
		b.WriteString(r.line("") + "\n")
	}
	return b.String()
}

// add indexes a record.
func (h *History) add(n int, what any) {
	switch w := what.(type) {
	case Write:
		h.reached(n, w.ResourceVersion)
		if w.Type != Other {
			h.wrote(n, w)
		}
	case restoration:
		h.frames = append(h.frames, n)
		h.restored(n, w)
	case Run:
		h.frames = append(h.frames, n)
		for key := range w.Known {
			h.timeline(key)
		}
	case halt:
		h.frames = append(h.frames, n)
	case call:
		h.calls = append(h.calls, w)
		for _, e := range w.events {
			h.mention(n, e.Key)
		}
	case answer:
		for _, e := range h.calls[w.number].events {
			h.mention(n, e.Key)
		}
	case rest:
		for key := range w.stored {
			h.timeline(key)
		}
	case surrender:
		h.mention(n, w.key)
	case buried:
		for key := range w.letters {
			h.mention(n, key)
		}
		for _, key := range w.ended {
			h.mention(n, key)
		}
	case look:
		h.mention(n, w.wrong.key)
	case storeLook:
		h.mention(n, w.key)
	}
}

func (h *History) timeline(key string) *timeline {
	number, ok := h.numbers[key]
	if !ok {
		number = len(h.keys)
		h.numbers[key] = number
		h.keys = append(h.keys, timeline{key: key, versions: map[string][]int{}})
	}
	return &h.keys[number]
}

// mention notes that a record is about key.
func (h *History) mention(n int, key string) *timeline {
	line := h.timeline(key)
	if last := len(line.records) - 1; last < 0 || line.records[last] != n {
		line.records = append(line.records, n)
	}
	return line
}

func (h *History) reached(n int, version string) {
	e := &h.epochs[len(h.epochs)-1]
	e.writes = append(e.writes, n)
	e.versions[version] = n
}

func (h *History) wrote(n int, w Write) {
	line := h.mention(n, w.Key)
	line.add(state{record: n, epoch: len(h.epochs) - 1, gone: w.Type == Deleted, uid: w.UID, version: w.ResourceVersion})
}

// restored begins an epoch: every key has a state in it, if it had one before.
func (h *History) restored(n int, r restoration) {
	h.epochs = append(h.epochs, epoch{begins: n, versions: map[string]int{}})
	h.reached(n, r.version)
	now := len(h.epochs) - 1
	for _, w := range r.state {
		h.timeline(w.Key).add(state{record: n, epoch: now, uid: w.UID, version: w.ResourceVersion})
	}
	for i := range h.keys {
		line := &h.keys[i]
		if last := len(line.states) - 1; last >= 0 && line.states[last].epoch < now && !line.states[last].gone {
			line.add(state{record: n, epoch: now, gone: true, uid: line.states[last].uid})
		}
	}
}

// add adds a state; between two objects there is the end of the first.
func (l *timeline) add(s state) {
	if last := len(l.states) - 1; last >= 0 && !s.gone && !l.states[last].gone && l.states[last].uid != s.uid {
		l.add(state{record: s.record, epoch: s.epoch, gone: true, uid: l.states[last].uid})
	}
	s.start = len(l.states)
	if s.start > 0 && !s.gone && !l.states[s.start-1].gone {
		s.start = l.states[s.start-1].start
	}
	if s.gone {
		l.ends = append(l.ends, len(l.states))
	} else {
		l.versions[s.version] = append(l.versions[s.version], len(l.states))
	}
	l.states = append(l.states, s)
}

// findFirst finds where writes that are recorded late can have happened.
func (h *History) findFirst() {
	if h.options.Late <= 0 {
		return
	}
	h.first = make([]int, len(h.records))
	earliest := 0
	for n, r := range h.records {
		for h.records[earliest].at < r.at-h.options.Late {
			earliest++
		}
		h.first[n] = earliest
	}
}

// earliest is the first record after which what a write made can have been seen.
func (h *History) earliest(write int) int {
	if h.first == nil {
		return write
	}
	return h.first[write]
}

// seen is how many states of a key can have been seen by a record.
func (h *History) seen(line *timeline, by int) int {
	return sort.Search(len(line.states), func(i int) bool { return h.earliest(line.states[i].record) > by })
}

// written is how many states of a key were recorded before a record.
func (h *History) written(line *timeline, before int) int {
	return sort.Search(len(line.states), func(i int) bool { return line.states[i].record >= before })
}

// at returns the newest state of a key that was recorded before a record, and false
// where it had none yet.
func (h *History) at(line *timeline, before int) (int, bool) {
	n := h.written(line, before) - 1
	return n, n >= 0
}

// find is the first state from one on, and before another, that has an object of that
// version and UID; an empty UID is any.
func (l *timeline) find(version string, uid types.UID, from, before int) (int, bool) {
	places := l.versions[version]
	for _, i := range places[sort.SearchInts(places, from):] {
		if i >= before {
			break
		}
		if uid == "" || l.states[i].uid == "" || l.states[i].uid == uid {
			return i, true
		}
	}
	return -1, false
}

// findEnd is the first state from one on, and before another, that is the end of an
// object with that UID; an empty UID is any.
func (l *timeline) findEnd(uid types.UID, from, before int) (int, bool) {
	for _, i := range l.ends[sort.SearchInts(l.ends, from):] {
		if i >= before {
			break
		}
		if uid == "" || l.states[i].uid == "" || l.states[i].uid == uid {
			return i, true
		}
	}
	return -1, false
}

// findEndIn is findEnd, but of the deletion with that version if there is one.
func (l *timeline) findEndIn(version string, uid types.UID, from, before int) (int, bool) {
	for _, i := range l.ends[sort.SearchInts(l.ends, from):] {
		if i < before && l.states[i].version == version && version != "" && (uid == "" || l.states[i].uid == uid) {
			return i, true
		}
	}
	return l.findEnd(uid, from, before)
}

// last is the newest of the states before another that has an object of that version
// and UID.
func (l *timeline) last(version string, uid types.UID, before int) (int, bool) {
	for _, i := range slices.Backward(l.versions[version]) {
		if i < before && (uid == "" || l.states[i].uid == "" || l.states[i].uid == uid) {
			return i, true
		}
	}
	return -1, false
}

// ambiguous reports whether several objects had a version, which a restore can bring
// about.
func (l *timeline) ambiguous(version string) bool {
	places := l.versions[version]
	return slices.ContainsFunc(places, func(i int) bool { return l.states[i].uid != l.states[places[0]].uid })
}
