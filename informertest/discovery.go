package informertest

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// verbs are what a resource can be asked for.
func (a *handler) verbs(gvr schema.GroupVersionResource) metav1.Verbs {
	verbs := metav1.Verbs{"create", "delete", "get", "list", "update"}
	if a.options.Dialect.watches(gvr) {
		verbs = append(verbs, "watch")
	}
	return verbs
}

// serveDiscovery answers the paths that tell what the server serves, and reports whether this was
// one of them. A client that asks for aggregated discovery gets the older documents, as from a
// server that does not know it.
func (a *handler) serveDiscovery(w http.ResponseWriter, req *http.Request) bool {
	if req.Method != http.MethodGet {
		return false
	}
	path := strings.Trim(req.URL.Path, "/")
	switch path {
	case "api":
		writeJSON(w, http.StatusOK, metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"},
			Versions: a.store.coreVersions(),
		})
		return true
	case "apis":
		writeJSON(w, http.StatusOK, metav1.APIGroupList{
			TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
			Groups:   a.store.apiGroups(),
		})
		return true
	case "version":
		writeJSON(w, http.StatusOK, version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.0+informertest"})
		return true
	case "healthz", "livez", "readyz":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok"))
		return true
	}

	var gv schema.GroupVersion
	switch parts := strings.Split(path, "/"); {
	case len(parts) == 2 && parts[0] == "api":
		gv.Version = parts[1]
	case len(parts) == 3 && parts[0] == "apis":
		gv.Group, gv.Version = parts[1], parts[2]
	default:
		return false
	}
	resources := a.store.apiResources(gv, a.verbs)
	if resources == nil {
		return false
	}
	writeJSON(w, http.StatusOK, metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: gv.String(),
		APIResources: resources,
	})
	return true
}

func (s *store) coreVersions() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	versions := []string{}
	for _, gv := range s.groups {
		if gv.Group == "" {
			versions = append(versions, gv.Version)
		}
	}
	return versions
}

// apiGroups lists the named groups. The version of a group that came first is its preferred one.
func (s *store) apiGroups() []metav1.APIGroup {
	s.mu.RLock()
	defer s.mu.RUnlock()
	groups := []metav1.APIGroup{}
	for _, gv := range s.groups {
		if gv.Group == "" {
			continue
		}
		v := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
		i := slices.IndexFunc(groups, func(g metav1.APIGroup) bool { return g.Name == gv.Group })
		if i < 0 {
			groups = append(groups, metav1.APIGroup{Name: gv.Group, PreferredVersion: v})
			i = len(groups) - 1
		}
		groups[i].Versions = append(groups[i].Versions, v)
	}
	return groups
}

// apiResources lists the resources of a group version by name, nil when there is none.
func (s *store) apiResources(gv schema.GroupVersion, verbs func(schema.GroupVersionResource) metav1.Verbs) []metav1.APIResource {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var resources []metav1.APIResource
	for gvr, t := range s.tables {
		if gvr.GroupVersion() == gv {
			resources = append(resources, metav1.APIResource{
				Name:         gvr.Resource,
				SingularName: strings.ToLower(t.resource.Kind),
				Namespaced:   t.resource.Namespaced,
				Kind:         t.resource.Kind,
				Verbs:        verbs(gvr),
			})
		}
	}
	slices.SortFunc(resources, func(a, b metav1.APIResource) int { return cmp.Compare(a.Name, b.Name) })
	return resources
}
