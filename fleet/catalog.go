package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// catalog is what a discovery has shown: all that can be followed. It does not change.
type catalog struct {
	// resources are sorted by name and group.
	resources []resource
	// broken has the group versions that were not shown although they are served.
	broken map[schema.GroupVersion]error
	// served has all group versions, broken ones and those without a resource that can be followed
	// included.
	served map[schema.GroupVersion]bool
}

// resource can be listed and watched.
type resource struct {
	schema.GroupResource
	kind       string
	namespaced bool
	// versions has at least one; the one that the server prefers is the first.
	versions []string
}

var errNothing = errors.New("discovery shows nothing that can be listed and watched")

// newCatalog makes a catalog of the answer of a discovery, whose error is err.
func newCatalog(groups []*metav1.APIGroup, lists []*metav1.APIResourceList, err error) (*catalog, error) {
	broken, partly := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partly {
		return nil, err
	}
	byVersion := map[string]*metav1.APIResourceList{}
	for _, list := range lists {
		byVersion[list.GroupVersion] = list
	}
	found := map[schema.GroupResource]*resource{}
	served := map[schema.GroupVersion]bool{}
	for version := range broken {
		served[version] = true
	}
	for _, g := range groups {
		for _, version := range versionsOf(g) {
			served[schema.GroupVersion{Group: g.Name, Version: version}] = true
			list := byVersion[schema.GroupVersion{Group: g.Name, Version: version}.String()]
			if list == nil {
				continue
			}
			for _, r := range list.APIResources {
				if !canFollow(r) {
					continue
				}
				name := schema.GroupResource{Group: g.Name, Resource: r.Name}
				if found[name] == nil {
					found[name] = &resource{GroupResource: name, kind: r.Kind, namespaced: r.Namespaced}
				}
				found[name].versions = append(found[name].versions, version)
			}
		}
	}
	if len(found) == 0 {
		// Something hides them: to take this for the truth would end all informers.
		return nil, errors.Join(errNothing, err)
	}
	c := &catalog{broken: broken, served: served, resources: make([]resource, 0, len(found))}
	for _, r := range found {
		c.resources = append(c.resources, *r)
	}
	slices.SortFunc(c.resources, func(a, b resource) int { return compareResources(a.GroupResource, b.GroupResource) })
	return c, nil
}

func compareResources(a, b schema.GroupResource) int {
	return cmp.Or(strings.Compare(a.Resource, b.Resource), strings.Compare(a.Group, b.Group))
}

// versionsOf are those of a group, the preferred one first.
func versionsOf(g *metav1.APIGroup) (versions []string) {
	for _, v := range g.Versions {
		if v.Version == g.PreferredVersion.Version {
			versions = slices.Insert(versions, 0, v.Version)
		} else {
			versions = append(versions, v.Version)
		}
	}
	return versions
}

// canFollow reports whether an informer can follow a resource: it is no subresource, and can be
// listed and watched.
func canFollow(r metav1.APIResource) bool {
	verbs := discovery.SupportsAllVerbs{Verbs: []string{"list", "watch"}}
	return !strings.Contains(r.Name, "/") && verbs.Match("", &r)
}

// find returns a resource, nil if the catalog has none of that name.
func (c *catalog) find(name schema.GroupResource) *resource {
	at, found := slices.BinarySearchFunc(c.resources, name, func(r resource, name schema.GroupResource) int { return compareResources(r.GroupResource, name) })
	if !found {
		return nil
	}
	return &c.resources[at]
}

// hasCore reports whether the core group has a resource.
func (c *catalog) hasCore(name string) bool {
	return c.find(schema.GroupResource{Resource: name}) != nil
}

// hasCoreGroup reports whether the catalog has a resource of the core group.
func (c *catalog) hasCoreGroup() bool {
	return slices.ContainsFunc(c.resources, func(r resource) bool { return r.Group == "" })
}

// complete reports whether what the catalog lacks is not served.
func (c *catalog) complete() bool { return len(c.broken) == 0 }

// firstMissing is the first of missing, nil without any, or without a catalog.
func (c *catalog) firstMissing() error {
	if c == nil || c.complete() {
		return nil
	}
	return c.missing()[0]
}

// missing are errors for what is broken, sorted.
func (c *catalog) missing() (errs []error) {
	for version, err := range c.broken {
		errs = append(errs, fmt.Errorf("%s cannot be discovered: %w", version, err))
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errs
}
