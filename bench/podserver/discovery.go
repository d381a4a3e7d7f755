package podserver

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const discoveryType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// serveDiscovery answers /api and /apis, as kube-apiserver does it for clients of today: all in one
// answer. The resources of the core group are those of templates, and there is no other group.
func (o Options) serveDiscovery(mux *http.ServeMux) {
	core := apidiscoveryv2.APIVersionDiscovery{Version: "v1", Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
	for _, name := range slices.Sorted(slices.Values(o.templateResources())) {
		core.Resources = append(core.Resources, apidiscoveryv2.APIResourceDiscovery{
			Resource: name, ResponseKind: &metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Scope: apidiscoveryv2.ScopeNamespace, SingularResource: "pod", Verbs: []string{"get", "list", "watch"},
		})
	}
	mux.HandleFunc("GET /api", discoveryOf(apidiscoveryv2.APIGroupDiscovery{Versions: []apidiscoveryv2.APIVersionDiscovery{core}}))
	mux.HandleFunc("GET /apis", discoveryOf())
}

func discoveryOf(groups ...apidiscoveryv2.APIGroupDiscovery) http.HandlerFunc {
	text, err := json.Marshal(apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: "APIGroupDiscoveryList"},
		Items:    groups,
	})
	must(err)
	return func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList") {
			refuseForm(w)
			return
		}
		w.Header().Set("Content-Type", discoveryType)
		// A client that does not get the answer has gone.
		_, _ = w.Write(text)
	}
}
