package api

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/sharding"
)

// ShardOf returns the shard that a selector of client-go selects. The error says that there is no
// such shard: a Shard has one key and one range, and selectors may have several.
func ShardOf(selector sharding.Selector) (Shard, error) {
	if selector == nil || selector.Empty() {
		return Shard{}, nil
	}
	var ranges []Shard
	for _, r := range selector.Requirements() {
		s, err := ParseShard(fmt.Sprintf("shardRange(%s, '%s', '%s')", r.Key, r.Start, r.End))
		if err != nil {
			return Shard{}, err
		}
		ranges = append(ranges, s)
	}
	if len(ranges) == 0 {
		return Shard{}, fmt.Errorf("shard %q: it has no range", selector)
	}
	slices.SortFunc(ranges, func(a, b Shard) int { return cmp.Compare(a.Start, b.Start) })
	all := ranges[0]
	for _, next := range ranges[1:] {
		switch {
		case next.Key != all.Key:
			return Shard{}, fmt.Errorf("shard %q: %w", selector, errSeveralKeys)
		case all.End != 0 && next.Start > all.End:
			return Shard{}, fmt.Errorf("shard %q: %w", selector, errSeveralRanges)
		case all.End != 0 && (next.End == 0 || next.End > all.End):
			all.End = next.End
		}
	}
	if all.IsAll() {
		return Shard{}, nil
	}
	return all, nil
}

var (
	errSeveralKeys   = errors.New("it has two keys")
	errSeveralRanges = errors.New("it has ranges that do not meet, and a Shard is one range")
)
