package registry_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/metrics"
	"github.com/rvinformer/informer/registry"
	"github.com/rvinformer/informer/statuspage"
)

func Example() {
	informers := factory.New()
	defer informers.Shutdown()
	i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: &cache.ListWatch{}, Handler: informer.ResourceEventHandlerFuncs{}})

	r := registry.New()
	r.AddFactory(informers)
	remove := r.Add(registry.Labels{Cluster: "east", Version: "v1", Resource: "pods"}, i)
	defer remove() // when the informer has ended

	collector, page := metrics.Of(r), statuspage.Of(r)
	prometheus.MustRegister(collector)
	defer prometheus.Unregister(collector)
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	fmt.Print(w.Body)
	// Output:
	// [-]informer/east/_/v1/pods/_ failed: not synced: NotStarted: Run was not called
	// readyz check failed
}

// snippetOfMonitoring is a block of docs/monitoring.md.
func snippetOfMonitoring(informers *factory.Factory, i informer.ResourceVersionInformer) {
	r := registry.New()
	r.AddFactory(informers) // all of a factory, as they come and go
	remove := r.Add(registry.Labels{Cluster: "east", Version: "v1", Resource: "pods", Informer: "mirror"}, i)
	prometheus.MustRegister(metrics.Of(r))
	http.Handle("/", statuspage.Of(r))
	defer remove()
}

// snippetOfNames is another one.
func snippetOfNames(r *registry.Registry, config informer.InformerConfig) {
	labels := registry.Labels{Cluster: "east", Version: "v1", Resource: "pods", Informer: "mirror"}
	i := informer.NewResourceVersionInformer(labels.Path(), config)
	remove := r.Add(labels, i)
	defer remove()
}

var _, _ = snippetOfMonitoring, snippetOfNames
