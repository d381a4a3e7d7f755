// Package metrics shows informers to Prometheus.
//
//	r := registry.New() // which the status page shows, too
//	r.AddFactory(f)
//	r.Add(registry.Labels{Resource: "pods", Version: "v1", Informer: "mirror"}, i)
//	prometheus.MustRegister(metrics.Of(r)) // or controller-runtime's metrics.Registry, or component-base's legacyregistry
//
// Nothing is measured for it: at each scrape, the Collector asks the informers for their Status. An
// informer that a factory makes later appears by itself, and the series of one that has ended or
// was removed vanish.
//
// # Labels
//
// Each series of an informer has the labels cluster, group, version, resource and informer: see
// Labels. They are those of the status page, and the address /informer?cluster=… of that leads to
// the informer. For informers of a factory, informer is the InformerType and the Variant, such as
// "dynamic" or "resource-version/index". It never has a namespace, a selector or the name of an
// object, which a factory.Key has in brackets elsewhere.
//
// Informers with equal labels are shown as one, for instance those of several namespaces: counts
// and sizes are sums, ages and times are those of the worst, and rvinformer_condition counts them
// by reason. A counter has what those have counted that are gone, for as long as another informer
// has the labels: it does not go down when one of several ends.
//
// A series with the label reason or type appears when there is something to count, so that
// thousands of quiet informers have no more series than they need.
//
// # Names
//
// All names begin with "rvinformer_". What follows is client-go's where it counts the same:
// queued_items, processing_latency_seconds (with its buckets) and store_resource_version.
// Client-go's own informer_queued_items and so on, which component-base exports, have other labels.
// A prometheus.Registry refuses two collectors with one name and different labels, and
// component-base would panic.
//
// The page docs/monitoring.md lists all metrics. docs/alerts.yaml and docs/grafana-dashboard.json
// use them.
package metrics
