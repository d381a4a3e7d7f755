package shard

import "strings"

// Parts are shards of one Key that do not overlap. Nil is the whole set.
type Parts []Shard

// Of returns the parts that a shard consists of.
func Of(s Shard) Parts {
	if s.IsAll() {
		return nil
	}
	return Parts{s}
}

// Has reports whether an object is in one of the parts.
func (p Parts) Has(namespace, uid string) bool {
	for _, s := range p {
		if s.Includes(namespace, uid) {
			return true
		}
	}
	return p == nil
}

// Includes is Has for an object with a key, "namespace/name" or "name".
func (p Parts) Includes(key, uid string) bool { return p.Has(namespaceOf(key), uid) }

// Shows reports whether a list of the parts shows an object for certain, if there is one: its UID, where that is needed, is known.
func (p Parts) Shows(key, uid string) bool {
	return p == nil || p.Includes(key, uid) && (uid != "" || p[0].Key != ByUID)
}

// String is the parts as a shardSelector, and empty for the whole set.
func (p Parts) String() string {
	terms := make([]string, len(p))
	for i, s := range p {
		terms[i] = s.String()
	}
	return strings.Join(terms, " || ")
}

// last is the last hash of the range.
func (s Shard) last() uint64 { return s.End - 1 } // 0 is 2^64

// And returns what two shards have in common; false if they have nothing in common, or if that is not one range because they have two keys.
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

// Without returns the parts of s that are not in other: s itself if the two have nothing in common, or two keys. It is empty, and not nil,
// if other contains s.
func (s Shard) Without(other Shard) Parts {
	common, ok := s.And(other)
	if !ok {
		return Parts{s}
	}
	rest := Parts{}
	if common.IsAll() {
		return rest
	}
	if common.Start > s.Start {
		rest = append(rest, Shard{Key: common.Key, Start: s.Start, End: common.Start})
	}
	if common.last() < s.last() {
		rest = append(rest, Shard{Key: common.Key, Start: common.End, End: s.End})
	}
	return rest
}
