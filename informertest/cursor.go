package informertest

import "sort"

// maxBehind is how many writes a watch may have unread when the history is compacted and still go
// on. A kube-apiserver buffers events per watch too, so a compaction does not disturb a watch that
// keeps up.
const maxBehind = 1000

// maxTake is how many writes a watch takes from the history at once.
const maxTake = 256

type cursorState int

const (
	cursorReading cursorState = iota
	cursorBehind              // a compaction took writes that it had not read
	cursorEnded               // the sequence of resource versions was set back, or the resource removed
)

// cursor is the place of one watch in the history of a table. Reading from the shared history
// instead of a queue of its own, a slow watch costs the server nothing. Guarded by the lock of the
// store.
type cursor struct {
	store *store
	table *table
	state cursorState
	// Writes up to this resource version are already known to the watch, or none of its business.
	rv uint64
	// From which resource version the watch is, if that was not reached when it began; else 0.
	future uint64
	// Position of the next write to read, after the backlog.
	next uint64
	// Unread writes that a compaction took out of the table's history.
	backlog []event
}

// keep saves what the cursor has not read yet from a compaction that is about to begin.
func (c *cursor) keep(t *table) {
	if c.state != cursorReading {
		return
	}
	unread := t.log[c.next-t.first:]
	if len(c.backlog)+len(unread) > maxBehind {
		c.state, c.backlog = cursorBehind, nil
		return
	}
	c.backlog = append(c.backlog, unread...)
	c.next = t.end()
}

// reading is what a cursor has for its watch.
type reading struct {
	state  cursorState
	events []event
	// With these events, the watch knows everything up to this resource version.
	rv uint64
	// Closed at the next write; nil if there are events.
	changed <-chan struct{}
	// The watch is from a resource version that is not passed yet: it gets no bookmark.
	silent bool
	// The resource version that the server has. It may be older than the watch.
	reached uint64
}

// take returns the next writes, which the caller must not change: those that a replica knows, if
// one is given.
func (c *cursor) take(old *replica) reading {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	if c.state != cursorReading {
		return reading{state: c.state, rv: c.rv}
	}
	reached := c.store.reachedLocked(old)
	for {
		events := c.advance(reached)
		if len(events) == 0 {
			break
		}
		news := events[sort.Search(len(events), func(i int) bool { return events[i].rv > c.rv }):]
		if len(news) > 0 {
			c.rv = news[len(news)-1].rv
			return reading{events: news, rv: c.rv}
		}
	}
	if c.table.removed && len(c.backlog) == 0 && c.next == c.table.end() {
		return reading{state: cursorEnded, rv: c.rv}
	}
	c.rv = max(c.rv, reached)
	return reading{rv: c.rv, reached: reached, changed: c.table.changed.wait(), silent: c.future >= reached && c.future > 0}
}

// advance passes by the next writes that are not newer than a resource version, and returns them.
func (c *cursor) advance(reached uint64) []event {
	if len(c.backlog) > 0 {
		events := upTo(c.backlog, reached)
		c.backlog = c.backlog[len(events):]
		return events
	}
	// Writes are only ever appended behind this part of the history, and a compaction leaves it in
	// place.
	events := upTo(c.table.log[c.next-c.table.first:], reached)
	c.next += uint64(len(events))
	return events
}

// upTo is the begin of some writes that are not newer than a resource version. Those of one version
// stay together.
func upTo(events []event, rv uint64) []event {
	if len(events) > maxTake {
		rv = min(rv, events[maxTake-1].rv)
	}
	n := sort.Search(len(events), func(i int) bool { return events[i].rv > rv })
	return events[:n:n]
}

// close forgets the cursor.
func (c *cursor) close() {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	delete(c.table.cursors, c)
}
