package controllerruntime_test

import (
	"fmt"

	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/rvinformer/informer/metrics"
)

// The registry of controller-runtime shows informers at the manager's metrics endpoint.
func Example_metrics() {
	c := metrics.NewCollector()
	ctrlmetrics.Registry.MustRegister(c)

	defer ctrlmetrics.Registry.Unregister(c)
	families, err := ctrlmetrics.Registry.Gather()
	for _, f := range families {
		if f.GetName() == "rvinformer_budget_limit_bytes" {
			fmt.Println(f.Metric[0].Gauge.GetValue(), err)
		}
	}
	// Output: 1.6777216e+07 <nil>
}
