package oracle

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/engine/blame"
)

// never is the place of a state that there is not.
const never = -1

// telling is one event of a call, and what the handler knew when it came.
type telling struct {
	Event
	key    int // its number
	record int // the call's
	number int // the call's
	size   int // of its batch
	run    int
	// before is what the handler had of the key.
	before knowledge
	// place is the state that it tells of: the first one that is not older than what was
	// acknowledged. Back: there are only older ones, and place is the newest of them.
	// Never: no such state had been.
	place int
	back  bool
	// older: this run has told of a newer state, in vain.
	older bool
	// ignored: the informer was asked not to tell it.
	ignored bool
	// redelivery: the informer was asked to tell it again.
	redelivery bool
}

// knowledge is what a handler has of a key: what it has acknowledged.
type knowledge struct {
	present bool
	uid     types.UID // empty: not known
	version string
	// place is the state that was acknowledged last, as a telling has it, and same the
	// newest one then that was the same. Newest is the newest one that is, restores
	// after that included.
	place, same, newest int
	// reached is the newest state that this run has told of, also in vain. Unseen: only a list found
	// that, a deletion.
	reached int
	unseen  bool
	// bare is the version that its storage was filled with, which has no UID.
	bare string
	// record is the call that was acknowledged last, or the beginning of the run that
	// filled its storage; never: neither.
	record int
	// unsure: the handler may have taken in something else, or the informer may know
	// something else, so that it may be told again.
	unsure bool
	// behind: the run began with something else than the handler had. Forgotten: it
	// began with nothing of it, although the handler had it. Lost: it has listed since.
	behind, forgotten, lost bool
	// calls is how many calls of the key are under way.
	calls int
	// excused is how many states the key had when the informer was released from
	// telling of them.
	excused int
	// passed is the same for what the status claims, whatever a list shows since: another guarantee
	// is about that.
	passed int
	// released is the run of that time.
	released int
	// letter is the dead letter that a checkpoint has, empty for none.
	letter string
	// initial: an event of the first list is under way, or has failed.
	initial bool
	// together are the keys that have to come together again, in their order, and failures is how
	// many calls for the key have failed without saying whose event was to blame.
	together []string
	failures int
	// away is what the handler had when it was forgotten, because it was not in the shard of a run.
	// A later run may go on from before that.
	away *knowledge
	// told is the UID of the object that this run told of last and that was not acknowledged, empty
	// if that is not known.
	told types.UID
}

// memory is what the handler knows while the records go by.
type memory struct {
	h     *History
	keys  []knowledge
	tells bool // it is the one to make the tellings

	next int // telling
	// run counts the runs, from 1 on; 0: none has begun. Began is its record.
	run, began int
	running    bool
	now        Run
	epoch      int
	killed     bool
	// saved are the records of the last two checkpoints, the last one first.
	saved [2]int
	// unnoticed: there was no list since a restore, so that a watch may have gone on as if
	// nothing had happened.
	unnoticed bool
	// under are the calls under way, with the number of their first telling.
	under map[int]int
	// seen: this run was seen synced.
	seen bool
	// shard is that of the newest run.
	shard informer.Shard
	// redelivering: what was acknowledged may be told again.
	redelivering bool
}

func newMemory(h *History) *memory {
	m := &memory{h: h, keys: make([]knowledge, len(h.keys)), under: map[int]int{}}
	for i := range m.keys {
		m.keys[i] = nothing()
	}
	return m
}

func nothing() knowledge {
	return knowledge{place: never, same: never, newest: never, reached: never, record: never}
}

// step takes in a record.
func (m *memory) step(n int) {
	switch w := m.h.records[n].what.(type) {
	case Write:
		if w.Type != Other {
			m.keep(m.h.numbers[w.Key], n)
		}
	case restoration:
		m.epoch++
		m.unnoticed = m.run > 0
		for key := range m.keys {
			m.keep(key, n)
			m.excuseStill(key, n)
		}
	case Run:
		m.start(n, w)
	case halt:
		m.stop(w)
	case call:
		m.begin(n, w)
	case answer:
		m.end(n, w)
	case claim:
		if w.source == FromCheckpoint {
			m.saved = [2]int{n, m.saved[0]}
		}
	case surrender:
		m.release(m.h.numbers[w.key], n)
	case buried:
		for _, key := range w.ended {
			m.keys[m.h.numbers[key]].letter = ""
		}
		for key, letter := range w.letters {
			if k := &m.keys[m.h.numbers[key]]; k.letter != letter { // the informer is about to report it
				m.release(m.h.numbers[key], n)
				k.letter = letter
			}
		}
	case synced:
		m.seen = m.seen || m.running
	case redelivering:
		m.redelivering = true
	case rest:
		m.redelivering = false
	case listed:
		m.unnoticed = false
		m.lose()
		m.expect()
	}
}

