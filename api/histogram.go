package api

import (
	"iter"

	"github.com/rvinformer/informer/internal/leaf/histogram"
)

// Histogram counts values by size. Its methods may be called while it counts on, and on nil, which
// has no values.
type Histogram histogram.Histogram

// Buckets yields each upper bound, and how many values are not greater. A nil Histogram has none.
func (h *Histogram) Buckets() iter.Seq2[float64, uint64] {
	if h == nil {
		return func(func(float64, uint64) bool) {}
	}
	return h.counts().Buckets()
}

// Count is the number of values.
func (h *Histogram) Count() uint64 {
	if h == nil {
		return 0
	}
	return h.counts().Count()
}

// Sum is the sum of the values.
func (h *Histogram) Sum() float64 {
	if h == nil {
		return 0
	}
	return h.counts().Sum()
}

// plus returns a histogram with the values of h and o. Both may be nil. It does not have the values
// that they count later.
func (h *Histogram) plus(o *Histogram) *Histogram {
	if h == nil {
		h, o = o, nil
	}
	if h == nil {
		return nil
	}
	return (*Histogram)(h.counts().Plus(o.counts()))
}

func (h *Histogram) counts() *histogram.Histogram { return (*histogram.Histogram)(h) }
