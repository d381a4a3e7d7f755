package deltaqueue_test

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// TestEveryChangeModel drives a queue that keeps every change with random actions of a
// server, a reflector and the consumer, and holds it against a plain list.
func TestEveryChangeModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// rapid would ask for a deadline, which a bubble does not have.
		rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) {
			m := newListModel(t)
			t.Repeat(map[string]func(*rapid.T){
				"":         m.check,
				"change":   m.change,
				"change ":  m.change, // twice as often
				"list":     m.list,
				"read":     m.read,
				"read ":    m.read,
				"take":     m.take,
				"done":     m.done,
				"skip":     m.skip,
				"retry":    m.retry,
				"drop":     m.drop,
				"let pass": func(*rapid.T) { time.Sleep(time.Second) },
			})
			m.settle(t)
		})
	})
}

// listModel is a queue with EveryChange as a list of waiting deltas. It shares the server, the
// reflector and the acknowledged versions with the model of other queues.
type listModel struct {
	model
	ready []*listed
	// parked have failed, in the order of their failures, and nothing newer came.
	parked []*listed
	with   *listed // with the consumer, as entry
	entry  *deltaqueue.Entry
}

type listed struct {
	key    string
	deltas []deltaqueue.Delta
	due    time.Time
}

func (l *listed) newest() deltaqueue.Delta { return l.deltas[len(l.deltas)-1] }

func newListModel(t *rapid.T) *listModel {
	m := &listModel{model: model{
		known:  keytable.New(),
		limit:  rapid.IntRange(1, 8).Draw(t, "limit"),
		server: map[string]event{},
		store:  map[string]keytable.Version{},
		missed: map[string]bool{},
		passed: map[string]bool{},
	}}
	m.q = deltaqueue.New(deltaqueue.Options{Known: m.known, Limit: m.limit, SkipUnchanged: true, EveryChange: true})
	return m
}

// all is what is not acknowledged, per key oldest first.
func (m *listModel) all() (all []*listed) {
	if m.with != nil {
		all = append(all, m.with)
	}
	return append(append(all, m.parked...), m.ready...)
}

func (m *listModel) newestOf(key string) (newest *listed) {
	for _, l := range m.all() {
		if l.key == key {
			newest = l
		}
	}
	return newest
}

func at(in []*listed, key string) int {
	return slices.IndexFunc(in, func(l *listed) bool { return l.key == key })
}

func (m *listModel) fits(key string) bool {
	return at(m.parked, key) >= 0 || len(m.all()) < m.limit
}

func (m *listModel) add(d deltaqueue.Delta) {
	l := &listed{key: d.Key}
	if i := at(m.parked, d.Key); i >= 0 {
		l = m.parked[i]
		m.parked = slices.Delete(m.parked, i, i+1)
	}
	l.deltas = deltaqueue.Merge(l.deltas, d)
	m.ready = append(m.ready, l)
}

func (m *listModel) list(t *rapid.T) {
	if m.listing && !rapid.Bool().Draw(t, "give up") {
		t.Skip("listing")
	}
	m.startList()
	m.unshown = rapid.Permutation(m.unshown).Draw(t, "order")
}

func (m *listModel) startList() {
	m.listing, m.watching, m.droppedNow = true, false, false
	m.snapshot, m.listed = maps.Clone(m.server), len(m.log)
	m.unshown = slices.Sorted(maps.Keys(m.snapshot))
	m.q.BeginGeneration()
}

func (m *listModel) read(t *rapid.T) {
	switch {
	case m.listing && len(m.unshown) > 0:
		m.show(t)
	case m.listing:
		m.endList(t)
	case m.watching && m.position < len(m.log):
		m.watch(t)
	default:
		t.Skip("nothing to read")
	}
}

func (m *listModel) show(t *rapid.T) {
	d := m.snapshot[m.unshown[0]].delta()
	d.Type = cache.Replaced
	known, ok := m.known.Get(d.Key)
	skip := ok && known == d.Version
	if l := m.newestOf(d.Key); l != nil {
		skip = l.newest().Type != cache.Deleted && l.newest().Version == d.Version
	}
	if !skip && !m.fits(d.Key) {
		if m.q.Put(ended(), d) == nil {
			t.Fatalf("Put of %v: there is no room", d)
		}
		return // and show it later
	}
	if shown := shown(m.q, d.Key, d.Version); shown != skip {
		t.Fatalf("%v: shown is %v", d, shown)
	}
	if !skip {
		if err := m.q.Put(ended(), d); err != nil {
			t.Fatalf("Put of %v: %v", d, err)
		}
		m.add(d)
	}
	m.unshown = m.unshown[1:]
}