// keep notes that a key has come to be what the handler knows. A restore can leave it
// alone, and a version can come again after one.
func (m *memory) keep(key, n int) {
	k, line := &m.keys[key], &m.h.keys[key]
	if at, ok := m.h.at(line, n+1); ok && k.is(line.states[at]) {
		k.newest = max(k.newest, at)
	}
}

// excuseStill notes that a restore has left a key as it was, which a watch does not show: what
// the informer was released from telling of it, it tells when it lists.
func (m *memory) excuseStill(key, n int) {
	if !m.excuses(key, n) {
		return
	}
	line := &m.h.keys[key]
	before, _ := m.h.at(line, n)
	after, _ := m.h.at(line, n+1)
	if was, is := line.states[before], line.states[after]; !is.gone && is.version == was.version && is.uid == was.uid {
		m.keys[key].excused = m.h.written(line, n+1)
	}
}

// is reports whether a state is what is known.
func (k *knowledge) is(s state) bool {
	if s.gone || !k.present {
		return s.gone != k.present
	}
	return k.version == s.version && (k.uid == "" || s.uid == "" || k.uid == s.uid)
}

func (m *memory) start(n int, r Run) {
	again := m.run > 0
	if r.Shard != m.shard {
		m.reshard(r.Shard, n)
	}
	m.run++
	m.began, m.running, m.seen, m.now = n, true, false, r
	m.unnoticed = m.unnoticed && r.Resumed != ""
	clear(m.under)
	for i := range m.keys {
		k, line := &m.keys[i], &m.h.keys[i]
		k.calls, k.together, k.failures, k.initial, k.told, k.reached, k.unseen = 0, nil, 0, false, "", never, false
		version, known := m.knows(r, line, n)
		if known && k.away != nil && k.away.version == version && !k.present {
			k.comeBack()
		}
		switch {
		case r.Resumed == "" && r.Known == nil:
			*k = nothing()
		case r.Known != nil && !again:
			*k = m.filled(line, version, known, n)
			k.unsure = k.unsure || r.Begun[line.key]
		case r.Known != nil:
			m.compare(k, line, version, known, n)
			k.unsure = k.unsure || r.Begun[line.key]
		case m.killed && (k.unsure || k.record != never && k.record >= m.saved[1]):
			k.unsure, k.behind, k.forgotten = true, true, true
			k.place = never
		}
		if r.Resumed != "" {
			m.replay(k, line, r.Resumed)
		}
	}
	if m.killed && again && r.Resumed == "" && m.h.options.StaleLists {
		m.relist(m.newestKnown(n))
	}
	m.killed = false
	if !m.h.options.SeesLists {
		m.lose()
	}
}

// lose notes that the informer asks for a list, which does not tell that something is
// gone that the informer does not know.
func (m *memory) lose() {
	for i := range m.keys {
		k := &m.keys[i]
		k.lost = k.lost || k.forgotten
	}
}

// expect notes that the informer asks for a list, which shows what it was released from
// telling of.
func (m *memory) expect() {
	for i := range m.keys {
		if k := &m.keys[i]; k.calls == 0 {
			k.excused = 0
		}
	}
}

// filled is what the handler knows because a storage was filled with it.
func (m *memory) filled(line *timeline, version string, known bool, n int) knowledge {
	k := nothing()
	if known && version == "" {
		k.unsure = true
	} else if known {
		k.present, k.version, k.bare, k.record = true, version, version, n
		seen := m.h.seen(line, n)
		k.place, _ = line.find(version, "", 0, seen)
		k.same, _ = line.last(version, "", seen)
		k.newest = k.same
	}
	return k
}

// compare notes that the informer may know something else than the handler.
func (m *memory) compare(k *knowledge, line *timeline, version string, known bool, n int) {
	if known == k.present && (!known || version == k.version && !line.ambiguous(version)) {
		k.behind, k.forgotten, k.lost = false, false, false
		if known && version == k.bare && m.killed && k.record >= m.saved[1] {
			k.uid = "" // which was not saved; another object of that name looks like a newer version
		}
		return
	}
	unnamed := version == "" && (!m.now.Journaled || k.forgotten)
	k.unsure, k.behind, k.forgotten = true, true, k.present && unnamed
	k.place = never
	if known {
		k.place, _ = line.find(version, "", 0, m.h.seen(line, n))
	}
}

