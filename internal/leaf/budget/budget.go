// Package budget is an account of bytes that several informers share.
//
// What is taken counts until it is given back. A caller that finds the account spent
// makes a claim and waits for it: claims are granted in their order, so that a small one
// does not pass a large one for ever. Each queue has one at a time.
//
// Lists take a part of it, whatever else is taken: the server goes on sending to a
// client that does not read. They wait for each other in groups, which take turns.
package budget

import (
	"container/list"
	"sync"
)

// Budget is safe for concurrent use. It owns no goroutine.
type Budget struct {
	limit int64

	mu sync.Mutex
	// inUse is what was taken, claims that were granted included.
	inUse, peak int64
	// claims holds those that wait, the oldest first.
	claims *list.List
	lists  lists
}

// New returns a budget of limit bytes.
func New(limit int64) *Budget {
	return &Budget{limit: limit, claims: list.New(), lists: newLists(limit)}
}

// Claim is a demand for bytes that were not to be had.
type Claim struct {
	// Granted is closed when the bytes were taken.
	Granted chan struct{}
	bytes   int64
	place   *list.Element // nil once it was granted or withdrawn
}

// TryTake takes bytes if they are within the limit and no claim waits for others.
func (b *Budget) TryTake(bytes int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.claims.Len() > 0 || !b.fitsLocked(bytes) {
		return false
	}
	b.takeLocked(bytes)
	return true
}

// Take takes bytes whatever the limit: there is always one object that passes, or
// a large one would never.
func (b *Budget) Take(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.takeLocked(bytes)
}

// Claim asks for bytes. It is granted at once where they are to be had.
func (b *Budget) Claim(bytes int64) *Claim {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &Claim{Granted: make(chan struct{}), bytes: bytes}
	c.place = b.claims.PushBack(c)
	b.grantLocked()
	return c
}

// Withdraw ends a claim. What it was granted is given back.
func (b *Budget) Withdraw(c *Claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.place != nil {
		b.claims.Remove(c.place)
		c.place = nil
	} else {
		b.inUse -= c.bytes
	}
	b.grantLocked()
}

// Give gives back what was taken.
func (b *Budget) Give(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inUse -= bytes
	b.grantLocked()
}

// InUse is what is taken, in bytes.
func (b *Budget) InUse() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inUse
}

// Peak is the most that ever was in use, in bytes.
func (b *Budget) Peak() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.peak
}

// Limit is what may be in use, in bytes.
func (b *Budget) Limit() int64 { return b.limit }

// fitsLocked: something larger than the limit fits where nothing else is but lists.
func (b *Budget) fitsLocked(bytes int64) bool {
	return b.inUse+bytes <= b.limit || b.inUse-b.lists.inUse <= 0
}

func (b *Budget) takeLocked(bytes int64) {
	b.inUse += bytes
	b.peak = max(b.peak, b.inUse)
}

func (b *Budget) grantLocked() {
	for front := b.claims.Front(); front != nil; front = b.claims.Front() {
		c := front.Value.(*Claim)
		if !b.fitsLocked(c.bytes) {
			return
		}
		b.takeLocked(c.bytes)
		b.claims.Remove(front)
		c.place = nil
		close(c.Granted)
	}
}
