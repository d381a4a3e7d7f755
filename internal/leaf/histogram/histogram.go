// Package histogram counts values by size, from any goroutine. A Status shows what goes on
// counting.
package histogram

import (
	"iter"
	"sync/atomic"
	"time"
)

// Histogram counts values by size. Its methods may be called while it counts on.
type Histogram struct {
	scale *scale
	// counts are not cumulative. The last one counts values larger than all bounds.
	counts [bounds + 1]atomic.Int64
	// sum is in units of the scale.
	sum atomic.Int64
}

const bounds = 12

// scale is the upper bounds of a histogram in whole units, and how many units are one.
type scale struct {
	upper [bounds]int64
	per   float64
}

// seconds has the bounds of client-go's informer_processing_latency_seconds, and ones those of
// batches.
var (
	seconds = scale{per: 1e9, upper: [bounds]int64{
		int64(time.Millisecond), int64(5 * time.Millisecond), int64(10 * time.Millisecond), int64(25 * time.Millisecond),
		int64(50 * time.Millisecond), int64(100 * time.Millisecond), int64(250 * time.Millisecond), int64(500 * time.Millisecond),
		int64(time.Second), int64(2500 * time.Millisecond), int64(5 * time.Second), int64(10 * time.Second),
	}}
	ones = scale{per: 1, upper: [bounds]int64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000}}
)

// OfSeconds returns a histogram of durations: it observes nanoseconds, and tells seconds.
func OfSeconds() *Histogram { return &Histogram{scale: &seconds} }

// OfSizes returns a histogram of the sizes of batches.
func OfSizes() *Histogram { return &Histogram{scale: &ones} }

// Observe counts a value.
func (h *Histogram) Observe(value int64) {
	at := 0
	for at < bounds && value > h.scale.upper[at] {
		at++
	}
	h.counts[at].Add(1)
	h.sum.Add(value)
}

// Buckets yields each upper bound, and how many values are not greater.
func (h *Histogram) Buckets() iter.Seq2[float64, uint64] {
	return func(yield func(float64, uint64) bool) {
		n := uint64(0)
		for i, upper := range h.scale.upper {
			n += uint64(h.counts[i].Load())
			if !yield(float64(upper)/h.scale.per, n) {
				return
			}
		}
	}
}

// Count is the number of values.
func (h *Histogram) Count() (n uint64) {
	for i := range h.counts {
		n += uint64(h.counts[i].Load())
	}
	return n
}

// Sum is the sum of the values.
func (h *Histogram) Sum() float64 { return float64(h.sum.Load()) / h.scale.per }

// Plus returns a histogram with the values of h and of o, which has the same scale or is nil.
// Values that they count later are not in it.
func (h *Histogram) Plus(o *Histogram) *Histogram {
	all := &Histogram{scale: h.scale}
	for _, part := range []*Histogram{h, o} {
		if part == nil {
			continue
		}
		for i := range all.counts {
			all.counts[i].Add(part.counts[i].Load())
		}
		all.sum.Add(part.sum.Load())
	}
	return all
}