// replay notes that a watch from a version shows again what came after it: there is nothing to
// compare that with for an object that is gone, nor where versions have no order.
func (m *memory) replay(k *knowledge, line *timeline, from string) {
	if k.same == never {
		return
	}
	resumed, ok := m.h.position(m.epoch, from)
	if ok && line.states[k.same].record <= resumed {
		return
	}
	if k.present {
		if _, err := m.h.options.Compare(from, k.version); err == nil {
			return
		}
	}
	k.unsure, k.place = true, never
}

// newestKnown is the record of the newest state that the run knows, so that it asks for no
// older list; never: it knows none, or no order of versions.
func (m *memory) newestKnown(n int) int {
	newest := never
	for key, version := range m.now.Known {
		line := &m.h.keys[m.h.numbers[key]]
		at, ok := line.last(version, "", m.h.seen(line, n))
		if _, err := m.h.options.Compare(version, version); ok && err == nil {
			newest = max(newest, line.states[at].record)
		}
	}
	return newest
}

// relist notes that after a crash, a list which is not of now may show again what there was
// before that which the handler has acknowledged, though nothing older than the newest
// state that the run knows. For a key with a known version, compare has noted more.
func (m *memory) relist(newest int) {
	for i := range m.keys {
		k, line := &m.keys[i], &m.h.keys[i]
		if k.same == never || m.now.Known[line.key] != "" {
			continue
		}
		again := line.states[k.same].record > newest
		if again || k.place == never {
			k.unsure = k.unsure || again
			k.place, _ = m.h.at(line, newest+1)
			if !k.present && k.place > k.same {
				k.uid = "" // what the list does not show is of an object after that one
			}
		}
	}
}

func (m *memory) stop(h halt) {
	m.running = false
	m.killed = m.killed || h.killed
	if !h.killed {
		return
	}
	for _, first := range m.under {
		for _, t := range m.h.batch(first) {
			m.keys[t.key].unsure = true
		}
	}
	clear(m.under) // a dead process acknowledges nothing
}

// batch is the tellings of one call, from its first one on.
func (h *History) batch(first int) []telling {
	return h.tellings[first : first+h.tellings[first].size]
}

func (m *memory) begin(n int, c call) {
	m.under[c.number] = m.next
	for _, e := range c.events {
		if m.tells {
			m.h.tellings = append(m.h.tellings, m.tell(n, c, e))
		}
		k := &m.keys[m.h.tellings[m.next].key]
		k.calls++
		k.initial = k.initial || e.IsInInitialList
		t := &m.h.tellings[m.next]
		k.told = m.h.uidOf(t)
		if !t.back && t.place >= k.reached {
			k.reached, k.unseen = t.place, t.FinalStateUnknown
		}
		m.next++
	}
	if len(c.events) == 0 {
		delete(m.under, c.number)
	}
}

// tell finds out what an event is about.
func (m *memory) tell(n int, c call, e Event) telling {
	key := m.h.numbers[e.Key]
	line := &m.h.keys[key]
	t := telling{Event: e, key: key, record: n, number: c.number, size: len(c.events), run: m.run, before: m.keys[key]}
	t.ignored = e.Type == informer.Synced && m.now.IgnoresSynced
	t.redelivery = m.redelivering && (e.Type == informer.Updated || e.Type == informer.Deleted)
	seen := m.h.seen(line, n)
	find := func(from int) (int, bool) { return line.find(e.ResourceVersion, e.UID, from, seen) }
	if e.Type == informer.Deleted {
		uid := e.UID
		if uid == "" && !(t.before.behind && m.h.options.StaleLists) { // else it may be of an object before that one
			uid = t.before.uid
		}
		version := e.ResourceVersion
		if e.FinalStateUnknown {
			version = "" // that of the last known state, which after a restore a deletion may have too
		}
		find = func(from int) (int, bool) { return line.findEndIn(version, uid, from, seen) }
	}
	var ok bool
	if t.place, ok = find(max(0, t.before.place)); ok {
		if e.Type != informer.Deleted { // which comes again with the object that came in its place
			t.comeAfter(t.before.reached, find)
		}
		return t
	}
	for from := 0; ; from = t.place + 1 {
		place, ok := find(from)
		if !ok {
			return t
		}
		t.place, t.back = place, true
	}
}

