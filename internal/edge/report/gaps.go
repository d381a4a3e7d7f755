package report

import "sync/atomic"

// Gaps counts what only a complete list can repair: an object that could not be read, or a server
// that took the place of another.
//
// Invariant: a gap is counted before the queue can have a safe resume point that covers it. So a
// safe resume point is whole if no gap was counted between the beginning of the list that it rests
// on and its own reading.
type Gaps struct {
	n      atomic.Int64
	missed atomic.Bool
}

// Add counts a gap.
func (g *Gaps) Add() { g.n.Add(1) }

// Remove takes back an Add: the watch has repaired the gap.
func (g *Gaps) Remove() { g.n.Add(-1) }

// Count returns the number of gaps so far.
func (g *Gaps) Count() int64 { return g.n.Load() }

// Miss notes that the object of an event could not be decoded. Nothing tells of it again if it does
// not change, so that a list has to follow the watch.
func (g *Gaps) Miss() { g.missed.Store(true) }

// BeginList notes that a list begins, which shows what was missed before.
func (g *Gaps) BeginList() { g.missed.Store(false) }

// Missed reports whether an object was missed since the last list began.
func (g *Gaps) Missed() bool { return g.missed.Load() }
