package report

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/moment"
)

// Reason is why a list or a watch is begun.
type Reason uint8

// The reasons of lists, Failed, which is of both, and those of watches.
const (
	Initial Reason = iota
	Expired
	Restored
	Lost
	Failed
	AfterList
	Resumed
	Ended
	Quiet
	reasons
)

// The events that are counted.
const (
	added = iota
	modified
	deleted
	bookmark
	eventTypes
)

// counters are the Counts of an informer that are written as it goes. Each is written by an atomic
// add or store.
type counters struct {
	events [eventTypes]atomic.Int64
	listed atomic.Int64
	// unselected is rare.
	unselected atomic.Int64
	received   atomic.Int64
	lists      [Failed + 1]atomic.Uint32
	watches    [reasons - Failed]atomic.Uint32 // from Failed on
	restores   atomic.Uint32
	saves      atomic.Uint32
	// saving is the duration of the newest save.
	saving atomic.Int64
	// syncing is the time to sync, zero before that.
	syncing atomic.Int64
	// handling is nil before the first call.
	handling atomic.Pointer[handling]
}

// CountList counts a list that begins.
func (p *Progress) CountList(why Reason) { p.counters.lists[min(why, Failed)].Add(1) }

// CountWatch counts a watch that is asked for.
func (p *Progress) CountWatch(why Reason) { p.counters.watches[max(why, Failed)-Failed].Add(1) }

// CountListed counts objects of a list.
func (p *Progress) CountListed(objects int64) { p.counters.listed.Add(objects) }

// CountUnselected counts an object that the server has sent although it was not selected.
func (p *Progress) CountUnselected() { p.counters.unselected.Add(1) }

// CountReceived counts bytes that came from the server.
func (p *Progress) CountReceived(bytes int) {
	p.counters.received.Add(int64(bytes))
	if p.Whole != nil {
		p.Whole.CountReceived(bytes)
	}
}

// Received returns how many bytes came from the server.
func (p *Progress) Received() int64 { return p.counters.received.Load() }

// CountRestore counts that the server was found to be another, or in another state.
func (p *Progress) CountRestore() { p.counters.restores.Add(1) }

// CountEvent counts an event of a watch.
func (p *Progress) CountEvent(event watch.EventType) {
	at := modified
	switch event {
	case watch.Added:
		at = added
	case watch.Deleted:
		at = deleted
	case watch.Bookmark:
		at = bookmark
	}
	p.counters.events[at].Add(1)
}

// NoteSynced notes that the informer is synced. Only the first call counts.
func (p *Progress) NoteSynced() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.observations.cleared = moment.Now()
	if p.counters.syncing.CompareAndSwap(0, max(1, int64(moment.Now().Since(p.began)))) {
		p.greetLocked()
	}
}

// counts returns the counts. StoredBytes is not known here.
func (c *counters) counts() api.Counts {
	list := func(r Reason) int64 { return int64(c.lists[r].Load()) }
	watched := func(r Reason) int64 { return int64(c.watches[r-Failed].Load()) }
	counts := api.Counts{
		Lists:              api.ListCounts{Initial: list(Initial), Expired: list(Expired), Restored: list(Restored), Lost: list(Lost), Failed: list(Failed)},
		Watches:            api.WatchCounts{Listed: watched(AfterList), Resumed: watched(Resumed), Ended: watched(Ended), Failed: watched(Failed), Quiet: watched(Quiet)},
		Events:             api.EventCounts{Added: c.events[added].Load(), Modified: c.events[modified].Load(), Deleted: c.events[deleted].Load(), Bookmarks: c.events[bookmark].Load()},
		Listed:             c.listed.Load(),
		ReceivedBytes:      c.received.Load(),
		Unselected:         c.unselected.Load(),
		Restores:           int64(c.restores.Load()),
		TimeToSync:         time.Duration(c.syncing.Load()),
		CheckpointSaves:    int64(c.saves.Load()),
		CheckpointDuration: time.Duration(c.saving.Load()),
	}
	if h := c.handling.Load(); h != nil {
		counts.HandlerCalls, counts.HandlerFailures = h.calls.Load(), h.failures.Load()
		counts.HandlerDuration, counts.BatchSize = (*api.Histogram)(h.duration), (*api.Histogram)(h.batches.Load())
	}
	return counts
}

// Totals are what only grows of a Snapshot. Sizes and durations are zero in its Counts.
type Totals struct {
	Counts         api.Counts
	Skipped, Stale int64
}

// Totals returns what only grows.
func (s *Snapshot) Totals() Totals {
	t := Totals{s.Counts, s.Skipped, s.Stale}
	t.Counts.StoredBytes, t.Counts.TimeToSync, t.Counts.CheckpointDuration = 0, 0, 0
	return t
}

// Add adds what others have counted.
func (s *Snapshot) Add(t Totals) {
	s.Counts, s.Skipped, s.Stale = s.Counts.Plus(t.Counts), s.Skipped+t.Skipped, s.Stale+t.Stale
}

// Plus returns the sums.
func (t Totals) Plus(o Totals) Totals {
	return Totals{t.Counts.Plus(o.Counts), t.Skipped + o.Skipped, t.Stale + o.Stale}
}
