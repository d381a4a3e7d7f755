package informer

import (
	"fmt"

	"github.com/rvinformer/informer/internal/leaf/budget"
)

// Budget is the number of bytes of undelivered objects that one or more informers
// allow themselves. An object counts from when it was read until its handler has
// returned, with the memory that its encoding takes. An informer reads no
// further while its budget is spent, unless nothing waits for its handler: so each
// gets on, whatever the others do, and an object larger than all of the budget
// passes. What is in use may be more than the limit by one object per informer, and by
// the lists.
//
// # Lists
//
// A list under way, which is a page of one or the initial events of a watch-list, takes
// 256 KiB for its buffers, or a 64th of the budget where that is less. All lists together
// take up to a quarter of the budget, whatever objects take. So the default budget of
// 16 MiB has 16 lists under way at a time, however many informers start at once.
//
// The other lists wait and are asked for in turn, server by server: each server has the
// same share of the time, however many informers it has and however large their sets are.
// A list that receives nothing gives up its turn, after 50 ms if its server has not
// answered yet, so that dead and slow servers hold up no other. While a server answers
// nothing, it is asked for another list each second. A list whose handler, Transform
// or index function blocks gives up its turn too, after 50 ms, or up to a second where
// hundreds of them have done so.
// The part of such a list that the server has sent already stays in the connection meanwhile.
//
// Bytes that a server has sent and that are not read yet do not count. With HTTP/2 they are less
// than 256 KiB, except for a list whose handler keeps up and that needs more over a long
// link: up to 4 MiB, as with client-go. A list that is left unread for two seconds is
// dropped, and asked for again with the smaller window.
//
// It is safe for concurrent use.
type Budget budget.Budget

// NewBudget returns a budget of so many bytes. It panics if that is not positive.
func NewBudget(bytes int64) *Budget {
	if bytes <= 0 {
		panic(fmt.Sprintf("a budget of %d bytes", bytes))
	}
	return (*Budget)(budget.New(bytes))
}

// defaultBytes is the limit of the budget of all informers that have no other.
const defaultBytes = 16 << 20

var defaultBudget = NewBudget(defaultBytes)

// DefaultBudget returns the Budget of all informers that name none.
func DefaultBudget() *Budget { return defaultBudget }

func (b *Budget) orDefault() *Budget {
	if b == nil {
		return defaultBudget
	}
	return b
}

// shared returns what informers take from. Package objectcache converts a Budget, too.
func (b *Budget) shared() *budget.Budget { return (*budget.Budget)(b) }

// InUse is the number of bytes in use.
func (b *Budget) InUse() int64 { return b.shared().InUse() }

// Peak is the greatest number of bytes that was in use at one time.
func (b *Budget) Peak() int64 { return b.shared().Peak() }

// Limit is the number of bytes that may be in use.
func (b *Budget) Limit() int64 { return b.shared().Limit() }
