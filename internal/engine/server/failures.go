package server

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// failureMemory remembers for which resources of a server a query parameter did not work that it may
// not know.
type failureMemory struct {
	mu       sync.Mutex
	failures map[resourceParameter]parameterFailure
}

type resourceParameter struct {
	schema.GroupVersionResource
	name string
}

type parameterFailure struct {
	why  error
	when time.Time
}

// failureMemoryLasts is when a failure is forgotten: servers are upgraded.
const failureMemoryLasts = time.Hour

func newFailureMemory() *failureMemory {
	return &failureMemory{failures: map[resourceParameter]parameterFailure{}}
}

// note notes that it did not work.
func (m *failureMemory) note(gvr schema.GroupVersionResource, name string, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failures[resourceParameter{gvr, name}] = parameterFailure{why, time.Now()}
}

// failure returns why it did not work within the last hour, or nil.
func (m *failureMemory) failure(gvr schema.GroupVersionResource, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := resourceParameter{gvr, name}
	f, ok := m.failures[key]
	if ok && time.Since(f.when) >= failureMemoryLasts {
		delete(m.failures, key)
		return nil
	}
	return f.why
}
