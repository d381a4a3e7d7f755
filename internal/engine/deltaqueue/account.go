package deltaqueue

import "github.com/rvinformer/informer/internal/leaf/budget"

// account is the bytes of the objects in the queue.
//
// Invariant: the queue has taken so many bytes of the budget, and those that it has reserved for a
// delta that is about to be queued. Each reservation is passed to grow, or is given back to the
// budget.
type account struct {
	budget *budget.Budget
	bytes  int64
	// starved: see Options.
	starved func(bool)
}

// grow notes that the objects in the queue have grown, or shrunk, by so many bytes. Reserved bytes
// were taken of the budget before.
func (a *account) grow(bytes, reserved int64) {
	a.bytes += bytes
	switch more := bytes - reserved; {
	case more > 0:
		a.budget.Take(more)
	case more < 0:
		a.budget.Give(-more)
	}
}
