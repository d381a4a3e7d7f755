package metrics_test

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/metrics"
)

func ExampleCollector() {
	f := factory.New()
	defer f.Shutdown()
	i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: &cache.ListWatch{}, Handler: informer.ResourceEventHandlerFuncs{}})

	c := metrics.NewCollector()
	prometheus.MustRegister(c)
	c.AddFactory(f)
	remove := c.Add(metrics.Labels{Cluster: "east", Version: "v1", Resource: "pods", Informer: "mirror"}, i)

	defer prometheus.Unregister(c)
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		fmt.Println(err)
	}
	for _, family := range families {
		if family.GetName() == "rvinformer_synced" {
			fmt.Println(family.Metric[0].Label[0].GetValue(), family.Metric[0].Gauge.GetValue())
		}
	}
	remove() // when the informer has ended

	// Output: east 0
}
