package budget

// Crowded reports whether lists wait for their turn.
func (b *Budget) Crowded() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lists.line.Len() > 0
}