// comeAfter notes whether t tells of a state that is not older than one that was told of.
func (t *telling) comeAfter(reached int, find func(from int) (int, bool)) {
	if place, ok := find(max(0, reached)); ok {
		t.place = place
	} else {
		t.older = true
	}
}

// from is the record with which the history begins that shows what is wrong with t: of
// what was acknowledged before, or of the state that t tells of.
func (h *History) from(t *telling) int {
	from, line := t.before.record, &h.keys[t.key]
	for _, place := range []int{t.before.place, t.place} {
		if place != never {
			from = min(from, line.states[place].record)
		}
	}
	return from
}

func (m *memory) end(n int, a answer) {
	first, ok := m.under[a.number]
	if !ok {
		return // of a run before
	}
	delete(m.under, a.number)
	batch := m.h.batch(first)
	failed, delayed, whom := refusedOf(batch, a.err)
	for i := range batch {
		t := &batch[i]
		k := &m.keys[t.key]
		k.calls--
		if !slices.Contains(failed, t.Key) {
			m.acknowledge(k, t)
			m.keep(t.key, n)
			continue
		}
		k.unsure = true
		switch {
		case errors.Is(a.err, ErrExit):
			k.together = nil
			m.release(t.key, t.record)
		case errors.Is(a.err, ErrPanic):
			k.together = []string{t.Key}
		case slices.Contains(delayed, t.Key):
			k.together = nil // it comes with others that were delayed
		case whom == blame.Named:
			k.together = slices.DeleteFunc(slices.Clone(failed), func(key string) bool { return slices.Contains(delayed, key) })
		default:
			if k.failures++; !k.mayComeIn(failed) {
				k.together = failed
			}
		}
	}
}

// refusedOf returns the keys of the events of a batch that a call with that result has not
// acknowledged, and those among them that come later because they are not at fault.
func refusedOf(batch []telling, err error) (keys, delayed []string, whom blame.Blame) {
	whom, failed, _ := blame.Of(err, len(batch))
	for i, t := range batch {
		if whom == blame.Nobody || failed != nil && failed[i].Err == nil {
			continue
		}
		keys = append(keys, t.Key)
		if failed != nil && failed[i].Later {
			delayed = append(delayed, t.Key)
		}
	}
	return keys, delayed, whom
}

// inParts is after how many failures a batch may come in parts.
const inParts = 3

// mayComeIn reports whether a key that has failed may come with just these: those that it has to
// come with or, after some failures, a part of them.
func (k *knowledge) mayComeIn(keys []string) bool {
	if k.failures < inParts || k.together == nil {
		return slices.Equal(k.together, keys)
	}
	rest := k.together
	for _, key := range keys {
		at := slices.Index(rest, key)
		if at < 0 {
			return false
		}
		rest = rest[at+1:]
	}
	return true
}

func (m *memory) acknowledge(k *knowledge, t *telling) {
	uid := t.UID
	if uid == "" && t.place != never {
		uid = m.h.keys[t.key].states[t.place].uid
	}
	k.present, k.uid, k.version = t.Type != informer.Deleted, uid, t.ResourceVersion
	k.unsure, k.behind, k.forgotten, k.lost, k.initial, k.together, k.failures = false, false, false, false, false, nil, 0
	k.record = t.record
	k.away, k.told = nil, ""
	if t.place == never {
		return
	}
	k.place = t.place
	k.same = max(t.place, m.h.latest(t, uid))
	k.newest = k.same
	if k.newest+1 >= k.passed { // a dead letter may stand for an end and for the object that came after it
		k.passed, k.letter = 0, ""
	}
}

// latest is the newest state that t can tell of, if its object has that UID.
func (h *History) latest(t *telling, uid types.UID) int {
	line := &h.keys[t.key]
	seen := h.seen(line, t.record)
	if t.Type != informer.Deleted {
		at, _ := line.last(t.ResourceVersion, uid, seen)
		return at
	}
	at := never
	for next, ok := line.findEnd(uid, t.place, seen); ok; next, ok = line.findEnd(uid, at+1, seen) {
		at = next
	}
	return at
}

// release excuses the informer from telling of a key as it is.
func (m *memory) release(key, n int) {
	k := &m.keys[key]
	k.excused, k.released = m.h.written(&m.h.keys[key], n), m.run
	k.passed = k.excused
	k.initial, k.together = false, nil
}
