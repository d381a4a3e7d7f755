package fanout

// ResourceVersion is where the reader is: that of the last event that had one.
func (r *Tap[T]) ResourceVersion() string { return r.at }

// Passed is the version before it.
func (r *Tap[T]) Passed() string { return r.passed }
