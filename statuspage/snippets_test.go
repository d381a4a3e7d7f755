package statuspage_test

import (
	"net/http"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/statuspage"
)

// snippetOfMonitoring is a block of docs/monitoring.md.
func snippetOfMonitoring(informers *factory.Factory, i informer.ResourceVersionInformer) {
	page := statuspage.New()
	page.AddFactory(informers)                                           // all of a factory, as they come and go
	page.Add(statuspage.Labels{Cluster: "east", Resource: "widgets"}, i) // and single ones
	http.Handle("/", page)
}

var _ = snippetOfMonitoring
