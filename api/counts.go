package api

import "time"

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
	// Unselected is how often the server sent an object that does not match the selectors of the list
	// or the watch, as far as labels, name and namespace show it. It is not delivered.
	Unselected int64
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
	// StoredBytes is the memory that the informer takes to remember objects, in bytes.
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
		Unselected:         c.Unselected + o.Unselected,
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
