package api

// last is the last hash of the range.
func (s Shard) last() uint64 { return s.End - 1 } // 0 is 2^64

// And returns what two shards have in common; false if they have nothing in common, or if that is
// not one range because they have two keys.
func (s Shard) And(other Shard) (common Shard, ok bool) {
	switch {
	case s.IsAll():
		return other, true
	case other.IsAll():
		return s, true
	case s.Key != other.Key:
		return Shard{}, false
	}
	start, last := max(s.Start, other.Start), min(s.last(), other.last())
	if start > last {
		return Shard{}, false
	}
	return Shard{Key: s.Key, Start: start, End: last + 1}, true
}

// Meets reports whether there may be objects in both shards. With two keys, there may.
func (s Shard) Meets(other Shard) bool {
	_, common := s.And(other)
	return common || s.Key != other.Key
}

// Contains reports whether each object of other is in s.
func (s Shard) Contains(other Shard) bool {
	common, ok := s.And(other)
	return ok && (common == other || common.IsAll() && other.IsAll())
}
