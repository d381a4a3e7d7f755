package typed_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/factory/typed"
	"github.com/rvinformer/informer/informertest"
)

// gauge is the resource version of the store of a named informer.
type gauge struct{ atomic.Int64 }

func (g *gauge) Set(v float64)   { g.Store(int64(v)) }
func (g *gauge) Observe(float64) {}

func (g *gauge) NewQueuedItemMetric(cache.InformerNameAndResource) cache.GaugeMetric { return &gauge{} }

func (g *gauge) NewProcessingLatencyMetric(cache.InformerNameAndResource) cache.HistogramMetric {
	return &gauge{}
}

func (g *gauge) NewStoreResourceVersionMetric(cache.InformerNameAndResource) cache.GaugeMetric {
	return g
}

// published is what client-go publishes to: it takes one provider in a process, the first.
var published = &gauge{}

func TestNamedInformerPublishesItsResourceVersion(t *testing.T) {
	needs037(t)
	cache.SetInformerMetricsProvider(published) // no other test does
	published.Store(0)                          // what an earlier run of the test has left
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "one")
		name, err := cache.NewInformerName("named")
		require.NoError(t, err)
		f := over(s, typed.WithInformerName(name))
		i := f.Core().V1().Pods().Informer()
		defer started(t, f)()
		before := published.Load()
		require.Positive(t, before)
		create(t, s, "two")
		time.Sleep(time.Second)
		require.Greater(t, published.Load(), before)
		require.Equal(t, i.LastSyncResourceVersion(), i.GetIndexer().LastStoreSyncResourceVersion())
	})
}
