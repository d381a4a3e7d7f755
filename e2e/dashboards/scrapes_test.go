package dashboards_test

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"
)

// scrapes are what Prometheus has seen of a registry.
type scrapes struct {
	times   []time.Time
	vectors []model.Vector
}

// scrape adds what the registry has now.
func (s *scrapes) scrape(t *testing.T, registry prometheus.Gatherer) {
	families, err := registry.Gather()
	require.NoError(t, err)
	now := time.Now()
	v, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: model.TimeFromUnixNano(now.UnixNano())}, families...)
	require.NoError(t, err)
	s.times, s.vectors = append(s.times, now), append(s.vectors, v)
}

// queryable returns all samples, for an engine. A series that has vanished is marked so, as
// Prometheus does.
func (s *scrapes) queryable() storage.Queryable {
	all := map[model.Fingerprint]*promql.Series{}
	for i, v := range s.vectors {
		now := s.times[i].UnixMilli()
		for _, sample := range v {
			series := all[sample.Metric.Fingerprint()]
			if series == nil {
				series = &promql.Series{Metric: labelsOf(sample.Metric)}
				all[sample.Metric.Fingerprint()] = series
			}
			series.Floats = append(series.Floats, promql.FPoint{T: now, F: float64(sample.Value)})
		}
		for _, series := range all {
			if series.Floats[len(series.Floats)-1].T != now {
				series.Floats = append(series.Floats, promql.FPoint{T: now, F: math.Float64frombits(value.StaleNaN)})
			}
		}
	}
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{
		SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
			return newSelection(all, matchers)
		},
	}}
}

// selection is the series that a query selects, in the order of their labels.
type selection struct {
	series []*promql.Series
	at     int
}

func newSelection(all map[model.Fingerprint]*promql.Series, matchers []*labels.Matcher) *selection {
	s := &selection{at: -1}
	for _, series := range all {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(series.Metric.Get(m.Name)) }) {
			s.series = append(s.series, series)
		}
	}
	slices.SortFunc(s.series, func(a, b *promql.Series) int { return labels.Compare(a.Metric, b.Metric) })
	return s
}

func (s *selection) Next() bool                      { s.at++; return s.at < len(s.series) }
func (s *selection) At() storage.Series              { return promql.NewStorageSeries(*s.series[s.at]) }
func (*selection) Err() error                        { return nil }
func (*selection) Warnings() annotations.Annotations { return nil }

// labelsOf returns the labels of a metric, without those that are empty: to Prometheus, a label that
// is empty is one that is not there.
func labelsOf(m model.Metric) labels.Labels {
	all := map[string]string{}
	for name, value := range m {
		all[string(name)] = string(value)
	}
	return labels.FromMap(all).WithoutEmpty()
}

func newEngine(t *testing.T) *promql.Engine {
	e := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true})
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// queryRange returns what a query says of the whole time of the scrapes.
func queryRange(t *testing.T, engine *promql.Engine, samples storage.Queryable, seen scrapes, query string, step time.Duration) promql.Matrix {
	from, to := seen.times[0], seen.times[len(seen.times)-1]
	q, err := engine.NewRangeQuery(context.Background(), samples, nil, query, from, to, step)
	require.NoError(t, err, query)
	result := q.Exec(context.Background())
	require.NoError(t, result.Err, query)
	m, err := result.Matrix()
	require.NoError(t, err)
	return m
}