func (m *listModel) endList(t *rapid.T) {
	gone := map[string]bool{}
	for key := range m.known.All() {
		gone[key] = true
	}
	for _, l := range m.all() {
		gone[l.key] = m.newestOf(l.key).newest().Type != cache.Deleted
	}
	maps.DeleteFunc(gone, func(key string, lives bool) bool {
		_, shown := m.snapshot[key]
		return !lives || shown
	})
	var swept []string
	err := m.q.Sweep(ended(), func(key string, _ keytable.Version) {
		if !gone[key] {
			t.Fatalf("swept %s, which the server has, or which was deleted", key)
		}
		swept = append(swept, key)
	})
	for i, key := range swept {
		if err == nil || i < len(swept)-1 { // what there was no room for is the last
			m.add(deltaqueue.Delta{Type: cache.Deleted, Key: key})
		}
	}
	switch {
	case err == nil && len(swept) < len(gone):
		t.Fatalf("swept %v of %v", swept, gone)
	case err != nil && m.fits(swept[len(swept)-1]):
		t.Fatalf("no room for the deletion of %v", swept)
	case err != nil: // the reflector lists again
		m.startList()
		return
	}
	m.q.EndGeneration()
	m.q.Observed(rv.At(strconv.Itoa(m.listed)), 0)
	m.listing, m.watching, m.complete, m.position = false, true, true, m.listed
	m.dropped = m.droppedNow
}

func (m *listModel) watch(t *rapid.T) {
	d := m.log[m.position].delta()
	if m.q.Stale(d) {
		t.Fatalf("%v is stale", d)
	}
	if fits := m.fits(d.Key); (m.q.Put(ended(), d) == nil) != fits {
		t.Fatalf("Put of %v: room is %v", d, fits)
	} else if !fits {
		return
	}
	m.add(d)
	m.position++
	m.q.Observed(rv.At(d.Version.ResourceVersion), 0)
}

func (m *listModel) take(t *rapid.T) {
	if m.with != nil {
		t.Skip("the consumer is busy")
	}
	slices.SortStableFunc(m.parked, func(a, b *listed) int { return a.due.Compare(b.due) })
	for len(m.parked) > 0 && !m.parked[0].due.After(time.Now()) {
		m.ready, m.parked = append(m.ready, m.parked[0]), m.parked[1:]
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	batch, err := m.q.TakeBatch(ctx, nil, rapid.IntRange(1, 3).Draw(t, "most"))
	if len(m.ready) == 0 {
		if err == nil {
			t.Fatalf("took %v, though nothing waits", batch[0].Deltas)
		}
		return
	}
	m.with, m.ready = m.ready[0], m.ready[1:]
	if err != nil || len(batch) != 1 || batch[0].Key != m.with.key || !slices.Equal(untimed(batch[0].Deltas), m.with.deltas) {
		t.Fatalf("took %v, %v; want %v", batch, err, m.with.deltas)
	}
	m.entry = batch[0]
}

// back takes the entry from the consumer.
func (m *listModel) back(t *rapid.T) (e *deltaqueue.Entry, l *listed) {
	if m.with == nil {
		t.Skip("nothing is taken")
	}
	e, l, m.with = m.entry, m.with, nil
	return e, l
}

func (m *listModel) done(t *rapid.T) {
	e, _ := m.back(t)
	m.q.Done(e)
	if m.store[e.Key] = e.Version; e.Deleted() {
		delete(m.store, e.Key)
	}
	if m.store[e.Key] == m.server[e.Key].version {
		delete(m.missed, e.Key)
	}
}

func (m *listModel) skip(t *rapid.T) {
	if m.with != nil && m.entry.Deleted() {
		t.Skip("a deletion counts, whatever becomes of its object")
	}
	e, _ := m.back(t)
	if len(e.Deltas) > 1 {
		delete(m.store, e.Key)
	}
	m.q.Skip(e, func() {})
	m.missed[e.Key] = true
}

func (m *listModel) drop(t *rapid.T) {
	e, _ := m.back(t)
	m.q.Drop(e)
	m.dropped, m.droppedNow = true, true
	m.passed[e.Key] = true
}

func (m *listModel) retry(t *rapid.T) {
	e, l := m.back(t)
	delay := time.Duration(rapid.IntRange(0, 3).Draw(t, "delay")) * time.Second
	m.q.Retry(e, delay)
	i := at(m.ready, l.key)
	if i < 0 {
		l.due = time.Now().Add(delay)
		m.parked = append(m.parked, l)
		return
	}
	for _, d := range m.ready[i].deltas {
		l.deltas = deltaqueue.Merge(l.deltas, d)
	}
	m.ready[i] = l
}

func (m *listModel) check(t *rapid.T) {
	var want int64
	for _, l := range m.all() {
		for _, d := range l.deltas {
			want += d.Bytes
		}
	}
	if entries, bytes := m.q.Len(); entries != len(m.all()) || bytes != want {
		t.Fatalf("Len is %d, %d bytes; want %d, %d", entries, bytes, len(m.all()), want)
	}
	m.checkKnown(t)
	m.checkResumePoint(t)
}

// settle has everything read and acknowledged.
func (m *listModel) settle(t *rapid.T) {
	if m.dropped || m.droppedNow || len(m.missed) > 0 || !m.complete && !m.listing {
		m.startList()
	}
	for m.listing || m.position < len(m.log) || len(m.all()) > 0 {
		if m.with != nil {
			m.done(t)
		}
		m.take(t)
		if m.listing || m.position < len(m.log) {
			m.read(t)
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
	if point := m.q.ResumePoint(); point != strconv.Itoa(len(m.log)) {
		t.Fatalf("the resume point is %q after all %d events", point, len(m.log))
	}
}
