package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/rvinformer/informer"
)

// metric is one series of an informer. It shares its labels with the others of the informer,
// because a prometheus.Registry only reads them: prometheus.NewConstMetric makes them anew for
// each, which takes most of the time of a scrape.
type metric struct {
	desc      *prometheus.Desc
	kind      kind
	labels    []*dto.LabelPair
	value     float64
	histogram *informer.Histogram
}

// kind is the type of a metric.
type kind int

const (
	gauge kind = iota
	counter
	histogram
)

func (m *metric) Desc() *prometheus.Desc { return m.desc }

// Write fills in what a scrape shows.
func (m *metric) Write(to *dto.Metric) error {
	to.Label = m.labels
	switch m.kind {
	case gauge:
		to.Gauge = &dto.Gauge{Value: &m.value}
	case counter:
		to.Counter = &dto.Counter{Value: &m.value}
	case histogram:
		to.Histogram = histogramOf(m.histogram)
	}
	return nil
}

func histogramOf(h *informer.Histogram) *dto.Histogram {
	d := &dto.Histogram{}
	for bound, n := range h.Buckets() {
		d.Bucket = append(d.Bucket, &dto.Bucket{UpperBound: &bound, CumulativeCount: &n})
	}
	sum, count := h.Sum(), h.Count() // after the buckets, none of which may have more
	d.SampleSum, d.SampleCount = &sum, &count
	return d
}
