package statuspage_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/statuspage"
)

func ExampleNew() {
	i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: &cache.ListWatch{}, Handler: informer.ResourceEventHandlerFuncs{}})
	page := statuspage.New()
	page.Add(statuspage.Labels{Cluster: "east", Version: "v1", Resource: "pods"}, i)
	server := httptest.NewServer(page) // or http.Handle("/", page)
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()

	response, err := http.Get(server.URL + "/readyz/informer/east?verbose")
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	fmt.Println(response.Status) // it does not run
	// Output: 500 Internal Server Error
}

func ExamplePage_AddFactory() {
	informers := factory.New()
	defer informers.Shutdown()
	page := statuspage.New()
	remove := page.AddFactory(informers) // also what it will have
	defer remove()

	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	informers.ResourceVersionInformerFor(pods, factory.InformerOptions{Cluster: "east"}, informer.InformerConfig{ListerWatcher: &cache.ListWatch{}})
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	fmt.Print(w.Body)
	// Output:
	// [-]informer/east/_/v1/pods/shared~20resource-version failed: not synced: NotStarted: there is no handler
	// readyz check failed
}
