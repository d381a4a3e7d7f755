package dashboards_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/prometheus/clientgo/fifo"

	"github.com/rvinformer/informer/metrics"
)

// The registry of component-base shows informers at the metrics endpoint of a Kubernetes component.
func Example() {
	c := metrics.NewCollector()
	legacyregistry.RawMustRegister(c)

	defer legacyregistry.Registerer().Unregister(c)
	families, err := legacyregistry.DefaultGatherer.Gather()
	for _, f := range families {
		if f.GetName() == "rvinformer_budget_limit_bytes" {
			fmt.Println(f.Metric[0].Gauge.GetValue(), err)
		}
	}
	// Output: 1.6777216e+07 <nil>
}

// Client-go's own metrics of informers are in the same registry, which panics if a name is taken.
func TestMetricsOfClientGoAreBeside(t *testing.T) {
	c := metrics.NewCollector()
	legacyregistry.RawMustRegister(c)
	defer legacyregistry.Registerer().Unregister(c)
	require.NotPanics(t, fifo.Register)
	_, err := legacyregistry.DefaultGatherer.Gather()
	require.NoError(t, err)
}
