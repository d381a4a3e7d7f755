package deltaqueue

// signal wakes what waits for it. It allocates nothing while nothing waits.
type signal struct{ ch chan struct{} }

// wait returns a channel that is closed when the signal fires next.
func (s *signal) wait() <-chan struct{} {
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

// isAwaited reports whether something has called wait since the signal fired.
func (s *signal) isAwaited() bool { return s.ch != nil }

func (s *signal) fire() {
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}
