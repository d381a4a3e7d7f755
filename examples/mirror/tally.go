package main

import "sync/atomic"

// tally counts what came of the objects of one feed. Added, updated and deleted are counted when they are committed,
// unchanged when it is seen.
type tally struct {
	added, updated, deleted, unchanged atomic.Int64
	handled                            atomic.Int64 // calls of the handler that returned: the sign of progress
}

// counts is a tally at one moment.
type counts struct {
	added, updated, deleted, unchanged, handled int64
}

func (t *tally) counts() counts {
	return counts{
		added:     t.added.Load(),
		updated:   t.updated.Load(),
		deleted:   t.deleted.Load(),
		unchanged: t.unchanged.Load(),
		handled:   t.handled.Load(),
	}
}

func (c counts) plus(d counts) counts {
	return counts{c.added + d.added, c.updated + d.updated, c.deleted + d.deleted, c.unchanged + d.unchanged, c.handled + d.handled}
}

func (c counts) minus(d counts) counts {
	return counts{c.added - d.added, c.updated - d.updated, c.deleted - d.deleted, c.unchanged - d.unchanged, c.handled - d.handled}
}

// written is the number of changes that reached the database.
func (c counts) written() int64 { return c.added + c.updated + c.deleted }
