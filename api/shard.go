package api

import (
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
)

// ShardKey is the field of an object by which a resource set is divided, as a shardSelector writes
// it: ShardByUID or ShardByNamespace.
type ShardKey string

const (
	// ShardByUID hashes metadata.uid: shards are of about equal size. Two objects that had one name
	// one after the other, or an owner and what it owns, may be in different shards.
	ShardByUID ShardKey = "object.metadata.uid"
	// ShardByNamespace hashes metadata.namespace: what a namespace has is in one shard. So is all that
	// has no namespace. Namespaces whose names differ only at their end, as numbered ones do, may
	// all be in one shard.
	ShardByNamespace ShardKey = "object.metadata.namespace"
)

// Shard is a part of a resource set: the objects the hash of whose Key is in a range. The zero
// value is the whole set. It is comparable.
//
// The hash is that of kube-apiserver's server-side sharded list and watch (KEP-5866): the 64-bit
// FNV-1a of the text of the field.
type Shard struct {
	// Key is required unless the shard is the whole set.
	Key ShardKey
	// Start is the first hash of the range.
	Start uint64
	// End is the first hash behind the range. Zero is 2^64, the end of all hashes.
	End uint64
}

// IsAll reports whether every object is in the shard.
func (s Shard) IsAll() bool { return s.Start == 0 && s.End == 0 }

// Validate returns an error that says what is wrong with the shard: a Key that is missing or
// unknown, or a range that is empty.
func (s Shard) Validate() error {
	switch {
	case s.Key == "" && s.IsAll(), s.Key == ShardByUID, s.Key == ShardByNamespace:
	case s.Key == "":
		return errors.New("a shard with a range needs a key")
	default:
		return fmt.Errorf("shard key %q: it must be %q or %q", s.Key, ShardByUID, ShardByNamespace)
	}
	if s.End != 0 && s.Start >= s.End {
		return fmt.Errorf("shard from %#016x to %#016x: the range is empty", s.Start, s.End)
	}
	return nil
}

// Includes reports whether an object is in the shard. The namespace is empty for an object that has
// none.
func (s Shard) Includes(namespace, uid string) bool {
	if s.IsAll() {
		return true
	}
	value := uid
	if s.Key == ShardByNamespace {
		value = namespace
	}
	hash := hashOf(value)
	return s.Start <= hash && (s.End == 0 || hash < s.End)
}

// hashOf is the hash of a field's text. It is that of hash/fnv, which would allocate.
func hashOf(text string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	hash := uint64(offset)
	for i := range len(text) {
		hash = (hash ^ uint64(text[i])) * prime
	}
	return hash
}

// Split divides the shard into n parts whose ranges are equally long but for rounding. Of the whole
// set, the parts are by UID unless Key says otherwise. It panics if n is not positive.
func (s Shard) Split(n int) []Shard {
	if n <= 0 {
		panic(fmt.Sprintf("a shard cannot be split into %d parts", n))
	}
	if n == 1 {
		return []Shard{s}
	}
	if s.Key == "" {
		s.Key = ShardByUID
	}
	parts := make([]Shard, n)
	for i := range parts {
		parts[i] = Shard{Key: s.Key, Start: s.at(i, n), End: s.at(i+1, n)}
	}
	parts[n-1].End = s.End
	return parts
}

// at is the hash at i of n equal steps through the range.
func (s Shard) at(i, n int) uint64 {
	length := s.End - s.Start // 2^64 wraps around to 0
	high, low := bits.Mul64(length, uint64(i))
	if length == 0 {
		high = uint64(i)
	}
	if high == uint64(n) { // the end of all hashes
		return 0
	}
	step, _ := bits.Div64(high, low, uint64(n))
	return s.Start + step
}

// String is the shard as a shardSelector, and empty for the whole set.
func (s Shard) String() string {
	if s.IsAll() {
		return ""
	}
	end := "10000000000000000"
	if s.End != 0 {
		end = fmt.Sprintf("%016x", s.End)
	}
	return fmt.Sprintf("shardRange(%s, '0x%016x', '0x%s')", s.Key, s.Start, end)
}

var selector = regexp.MustCompile(`^shardRange\(([a-z.]+), '0x([0-9a-f]{16})', '0x([0-9a-f]{16}|10{16})'\)$`)

// ParseShard reads what String of a Shard has written: a shardSelector of one range, or nothing for
// the whole set.
func ParseShard(text string) (Shard, error) {
	if text == "" {
		return Shard{}, nil
	}
	parts := selector.FindStringSubmatch(text)
	if parts == nil {
		return Shard{}, fmt.Errorf("shard %q: it must be like shardRange(%s, '0x0000000000000000', '0x8000000000000000')", text, ShardByUID)
	}
	s := Shard{Key: ShardKey(parts[1])}
	s.Start, _ = strconv.ParseUint(parts[2], 16, 64) // the expression has 16 digits
	if len(parts[3]) == 16 {
		s.End, _ = strconv.ParseUint(parts[3], 16, 64)
		if s.End == 0 {
			return Shard{}, fmt.Errorf("shard %q: the range is empty", text)
		}
	}
	if err := s.Validate(); err != nil {
		return Shard{}, fmt.Errorf("shard %q: %w", text, err)
	}
	return s, nil
}
