package deltaqueue

// phase is what the queue goes on from.
type phase uint8

const (
	// unlisted: no generation is complete, and there is nothing else to go on from.
	unlisted phase = iota
	// resuming: there is a checkpoint to go on from, if the server accepts its resource version.
	resuming
	// resumed: the server has accepted it, and no generation is complete.
	resumed
	// listed: a generation is complete.
	listed
)

// isInitial reports whether what comes is needed for the queue to be synced.
func (p phase) isInitial() bool { return p == unlisted || p == resuming }

// isResumed reports whether the consumer may have acknowledged what is not known, because the
// queue goes on from a checkpoint.
func (p phase) isResumed() bool { return p == resuming || p == resumed }

// syncing counts what is needed for the queue to be synced.
//
// Invariant: unattempted is the number of entries with that mark. They came in an initial phase,
// and the consumer has not returned them.
type syncing struct {
	done        chan struct{}
	note        func() // see Options.NoteSynced
	unattempted int
}

// await marks e, unless it is marked.
func (s *syncing) await(e *Entry) {
	if !e.unattempted {
		e.unattempted = true
		s.unattempted++
	}
}

// merge gives e the mark of the newer entry, which is going to be dropped.
func (s *syncing) merge(e, newer *Entry) {
	if newer.unattempted && e.unattempted {
		s.unattempted-- // they were two, and are one
	}
	e.unattempted = e.unattempted || newer.unattempted
}

// Follow notes that the changes since Resume can be had: no generation is needed for a queue that
// is Resumed to be synced. Once one has begun, it has no effect.
func (q *Queue) Follow() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.phase == resuming && !q.generation.underWay {
		q.phase = resumed
		q.checkSyncedLocked()
		q.advancedLocked()
	}
}

// Synced is closed when the first generation is complete and the consumer has
// returned every entry of it, its sweep included.
func (q *Queue) Synced() <-chan struct{} { return q.syncing.done }

// attemptedLocked notes that the consumer has returned e.
func (q *Queue) attemptedLocked(e *Entry) {
	if e.unattempted {
		e.unattempted = false
		q.syncing.unattempted--
		q.checkSyncedLocked()
	}
}

func (q *Queue) checkSyncedLocked() {
	s := &q.syncing
	if q.phase.isInitial() || s.unattempted > 0 {
		return
	}
	select {
	case <-s.done:
	default:
		if s.note != nil {
			s.note()
		}
		close(s.done)
	}
}
