package dashboards_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/util/teststorage"
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

// store returns a storage with all samples. A series that has vanished is marked so, as Prometheus
// does.
func (s *scrapes) store(t *testing.T) *teststorage.TestStorage {
	storage := teststorage.New(t)
	before := map[model.Fingerprint]labels.Labels{}
	for i, v := range s.vectors {
		at := s.times[i].UnixMilli()
		app := storage.Appender(context.Background())
		now := map[model.Fingerprint]labels.Labels{}
		for _, sample := range v {
			of := labelsOf(sample.Metric)
			now[sample.Metric.Fingerprint()] = of
			_, err := app.Append(0, of, at, float64(sample.Value))
			require.NoError(t, err)
		}
		for fingerprint, of := range before {
			if _, goesOn := now[fingerprint]; !goesOn {
				_, err := app.Append(0, of, at, math.Float64frombits(value.StaleNaN))
				require.NoError(t, err)
			}
		}
		require.NoError(t, app.Commit())
		before = now
	}
	return storage
}

func labelsOf(m model.Metric) labels.Labels {
	all := map[string]string{}
	for name, value := range m {
		all[string(name)] = string(value)
	}
	return labels.FromMap(all)
}

func newEngine(t *testing.T) *promql.Engine {
	e := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true})
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}
