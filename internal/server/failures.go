package server

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// failureMemory remembers for which resources of a server something did not work that it may not
// know: a watch-list, or a shardSelector.
type failureMemory struct {
	mu       sync.Mutex
	failures map[schema.GroupVersionResource]resourceFailure
}

type resourceFailure struct {
	why  error
	when time.Time
}

// failureMemoryLasts is when a failure is forgotten: servers are upgraded.
const failureMemoryLasts = time.Hour

func newFailureMemory() *failureMemory {
	return &failureMemory{failures: map[schema.GroupVersionResource]resourceFailure{}}
}

// note notes that it did not work.
func (m *failureMemory) note(gvr schema.GroupVersionResource, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failures[gvr] = resourceFailure{why, time.Now()}
}

// failure returns why it did not work within the last hour, or nil.
func (m *failureMemory) failure(gvr schema.GroupVersionResource) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.failures[gvr]
	if ok && time.Since(f.when) >= failureMemoryLasts {
		delete(m.failures, gvr)
		return nil
	}
	return f.why
}
