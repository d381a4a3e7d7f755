package shards

import (
	"math/bits"
	"time"
)

const (
	// maxWeight keeps sums of weights from overflowing.
	maxWeight = 1 << 40
	// weighEvery is how often the weights of own units are compared with what is published.
	weighEvery = 10 * time.Minute
)

// rounded is a weight rounded up to a power of two; zero is not known. The plan does not change
// with each object that comes or goes.
func rounded(weight int64) int64 {
	switch {
	case weight <= 0:
		return 0
	case weight >= maxWeight:
		return maxWeight
	}
	return 1 << bits.Len64(uint64(weight-1))
}

// differs reports whether a weight has left the published one: it is half as much again, or it is
// less than half of the smallest weight that is rounded to that.
func differs(weight, published int64) bool {
	if weight <= 0 {
		return false
	}
	return published == 0 || weight > published+published/2 || weight < published/4+1
}
