package statuspage

import (
	"sync"
	"time"
)

// readyFor is for how long all informers have to be synced, until the process stays ready. A
// program that adds its informers one after the other may be ready in between.
const readyFor = time.Minute

// readiness remembers whether the process has been ready. It stays so: an informer that is added
// later, such as one of a cluster that cannot be reached, takes nothing away from what there is to
// serve. The zero value has not been ready.
type readiness struct {
	mu sync.Mutex
	// since is when a probe has found all informers synced, and none has found one that was not
	// since then; zero without.
	since time.Time
	stays bool
}

// note notes how many informers there are and whether all have synced, and reports whether the
// process stays ready.
func (r *readiness) note(informers int, synced bool, now time.Time) (stays bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.stays:
	case informers == 0 || !synced:
		r.since = time.Time{}
	case r.since.IsZero():
		r.since = now
	default:
		r.stays = now.Sub(r.since) >= readyFor
	}
	return r.stays
}
