package informertest

// maxBehind is how many writes a watch may have unread when the history is compacted and still go on. A kube-apiserver
// buffers events per watch too, so a compaction does not disturb a watch that keeps up.
const maxBehind = 1000

// maxTake is how many writes a watch takes from the history at once.
const maxTake = 256

type cursorState int

const (
	cursorReading cursorState = iota
	cursorBehind              // a compaction took writes that it had not read
	cursorEnded               // the sequence of resource versions was set back
)

// cursor is the place of one watch in the history of a table. Reading from the shared history instead of a queue of its
// own, a slow watch costs the server nothing. Guarded by the lock of the store.
type cursor struct {
	store *store
	table *table
	state cursorState
	// Writes up to this resource version are already known to the watch.
	rv uint64
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
}

// take returns the next writes, which the caller must not change.
func (c *cursor) take() reading {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	if c.state != cursorReading {
		return reading{state: c.state, rv: c.rv}
	}
	if n := min(len(c.backlog), maxTake); n > 0 {
		events := c.backlog[:n]
		c.backlog = c.backlog[n:]
		return c.read(events)
	}
	unread := c.table.log[c.next-c.table.first:]
	if n := min(len(unread), maxTake); n > 0 {
		c.next += uint64(n)
		// Writes are only ever appended behind this part of the history, and a compaction leaves it in place.
		return c.read(unread[:n:n])
	}
	c.rv = max(c.rv, c.store.rv)
	return reading{rv: c.rv, changed: c.table.wait()}
}

func (c *cursor) read(events []event) reading {
	c.rv = events[len(events)-1].rv
	return reading{events: events, rv: c.rv}
}

// close forgets the cursor.
func (c *cursor) close() {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	delete(c.table.cursors, c)
}
