package informer

import (
	"fmt"

	"github.com/rvinformer/informer/internal/budget"
)

// Budget is the number of bytes of undelivered objects that one or more informers
// allow themselves. An object counts from when it was read until its handler has
// returned, with the memory that its encoding takes. An informer reads no
// further while its budget is spent, unless nothing waits for its handler: so each
// gets on, whatever the others do, and an object larger than all of the budget
// passes. What is in use may be more than the limit by one object per informer.
//
// It is safe for concurrent use.
type Budget struct {
	shared *budget.Budget
}

// NewBudget returns a budget of so many bytes. It panics if that is not positive.
func NewBudget(bytes int64) *Budget {
	if bytes <= 0 {
		panic(fmt.Sprintf("a budget of %d bytes", bytes))
	}
	return &Budget{budget.New(bytes)}
}

// defaultBytes is the limit of the budget of all informers that have no other.
const defaultBytes = 16 << 20

var defaultBudget = NewBudget(defaultBytes)

func (b *Budget) orDefault() *Budget {
	if b == nil {
		return defaultBudget
	}
	return b
}

// InUse is the number of bytes in use.
func (b *Budget) InUse() int64 { return b.shared.InUse() }

// Peak is the greatest number of bytes that was in use at one time.
func (b *Budget) Peak() int64 { return b.shared.Peak() }

// Limit is the number of bytes that may be in use.
func (b *Budget) Limit() int64 { return b.shared.Limit() }
