package server

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// watchListMemory remembers for which resources of a server a watch-list did not work, and why.
type watchListMemory struct {
	mu       sync.Mutex
	failures map[schema.GroupVersionResource]watchListFailure
}

type watchListFailure struct {
	why  error
	when time.Time
}

// watchListMemoryLasts is when a failure is forgotten: servers are upgraded.
const watchListMemoryLasts = time.Hour

func newWatchListMemory() *watchListMemory {
	return &watchListMemory{failures: map[schema.GroupVersionResource]watchListFailure{}}
}

// note notes that a watch-list did not work.
func (m *watchListMemory) note(gvr schema.GroupVersionResource, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failures[gvr] = watchListFailure{why, time.Now()}
}

// failure returns why a watch-list did not work within the last hour, or nil.
func (m *watchListMemory) failure(gvr schema.GroupVersionResource) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.failures[gvr]
	if ok && time.Since(f.when) >= watchListMemoryLasts {
		delete(m.failures, gvr)
		return nil
	}
	return f.why
}
