package informertest

// signal wakes what waits for it. It allocates nothing while nothing waits. Guarded by the lock of
// what has it.
type signal struct{ ch chan struct{} }

// wait returns a channel that is closed when the signal fires next.
func (s *signal) wait() <-chan struct{} {
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) fire() {
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}
