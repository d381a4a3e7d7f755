package deltaqueue_test

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// TestModel drives a queue with random actions of a server, a reflector and some
// consumers, and holds it against a model of all of them.
func TestModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// rapid would ask for a deadline, which a bubble does not have.
		rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) {
			m := newModel(t)
			t.Repeat(map[string]func(*rapid.T){
				"":         m.check,
				"change":   m.change,
				"list":     m.list,
				"read":     m.read,
				"read ":    m.read, // twice as often
				"again":    m.again,
				"take":     m.take,
				"take ":    m.take,
				"done":     m.done,
				"skip":     m.skip,
				"advance":  m.advance,
				"postpone": m.postpone,
				"retry":    m.retry,
				"drop":     m.drop,
				"resync":   m.resync,
				"follow":   m.follow,
				"let pass": func(*rapid.T) { time.Sleep(time.Second) },
			})
			m.settle(t)
		})
	})
}

// event is a change on the server: the object of a key got version, or was
// deleted in it.
type event struct {
	change  cache.DeltaType
	key     string
	version keytable.Version
}

func (e event) delta() deltaqueue.Delta {
	return deltaqueue.Delta{Type: e.change, Key: e.key, Version: e.version, Object: e, Bytes: e.bytes()}
}

func (e event) bytes() int64 { return 10 + int64(number(e.version)%7) }

func number(v keytable.Version) int {
	n, _ := strconv.Atoi(v.ResourceVersion)
	return n
}

// work is an entry of the queue as the model sees it.
type work struct {
	deltas []deltaqueue.Delta
	// attempted is false while an initial entry has not been returned.
	initial, attempted bool
	// due is when it can be taken; before that also where something newer comes, unless
	// it was postponed, in a batch of this number and at this place.
	due         time.Time
	batch, turn int
	// attempts and panics count the calls that failed, and resumed tells that the
	// consumer may know the key though Known does not.
	attempts, panics int
	resumed          bool
	// generation is the newest one that showed it, or that was under way when a watch told it.
	generation int
}

func (w *work) newest() deltaqueue.Delta { return w.deltas[len(w.deltas)-1] }

type model struct {
	q             *deltaqueue.Queue
	known         *keytable.Table
	limit         int
	consumers     int
	skipUnchanged bool

	// The server: its objects, and all that happened, by resource version.
	server map[string]event
	log    []event
	uids   int

	// The reflector: what it has read of the log, or a list under way.
	watching bool
	position int
	listing  bool
	snapshot map[string]event
	listed   int // length of the log that the snapshot shows
	unshown  []string
	// unread holds what the list under way shows and could not be read, missed
	// that of complete lists, until the consumer has it as the server does.
	unread, missed map[string]bool

	// The queue.
	pending, taken map[string]*work
	complete       bool
	// generation counts the lists. Since is the first of those that have not ended up
	// to this one, and marks has the newest that showed what is known.
	generation, since int
	marks             map[string]int

	// resumed tells that no list was complete since the checkpoint that the queue goes
	// on from, and crash is how much of the log was read before.
	resumed        bool
	crash          int
	batches, turns int

	// The consumers.
	entries map[string]*deltaqueue.Entry
	store   map[string]keytable.Version
	// told is what the consumers have been told, which is what is acknowledged, but
	// for what was since a checkpoint. Lost tells that this could not be made good.
	told map[string]keytable.Version
	lost bool
	// deleted holds the UIDs whose deletion a watch told and no one gave up.
	deleted map[types.UID]bool
	// dropped tells that entries were dropped and not listed since, droppedNow
	// that some were since the list under way began.
	dropped, droppedNow bool
	// passed has the keys of entries that were dropped, and not acknowledged since.
	passed map[string]bool
}

