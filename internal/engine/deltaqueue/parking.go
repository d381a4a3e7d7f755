package deltaqueue

import (
	"container/heap"
	"math"
	"time"
)

// parking holds the entries that will be tried again later.
//
// Invariant: it has the entries whose stage is parked or postponed, and no others.
type parking struct {
	heap parkedHeap
	// batches is the number of the newest batch that was postponed, and turns that of
	// the entries that were parked.
	batches, turns uint64
}

// delayedBatch is the number of the batch of all entries that were delayed.
const delayedBatch = math.MaxUint64

func (p *parking) newBatch() uint64 {
	p.batches++
	return p.batches
}

func (p *parking) add(e *Entry, as stage, due time.Time) {
	p.turns++
	e.stage, e.due, e.turn = as, due, p.turns
	heap.Push(&p.heap, e)
}

func (p *parking) remove(e *Entry) { heap.Remove(&p.heap, e.heapIndex) }

// unparkDueLocked makes the parked entries ready that are due, and returns how
// long it is until the next one is; zero if there is none.
func (q *Queue) unparkDueLocked() time.Duration {
	p := &q.parking
	if len(p.heap) == 0 {
		return 0
	}
	now := time.Now()
	for len(p.heap) > 0 {
		if wait := p.heap[0].due.Sub(now); wait > 0 {
			return wait
		}
		q.readyLocked(heap.Pop(&p.heap).(*Entry))
	}
	return 0
}

// parkedHeap orders the parked and postponed entries by the time they are due, and
// those that are due together as they were given back (container/heap).
type parkedHeap []*Entry

func (h parkedHeap) Len() int { return len(h) }
func (h parkedHeap) Less(i, j int) bool {
	if c := h[i].due.Compare(h[j].due); c != 0 {
		return c < 0
	}
	return h[i].turn < h[j].turn
}
func (h parkedHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = i, j
}

func (h *parkedHeap) Push(x any) {
	e := x.(*Entry)
	e.heapIndex = len(*h)
	*h = append(*h, e)
}

func (h *parkedHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return e
}
