package e2e

import (
	"context"
	"fmt"
	"sync"
)

// signal is a mutex over some state, and a way to wait until that state is as
// one wants it.
type signal struct {
	sync.Mutex
	changed chan struct{} // closed and replaced at every change; nil until it is waited for
}

// changedLocked tells all waiters to look again.
func (s *signal) changedLocked() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// await returns when cond, called with the lock held, is true.
func (s *signal) await(ctx context.Context, what string, cond func() bool) error {
	for {
		s.Lock()
		if cond() {
			s.Unlock()
			return nil
		}
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, context.Cause(ctx))
		}
	}
}