func newModel(t *rapid.T) *model {
	m := &model{
		known:         keytable.New(),
		limit:         rapid.IntRange(1, 5).Draw(t, "limit"),
		consumers:     rapid.IntRange(1, 3).Draw(t, "consumers"),
		skipUnchanged: rapid.Bool().Draw(t, "skipUnchanged"),
		server:        map[string]event{},
		pending:       map[string]*work{},
		taken:         map[string]*work{},
		entries:       map[string]*deltaqueue.Entry{},
		store:         map[string]keytable.Version{},
		deleted:       map[types.UID]bool{},
		missed:        map[string]bool{},
		passed:        map[string]bool{},
		marks:         map[string]int{},
		told:          map[string]keytable.Version{},
	}
	opts := deltaqueue.Options{Known: m.known, Limit: m.limit, SkipUnchanged: m.skipUnchanged}
	if rapid.Bool().Draw(t, "resumed") {
		m.resume(t, &opts)
	}
	m.q = deltaqueue.New(opts)
	return m
}

// resume has the queue go on from a checkpoint: all up to a version was acknowledged,
// some later changes were too, and some of these are in the checkpoint.
func (m *model) resume(t *rapid.T, opts *deltaqueue.Options) {
	for range rapid.IntRange(1, 20).Draw(t, "changes before") {
		m.change(t)
	}
	m.crash = rapid.IntRange(1, len(m.log)).Draw(t, "crash")
	m.position = rapid.IntRange(1, m.crash).Draw(t, "resume")
	m.resumed, opts.Resumed, opts.Resume = true, true, strconv.Itoa(m.position)
	for _, key := range allKeys {
		saved := rapid.IntRange(m.position, m.crash).Draw(t, "saved")
		told := rapid.IntRange(saved, m.crash).Draw(t, "told")
		if version, ok := m.at(key, saved); ok {
			m.known.Set(key, version, 0)
			m.store[key] = version
		}
		if version, ok := m.at(key, told); ok {
			m.told[key] = version
		}
	}
}

// at is the version of a key when so much of the log had happened.
func (m *model) at(key string, events int) (version keytable.Version, exists bool) {
	for _, e := range m.log[:events] {
		if e.key == key {
			version, exists = e.version, e.change != cache.Deleted
		}
	}
	return version, exists
}

// follow begins to watch from the checkpoint.
func (m *model) follow(t *rapid.T) {
	if !m.resumed || m.complete || m.listing {
		t.Skip("not at a checkpoint")
	}
	m.q.Follow()
	m.watching, m.complete = true, true
}

// ended is a context that lets nothing wait.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

var (
	allKeys = []string{"a", "b", "ns/a", "ns/b"}
	keys    = rapid.SampledFrom(allKeys)
)

// change changes an object of the server.
func (m *model) change(t *rapid.T) {
	key := keys.Draw(t, "key")
	e := event{change: cache.Added, key: key}
	old, exists := m.server[key]
	switch {
	case !exists:
		m.uids++
		e.version.UID = types.UID(strconv.Itoa(m.uids))
	case rapid.Bool().Draw(t, "delete"):
		e.change, e.version = cache.Deleted, old.version
	default:
		e.change, e.version = cache.Updated, old.version
	}
	e.version.ResourceVersion = strconv.Itoa(len(m.log) + 1)
	m.log = append(m.log, e)
	m.server[key] = e
	if e.change == cache.Deleted {
		delete(m.server, key)
	}
}

// list begins a list, or gives one up.
func (m *model) list(t *rapid.T) {
	if m.listing && !rapid.Bool().Draw(t, "give up") {
		t.Skip("listing")
	}
	m.startList()
	m.unshown = rapid.Permutation(m.unshown).Draw(t, "order")
}

func (m *model) startList() {
	// A list cannot know what the consumers were told since the checkpoint.
	m.lost = m.lost || m.resumed && m.position < m.crash
	m.listing, m.watching, m.droppedNow = true, false, false
	m.snapshot, m.listed, m.unread = maps.Clone(m.server), len(m.log), map[string]bool{}
	m.unshown = slices.Sorted(maps.Keys(m.snapshot))
	m.q.BeginGeneration()
	if m.generation++; m.since == 0 {
		m.since = m.generation
	}
}

// mark notes that the list under way shows key.
func (m *model) mark(key string) {
	for _, w := range []*work{m.pending[key], m.taken[key]} {
		if w != nil {
			w.generation = m.generation
		}
	}
	if _, ok := m.known.Get(key); ok {
		m.marks[key] = m.generation
	}
}

