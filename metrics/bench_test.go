package metrics_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/metrics"
)

// BenchmarkScrape25000 scrapes 25,000 informers of 500 clusters that have listed, watch and have called their handlers.
//
//	go test -run - -bench Scrape -benchtime 5x ./metrics
func BenchmarkScrape25000(b *testing.B) {
	c := metrics.NewCollector()
	for i := range 25000 {
		c.Add(metrics.Labels{Cluster: fmt.Sprintf("cluster-%03d", i%500), Group: "example.com", Version: "v1", Resource: fmt.Sprint("resource-", i/500), Informer: "resource-version"}, quiet())
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	b.Run("Gather", func(b *testing.B) {
		b.ReportAllocs()
		series := 0
		for b.Loop() {
			families, err := registry.Gather()
			if err != nil {
				b.Fatal(err)
			}
			series = 0
			for _, f := range families {
				series += len(f.Metric)
			}
			runtime.KeepAlive(families)
		}
		b.ReportMetric(float64(series)/25000, "series/informer")
	})
}

func quiet() informer.ResourceVersionInformer {
	return informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: &cache.ListWatch{}, Handler: informer.ResourceEventHandlerFuncs{}})
}
