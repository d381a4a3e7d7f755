package informertest

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// openWatches knows how to end the watches that are open.
type openWatches struct {
	mu     sync.Mutex
	opened int
	// ends has them by the order in which they were opened.
	ends map[int]context.CancelFunc
}

// add adds a watch, until over is called.
func (o *openWatches) add(end context.CancelFunc) (over func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ends == nil {
		o.ends = map[int]context.CancelFunc{}
	}
	n := o.opened
	o.opened++
	o.ends[n] = end
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.ends, n)
	}
}

// all returns the ends of the watches, the oldest first.
func (o *openWatches) all() (ends []context.CancelFunc) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, n := range slices.Sorted(maps.Keys(o.ends)) {
		ends = append(ends, o.ends[n])
	}
	return ends
}

// DrainWatches ends the watches that are open, each in order and the oldest first, as a kube-apiserver
// from 1.38 on does when it shuts down. They end evenly spread over d. It returns when all have been
// ended, or ctx ends. The server goes on.
func (s *Server) DrainWatches(ctx context.Context, d time.Duration) {
	ends := s.watches.all()
	for n, end := range ends {
		end()
		if n == len(ends)-1 {
			return
		}
		select {
		case <-time.After(d / time.Duration(len(ends)-1)):
		case <-ctx.Done():
			return
		}
	}
}
