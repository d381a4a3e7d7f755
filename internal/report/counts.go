package report

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/internal/moment"
)

// Counts is what an informer has done since it was made, in numbers.
type Counts struct {
	// Lists are the complete sets that the informer began to read, by the reason. A watch-list is
	// one of them.
	Lists ListCounts
	// Watches are the watches that it asked for, by the reason. A watch that goes on after the
	// initial events of a watch-list is none of them.
	Watches WatchCounts
	// Events are what watches told, by type. The initial events of a watch-list are Listed.
	Events EventCounts
	// Listed is the number of objects in lists.
	Listed int64
	// ReceivedBytes is the size of the lists and watches that came, as the server sent them:
	// compressed, if they were. It is without the bytes that HTTP and TLS add, and zero for a
	// ListerWatcher that decodes.
	ReceivedBytes int64
	// Restores is how often the server did not have the version that a watch went on from, or was
	// of another cluster: it was restored from a backup, replaced, or lags by seconds.
	Restores int64
	// HandlerCalls is how often the handler was called: once for a batch, or else once for all that
	// waited of one object. HandlerFailures is how often it failed or panicked.
	HandlerCalls, HandlerFailures int64
	// HandlerDuration has the seconds of calls: of every call, or of one in 16 while there are more
	// than 10,000 a second. BatchSize has the events of batches. They are nil before the first
	// call, and go on counting.
	HandlerDuration, BatchSize *Histogram
	// StoredBytes is the memory of what the informer remembers, in bytes.
	StoredBytes int64
	// TimeToSync is how long it took from the first Run until the informer was synced, zero before
	// that.
	TimeToSync time.Duration
	// CheckpointSaves is how often the checkpoint was saved, and CheckpointDuration how long the
	// newest save took.
	CheckpointSaves    int64
	CheckpointDuration time.Duration
}

// ListCounts are lists by the reason why they were begun.
type ListCounts struct {
	// Initial: nothing was known of the server yet in this Run.
	Initial int64
	// Expired: the server has forgotten the version of a watch, or of the list before.
	Expired int64
	// Restored: the server does not have the version, or is of another cluster.
	Restored int64
	// Lost: an event could not be read.
	Lost int64
	// Failed: a watch broke in a way that only a list repairs, or the list before has failed.
	Failed int64
}

// WatchCounts are watches by the reason why they were asked for.
type WatchCounts struct {
	// Listed: a list was read.
	Listed int64
	// Resumed: a checkpoint was loaded.
	Resumed int64
	// Ended: the server has ended the watch before, as it does every few minutes.
	Ended int64
	// Failed: the watch before has failed, or was refused.
	Failed int64
	// Quiet: the watch before began as a watch-list and has become quiet. It was ended so that its
	// memory is freed.
	Quiet int64
}

// EventCounts are the events of watches by type.
type EventCounts struct {
	Added, Modified, Deleted, Bookmarks int64
}

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
	events   [eventTypes]atomic.Int64
	listed   atomic.Int64
	received atomic.Int64
	lists    [Failed + 1]atomic.Uint32
	watches  [reasons - Failed]atomic.Uint32 // from Failed on
	restores atomic.Uint32
	saves    atomic.Uint32
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

// CountReceived counts bytes that came from the server.
func (p *Progress) CountReceived(bytes int) { p.counters.received.Add(int64(bytes)) }

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
func (c *counters) counts() Counts {
	list := func(r Reason) int64 { return int64(c.lists[r].Load()) }
	watched := func(r Reason) int64 { return int64(c.watches[r-Failed].Load()) }
	counts := Counts{
		Lists:              ListCounts{Initial: list(Initial), Expired: list(Expired), Restored: list(Restored), Lost: list(Lost), Failed: list(Failed)},
		Watches:            WatchCounts{Listed: watched(AfterList), Resumed: watched(Resumed), Ended: watched(Ended), Failed: watched(Failed), Quiet: watched(Quiet)},
		Events:             EventCounts{Added: c.events[added].Load(), Modified: c.events[modified].Load(), Deleted: c.events[deleted].Load(), Bookmarks: c.events[bookmark].Load()},
		Listed:             c.listed.Load(),
		ReceivedBytes:      c.received.Load(),
		Restores:           int64(c.restores.Load()),
		TimeToSync:         time.Duration(c.syncing.Load()),
		CheckpointSaves:    int64(c.saves.Load()),
		CheckpointDuration: time.Duration(c.saving.Load()),
	}
	if h := c.handling.Load(); h != nil {
		counts.HandlerCalls, counts.HandlerFailures = h.calls.Load(), h.failures.Load()
		counts.HandlerDuration, counts.BatchSize = &h.duration, h.batches.Load()
	}
	return counts
}

// Totals are what only grows of a Snapshot. Sizes and durations are zero in its Counts.
type Totals struct {
	Counts         Counts
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

// Plus returns the counts of two informers together: the sums, the longest TimeToSync and
// CheckpointDuration.
func (c Counts) Plus(o Counts) Counts {
	return Counts{
		Lists: ListCounts{
			Initial: c.Lists.Initial + o.Lists.Initial, Expired: c.Lists.Expired + o.Lists.Expired, Restored: c.Lists.Restored + o.Lists.Restored,
			Lost: c.Lists.Lost + o.Lists.Lost, Failed: c.Lists.Failed + o.Lists.Failed,
		},
		Watches: WatchCounts{
			Listed: c.Watches.Listed + o.Watches.Listed, Resumed: c.Watches.Resumed + o.Watches.Resumed,
			Ended: c.Watches.Ended + o.Watches.Ended, Failed: c.Watches.Failed + o.Watches.Failed, Quiet: c.Watches.Quiet + o.Watches.Quiet,
		},
		Events: EventCounts{
			Added: c.Events.Added + o.Events.Added, Modified: c.Events.Modified + o.Events.Modified,
			Deleted: c.Events.Deleted + o.Events.Deleted, Bookmarks: c.Events.Bookmarks + o.Events.Bookmarks,
		},
		Listed:             c.Listed + o.Listed,
		ReceivedBytes:      c.ReceivedBytes + o.ReceivedBytes,
		Restores:           c.Restores + o.Restores,
		HandlerCalls:       c.HandlerCalls + o.HandlerCalls,
		HandlerFailures:    c.HandlerFailures + o.HandlerFailures,
		HandlerDuration:    c.HandlerDuration.plus(o.HandlerDuration),
		BatchSize:          c.BatchSize.plus(o.BatchSize),
		StoredBytes:        c.StoredBytes + o.StoredBytes,
		TimeToSync:         max(c.TimeToSync, o.TimeToSync),
		CheckpointSaves:    c.CheckpointSaves + o.CheckpointSaves,
		CheckpointDuration: max(c.CheckpointDuration, o.CheckpointDuration),
	}
}
