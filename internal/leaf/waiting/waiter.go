package waiting

import "github.com/rvinformer/informer/internal/leaf/rv"

// waiter is a caller.
type waiter struct {
	resourceVersion string
	// place is where it stands in the heap, or nowhere.
	place int
	// done gets the end of the wait, once.
	done chan error
}

// nowhere is the place of a waiter that is not in the line.
const nowhere = -1

// waiters is a heap.Interface, by resource version. All of the versions have an order.
type waiters []*waiter

func (w waiters) Len() int { return len(w) }
func (w waiters) Less(i, j int) bool {
	return rv.Compare(w[i].resourceVersion, w[j].resourceVersion) == rv.Older
}

func (w waiters) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].place, w[j].place = i, j
}

func (w *waiters) Push(x any) {
	added := x.(*waiter)
	added.place = len(*w)
	*w = append(*w, added)
}

func (w *waiters) Pop() any {
	last := len(*w) - 1
	removed := (*w)[last]
	removed.place = nowhere
	(*w)[last] = nil
	*w = (*w)[:last]
	return removed
}
