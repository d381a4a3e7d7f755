package deltaqueue

// hiring is about the consumers that the queue has started.
//
// Invariant: hired is at most most. Each consumer that is hired has to leave, once.
type hiring struct {
	// start starts a consumer; nil if consumers are none of the queue's business.
	start func()
	most  int
	// hired counts the consumers that were started and are not gone, and idle all that wait in
	// TakeBatch.
	hired, idle int
}

func (h *hiring) leave() {
	if h.start != nil {
		h.hired--
	}
}

// hireLocked starts a consumer if there is something to take and none waits, or if
// there is none that waits for parked entries.
func (q *Queue) hireLocked() {
	h := &q.hiring
	needed := q.canTakeLocked() && h.idle == 0 || len(q.parking.heap) > 0 && h.hired == 0
	if h.start != nil && needed && h.hired < h.most {
		h.hired++
		h.start()
	}
}

// Leave is called for a consumer that was hired and is gone without an error of
// Take.
func (q *Queue) Leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.hiring.leave()
	q.hireLocked()
}
