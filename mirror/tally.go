package main

import (
	"sync"

	"github.com/rvinformer/informer"
)

// tally counts what came of the objects of one feed.
type tally struct {
	mu  sync.Mutex
	sum counts
}

// counts is a tally at one moment. All of it is in the database, or was there already.
type counts struct {
	added, updated, deleted, unchanged int64
	handled                            int64 // all events that were taken in: the sign of progress
}

// Add counts what was taken in.
func (t *tally) Add(events []informer.Event) {
	c := counts{handled: int64(len(events))}
	for _, e := range events {
		switch e.Type {
		case informer.Added:
			c.added++
		case informer.Updated:
			c.updated++
		case informer.Deleted:
			c.deleted++
		case informer.Synced:
			c.unchanged++
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum = t.sum.plus(c)
}

// Counts returns the sum so far.
func (t *tally) Counts() counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sum
}

func (c counts) plus(d counts) counts {
	return counts{c.added + d.added, c.updated + d.updated, c.deleted + d.deleted, c.unchanged + d.unchanged, c.handled + d.handled}
}

func (c counts) minus(d counts) counts {
	return counts{c.added - d.added, c.updated - d.updated, c.deleted - d.deleted, c.unchanged - d.unchanged, c.handled - d.handled}
}

// written is the number of changes that reached the database.
func (c counts) written() int64 { return c.added + c.updated + c.deleted }