// read reads the next object of the list, or its end, or the next event.
func (m *model) read(t *rapid.T) {
	switch {
	case m.listing && len(m.unshown) > 0:
		m.show(t, rapid.IntRange(0, 9).Draw(t, "unreadable") == 0)
	case m.listing:
		m.endList(t)
	case m.watching && m.position < len(m.log):
		m.watch(t)
	default:
		t.Skip("nothing to read")
	}
}

func (m *model) show(t *rapid.T, unreadable bool) {
	key := m.unshown[0]
	e := m.snapshot[key]
	d := e.delta()
	if unreadable {
		m.q.Keep(key)
		m.mark(key)
		m.unread[key] = true
		m.unshown = m.unshown[1:]
		return
	}
	w := m.newestOf(key)
	known, ok := m.known.Get(key)
	told := m.skipUnchanged || ok && m.marks[key] >= m.since
	skip := told && w == nil && ok && known == e.version
	if w != nil {
		skip = w.newest().Type != cache.Deleted && w.newest().Version == e.version
	}
	d.Type = cache.Replaced
	if !skip && !m.fits(key) {
		if m.q.Put(ended(), d) == nil {
			t.Fatalf("Put of %v: there is no room", d)
		}
		return // and tell it later
	}
	if err := show(ended(), m.q, d); err != nil {
		t.Fatalf("show %v: %v", d, err)
	}
	m.mark(key)
	if !skip {
		m.add(d)
	}
	m.unshown = m.unshown[1:]
}

func (m *model) endList(t *rapid.T) {
	gone := map[string]bool{}
	for key := range m.known.All() {
		gone[key] = true
	}
	for _, under := range []map[string]*work{m.taken, m.pending} {
		for key, w := range under {
			gone[key] = w.newest().Type != cache.Deleted
		}
	}
	maps.DeleteFunc(gone, func(key string, lives bool) bool {
		_, shown := m.snapshot[key]
		return !lives || shown
	})
	var last *deltaqueue.Delta
	err := m.q.Sweep(ended(), func(key string, version keytable.Version) {
		if !gone[key] {
			t.Fatalf("swept %s, which the server has, or which was deleted", key)
		}
		delete(gone, key)
		if last != nil {
			m.add(*last)
		}
		last = &deltaqueue.Delta{Type: cache.Deleted, Key: key}
	})
	if err != nil { // the reflector lists again
		if m.fits(last.Key) {
			t.Fatalf("no room for the deletion of %s", last.Key)
		}
		m.startList()
		return
	}
	if last != nil {
		m.add(*last)
	}
	if len(gone) > 0 {
		t.Fatalf("not swept: %v", gone)
	}
	m.q.EndGeneration()
	m.since = 0
	m.q.Observed(rv.At(strconv.Itoa(m.listed)), 0)
	m.listing, m.watching, m.complete, m.position = false, true, true, m.listed
	m.resumed = false
	maps.Copy(m.missed, m.unread)
	m.dropped = m.droppedNow || m.dropped && len(m.unread) > 0
}

func (m *model) watch(t *rapid.T) {
	e := m.log[m.position]
	d := e.delta()
	if stale := m.replayed(d); m.q.Stale(d) != stale {
		t.Fatalf("%v: stale is %v", d, !stale)
	} else if stale {
		m.position++
		m.q.Observed(rv.At(e.version.ResourceVersion), 0)
		return
	}
	fits := m.fits(e.key)
	switch parked := m.newestOf(e.key) == nil && rapid.IntRange(0, 4).Draw(t, "parked") == 0; {
	case parked:
		m.q.PutParked([]deltaqueue.Delta{d}, time.Second)
		m.add(d)
		m.pending[e.key].due = time.Now().Add(time.Second)
	case (m.q.Put(ended(), d) == nil) != fits:
		t.Fatalf("Put of %v: room is %v", d, fits)
	case !fits:
		return
	default:
		m.add(d)
	}
	if e.change == cache.Deleted {
		m.deleted[e.version.UID] = true
	}
	m.position++
	m.q.Observed(rv.At(e.version.ResourceVersion), 0)
}

// replayed reports whether d, which the watch tells, was acknowledged after the
// checkpoint.
func (m *model) replayed(d deltaqueue.Delta) bool {
	known, ok := m.store[d.Key]
	if w := m.newestOf(d.Key); w != nil {
		known, ok = w.newest().Version, true
	}
	return m.resumed && ok && (number(d.Version) < number(known) || d.Type != cache.Deleted && number(d.Version) == number(known))
}

// again has the watch tell an old event again.
func (m *model) again(t *rapid.T) {
	if !m.watching || m.dropped || m.position == 0 {
		t.Skip("not sure which versions are known")
	}
	e := rapid.SampledFrom(m.log[:m.position]).Draw(t, "event")
	if e.change == cache.Deleted || m.missed[e.key] || !m.q.Knows(e.key) {
		t.Skip("not known")
	}
	if !m.q.Stale(e.delta()) {
		t.Fatalf("%v is stale", e)
	}
}

func (m *model) take(t *rapid.T) {
	if len(m.taken) == m.consumers {
		t.Skip("all consumers are busy")
	}
	ready := map[string]*work{}
	for key, w := range m.pending {
		if m.taken[key] == nil && !w.due.After(time.Now()) {
			ready[key] = w
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	most := rapid.IntRange(1, 3).Draw(t, "most")
	batch, err := m.q.TakeBatch(ctx, nil, most)
	if err != nil {
		if len(ready) > 0 {
			t.Fatalf("nothing taken of %v", ready)
		}
		return
	}
	m.checkBatch(t, batch, most, ready)
	for _, e := range batch {
		m.checkTaken(t, e, ready[e.Key])
		m.entries[e.Key], m.taken[e.Key] = e, ready[e.Key]
		delete(m.pending, e.Key)
		delete(ready, e.Key)
	}
}

// checkBatch checks that what was postponed together is taken together, in its order
// and without others.
func (m *model) checkBatch(t *rapid.T, batch []*deltaqueue.Entry, most int, ready map[string]*work) {
	first := ready[batch[0].Key]
	if first == nil {
		t.Fatalf("%s was taken, ready are only %v", batch[0].Key, ready)
	}
	together, batches := 0, map[int]bool{}
	for _, w := range ready {
		batches[w.batch] = true
		if w.batch == first.batch {
			together++
		}
	}
	// Between others, what was not postponed need not stand together.
	if whole := min(most, together); len(batch) > whole || len(batch) < whole && (first.batch != 0 || len(batches) == 1) {
		t.Fatalf("%d were taken, of %d that belong together", len(batch), together)
	}
	turn := 0
	for _, e := range batch {
		w := ready[e.Key]
		if w == nil || w.batch != first.batch || w.turn < turn {
			t.Fatalf("%s was taken with %s", e.Key, batch[0].Key)
		}
		turn = w.turn
	}
}

func (m *model) checkTaken(t *rapid.T, e *deltaqueue.Entry, w *work) {
	if w == nil {
		t.Fatalf("%s was taken twice", e.Key)
	}
	if !slices.Equal(untimed(e.Deltas), w.deltas) {
		t.Fatalf("%s: the entry has %v, want %v", e.Key, e.Deltas, w.deltas)
	}
	if e.Initial != w.initial || e.Resumed != w.resumed {
		t.Fatalf("%s: Initial is %v, Resumed is %v", e.Key, e.Initial, e.Resumed)
	}
	if e.Attempts != w.attempts || e.Panics != w.panics {
		t.Fatalf("%s: %d attempts and %d panics, want %d and %d", e.Key, e.Attempts, e.Panics, w.attempts, w.panics)
	}
	m.checkDeltas(t, e)
}

// untimed returns deltas without their times, which the models leave to TestTimes.
func untimed(deltas []deltaqueue.Delta) []deltaqueue.Delta {
	deltas = slices.Clone(deltas)
	for i := range deltas {
		deltas[i].Arrived = 0
	}
	return deltas
}

func (m *model) checkDeltas(t *rapid.T, e *deltaqueue.Entry) {
	objects := 0
	for _, d := range e.Deltas {
		if d.Type != cache.Deleted {
			objects++
		}
	}
	if len(e.Deltas) == 0 || len(e.Deltas) > 2 || objects > 1 {
		t.Fatalf("%s: too many deltas: %v", e.Key, e.Deltas)
	}
	if len(e.Deltas) == 2 && e.Deltas[0].Type != cache.Deleted {
		t.Fatalf("%s: of two deltas the first is a deletion: %v", e.Key, e.Deltas)
	}
	known, ok := m.store[e.Key]
	if ok && m.deleted[known.UID] && e.Version.UID != known.UID && e.Deltas[0].Type != cache.Deleted {
		t.Fatalf("%s: the deletion of %v is lost: %v", e.Key, known, e.Deltas)
	}
	if ok && !e.Deleted() && number(e.Version) < number(known) {
		t.Fatalf("%s: back from %v to %v", e.Key, known, e.Version)
	}
	if !e.Deleted() && e.Version != e.Deltas[len(e.Deltas)-1].Version {
		t.Fatalf("%s: the version is %v, not that of %v", e.Key, e.Version, e.Deltas)
	}
}

func (m *model) drawTaken(t *rapid.T) (*deltaqueue.Entry, *work) {
	if len(m.taken) == 0 {
		t.Skip("nothing is taken")
	}
	key := rapid.SampledFrom(slices.Sorted(maps.Keys(m.taken))).Draw(t, "taken")
	return m.entries[key], m.taken[key]
}

func (m *model) done(t *rapid.T) {
	e, _ := m.drawTaken(t)
	m.acknowledge(e)
}

func (m *model) acknowledge(e *deltaqueue.Entry) {
	m.tell(e, e.Deltas)
	m.q.Done(e)
	if e.Deltas[len(e.Deltas)-1].Type != cache.Sync {
		delete(m.passed, e.Key)
	}
	m.marks[e.Key] = max(m.marks[e.Key], m.taken[e.Key].generation)
	if e.Deleted() {
		delete(m.marks, e.Key)
	}
	delete(m.taken, e.Key)
	m.store[e.Key] = e.Version
	if e.Deleted() {
		delete(m.store, e.Key)
	}
	if m.store[e.Key] == m.server[e.Key].version {
		delete(m.missed, e.Key)
	}
}

// tell has the consumers told of deltas: of the end only of objects that they may know.
func (m *model) tell(e *deltaqueue.Entry, deltas []deltaqueue.Delta) {
	_, known := m.store[e.Key]
	for _, d := range deltas {
		switch {
		case d.Type != cache.Deleted && d.Type != cache.Sync:
			m.told[e.Key] = d.Version
			known = true
		case d.Type == cache.Deleted && (known || e.Resumed):
			delete(m.told, e.Key)
			known = false
		}
	}
}

// skip gives up the newest delta, whose object cannot be read.
func (m *model) skip(t *rapid.T) {
	e, w := m.drawTaken(t)
	if e.Deleted() {
		t.Skip("a deletion counts, whatever becomes of its object")
	}
	m.tell(e, e.Deltas[:len(e.Deltas)-1])
	if len(e.Deltas) > 1 {
		m.forget(e.Key)
	}
	m.q.Skip(e, func() {})
	delete(m.taken, e.Key)
	m.missed[e.Key] = true
	m.lost = m.lost || w.resumed
}

// forget notes that the end of a key is acknowledged.
func (m *model) forget(key string) {
	delete(m.store, key)
	delete(m.marks, key)
}

// advance acknowledges the end of an object, and not what came after it.
func (m *model) advance(t *rapid.T) {
	e, w := m.drawTaken(t)
	known, ok := m.store[e.Key]
	replaced := len(e.Deltas) == 1 && !e.Deleted() && ok && known.UID != e.Version.UID
	if len(e.Deltas) == 1 && !replaced {
		t.Skip("nothing comes after")
	}
	gone := w.deltas[:len(w.deltas)-1]
	if done := m.q.Advance(e); !slices.Equal(untimed(done), gone) {
		t.Fatalf("%s: advanced past %v, want %v", e.Key, done, gone)
	}
	delete(m.told, e.Key)
	m.forget(e.Key)
	w.deltas = w.deltas[len(gone):]
	w.due, w.batch, w.turn, w.attempts, w.panics = time.Time{}, 0, 0, 0, 0
	m.giveBack(e.Key, w)
}

// giveBack has w wait again, together with what came meanwhile.
func (m *model) giveBack(key string, w *work) (newer bool) {
	delete(m.taken, key)
	came := m.pending[key]
	m.pending[key] = w
	if came == nil {
		return false
	}
	for _, d := range came.deltas {
		w.deltas = deltaqueue.Merge(w.deltas, d)
	}
	w.attempted, w.generation = w.attempted && came.attempted, came.generation
	return true
}

// postpone has some taken entries tried again, together or, after a panic, one by
// one.
func (m *model) postpone(t *rapid.T) {
	if len(m.taken) == 0 {
		t.Skip("nothing is taken")
	}
	order := rapid.Permutation(slices.Sorted(maps.Keys(m.taken))).Draw(t, "order")
	order = order[:rapid.IntRange(1, len(order)).Draw(t, "how many")]
	delay := time.Duration(rapid.IntRange(0, 3).Draw(t, "delay")) * time.Second
	panicked := rapid.Bool().Draw(t, "panicked")
	var entries []*deltaqueue.Entry
	m.batches++
	for _, key := range order {
		entries = append(entries, m.entries[key])
		w := m.taken[key]
		w.attempts++
		if panicked {
			w.panics++
			m.batches++
		}
		m.turns++
		w.due, w.batch, w.turn = time.Now().Add(delay), m.batches, m.turns
		m.giveBack(key, w)
	}
	m.q.Postpone(entries, delay, panicked)
}

func (m *model) drop(t *rapid.T) {
	e, w := m.drawTaken(t)
	m.q.Drop(e)
	m.lost = m.lost || w.resumed
	delete(m.taken, e.Key)
	m.dropped, m.droppedNow = true, true
	m.passed[e.Key] = true
	if known, ok := m.store[e.Key]; ok {
		delete(m.deleted, known.UID)
	}
}

func (m *model) retry(t *rapid.T) {
	e, w := m.drawTaken(t)
	delay := time.Duration(rapid.IntRange(0, 3).Draw(t, "delay")) * time.Second
	if w.batch != 0 {
		t.Skip("it was postponed before")
	}
	m.q.Retry(e, delay)
	w.attempted, w.attempts = true, w.attempts+1
	if w.due = time.Now().Add(delay); m.giveBack(e.Key, w) {
		w.due, w.attempts = time.Time{}, 0
	}
}

// resync repeats what the consumer's store held in some version.
func (m *model) resync(t *rapid.T) {
	if len(m.log) == 0 || m.listing {
		t.Skip("nothing ever stored, or listing")
	}
	d := rapid.SampledFrom(m.log).Draw(t, "stored").delta()
	d.Type = cache.Sync
	fits := m.fits(d.Key)
	if (m.q.Resync(ended(), d) == nil) != fits {
		t.Fatalf("Resync of %v: room is %v", d, fits)
	}
	if known, ok := m.store[d.Key]; fits && ok && m.newestOf(d.Key) == nil && known.ResourceVersion == d.Version.ResourceVersion {
		m.add(d)
	}
}

func (m *model) newestOf(key string) *work {
	if w := m.pending[key]; w != nil {
		return w
	}
	return m.taken[key]
}

func (m *model) fits(key string) bool {
	return m.pending[key] != nil || len(m.pending)+len(m.taken) < m.limit
}

func (m *model) add(d deltaqueue.Delta) {
	w := m.pending[d.Key]
	if w == nil {
		w = &work{initial: !m.complete, resumed: m.resumed, attempted: true}
		m.pending[d.Key] = w
	}
	w.deltas = deltaqueue.Merge(w.deltas, d)
	w.generation = m.generation
	if w.batch == 0 {
		w.due, w.attempts = time.Time{}, 0
	}
	w.attempted = w.attempted && m.complete
}

// check holds after every action.
func (m *model) check(t *rapid.T) {
	m.checkLen(t)
	m.checkKnown(t)
	m.checkSynced(t)
	m.checkResumePoint(t)
}

func (m *model) checkLen(t *rapid.T) {
	var want int64
	for _, under := range []map[string]*work{m.pending, m.taken} {
		for _, w := range under {
			for _, d := range w.deltas {
				want += d.Bytes
			}
		}
	}
	if entries, bytes := m.q.Len(); entries != len(m.pending)+len(m.taken) || bytes != want {
		t.Fatalf("Len is %d, %d bytes; want %d, %d", entries, bytes, len(m.pending)+len(m.taken), want)
	}
}

func (m *model) checkKnown(t *rapid.T) {
	if known := maps.Collect(m.known.All()); !maps.Equal(known, m.store) {
		t.Fatalf("known is %v, acknowledged %v", known, m.store)
	}
}

func (m *model) checkSynced(t *rapid.T) {
	want := m.complete
	for _, under := range []map[string]*work{m.pending, m.taken} {
		for _, w := range under {
			want = want && w.attempted
		}
	}
	select {
	case <-m.q.Synced():
		if !want {
			t.Fatal("synced too early")
		}
	default:
		if want {
			t.Fatal("not synced")
		}
	}
}

// checkResumePoint replays what happened since on what is acknowledged: that has
// to be the server's state, but for keys that were dropped.
func (m *model) checkResumePoint(t *rapid.T) {
	m.replay(t, m.q.SafeResumePoint())
	m.replay(t, m.q.ResumePoint())
}

func (m *model) replay(t *rapid.T, point string) {
	if point == "" {
		return // a list it is
	}
	since, _ := strconv.Atoi(point)
	told := maps.Clone(m.missed)
	maps.Copy(told, m.passed)
	for _, e := range m.log[since:] {
		told[e.key] = true
	}
	for key, version := range m.store {
		if !told[key] && m.server[key].version != version {
			t.Fatalf("a watch from %s does not tell that %s is not %v", point, key, version)
		}
	}
	for key := range m.server {
		if _, ok := m.store[key]; !ok && !told[key] {
			t.Fatalf("a watch from %s does not tell of %s", point, key)
		}
	}
}

// settle lets everything that happened be read and acknowledged.
func (m *model) settle(t *rapid.T) {
	if m.resumed && !m.complete && !m.listing {
		m.follow(t)
	}
	if m.dropped || m.droppedNow || len(m.missed) > 0 || len(m.unread) > 0 || !m.complete && !m.listing {
		m.startList()
	}
	for m.listing || m.position < len(m.log) || len(m.pending)+len(m.taken) > 0 {
		for _, key := range slices.Sorted(maps.Keys(m.taken)) {
			m.acknowledge(m.entries[key])
		}
		m.take(t)
		switch {
		case m.listing && len(m.unshown) > 0:
			m.show(t, false)
		case m.listing && len(m.pending)+len(m.taken) == 0:
			m.endList(t)
		case m.watching && m.position < len(m.log):
			m.watch(t)
		}
		time.Sleep(time.Second) // of the bubble: lets what is parked fall due
		m.check(t)
	}
	want := map[string]keytable.Version{}
	for key, e := range m.server {
		want[key] = e.version
	}
	if !maps.Equal(m.store, want) {
		t.Fatalf("acknowledged is %v, the server has %v", m.store, want)
	}
	if !m.lost && !maps.Equal(m.told, want) {
		t.Fatalf("told is %v, the server has %v", m.told, want)
	}
	if point := m.q.ResumePoint(); point != strconv.Itoa(len(m.log)) {
		t.Fatalf("the resume point is %q after all %d events", point, len(m.log))
	}
	if entries, bytes := m.q.Len(); entries != 0 || bytes != 0 {
		t.Fatalf("%d entries of %d bytes in an empty queue", entries, bytes)
	}
}
