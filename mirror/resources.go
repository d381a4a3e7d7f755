package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
)

// found is what discovery says that there is to mirror.
type found struct {
	resources []schema.GroupVersionResource // one version of each, sorted
	missing   []error                       // what was asked for, or advertised, and is not there
	complete  bool                          // nothing else that can be watched exists in the cluster
}

// discoverAll finds everything that can be listed and watched, in the version that the server
// prefers.
func discoverAll(ctx context.Context, client discovery.DiscoveryInterfaceWithContext) (found, error) {
	lists, err := discovery.ServerPreferredResourcesWithContext(ctx, client)
	broken, partly := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partly {
		return found{}, err
	}
	what := found{complete: !partly}
	for version, err := range broken {
		what.missing = append(what.missing, fmt.Errorf("%s is not discoverable: %s", version, reason(err)))
	}
	for _, list := range lists {
		of, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return found{}, fmt.Errorf("discovery names an unreadable group version: %w", err)
		}
		for _, resource := range list.APIResources {
			if canFollow(resource) {
				what.add(of.WithResource(resource.Name))
			}
		}
	}
	if len(what.resources) == 0 {
		// Something hides them. To take this for the truth would empty the mirror.
		return found{}, errors.New("discovery shows nothing that can be listed and watched")
	}
	return what, nil
}

// canFollow tells resources that an informer can follow from subresources and from what can only be
// created or read.
func canFollow(resource metav1.APIResource) bool {
	verbs := discovery.SupportsAllVerbs{Verbs: []string{"list", "watch"}}
	return !strings.Contains(resource.Name, "/") && verbs.Match("", &resource)
}

// discoverNamed looks up what the user has named, as kubectl does: pods, po, deployments.apps,
// widgets.v1.example.com.
func discoverNamed(ctx context.Context, client discovery.DiscoveryInterfaceWithContext, names []string) (found, error) {
	groups, err := restmapper.GetAPIGroupResourcesWithContext(ctx, client)
	if err != nil {
		return found{}, err
	}
	mapper := restmapper.NewShortcutExpanderWithContext(restmapper.NewDiscoveryRESTMapperWithContext(groups), client, nil)

	var what found
	for _, name := range names {
		resource, err := resolve(ctx, mapper, name)
		if err != nil {
			if meta.IsNoMatchError(err) {
				err = errors.New("the cluster has no such resource")
			}
			what.missing = append(what.missing, fmt.Errorf("--resources %s: %w", name, err))
			continue
		}
		what.add(resource)
	}
	return what, nil
}

func resolve(ctx context.Context, mapper meta.RESTMapperWithContext, name string) (schema.GroupVersionResource, error) {
	exact, byGroup := schema.ParseResourceArg(strings.ToLower(name))
	if exact != nil {
		// deployments.apps.example.com has the same shape as deployments.v1.apps: it is the first
		// if the second is unknown.
		if resource, err := mapper.ResourceForWithContext(ctx, *exact); err == nil {
			return resource, nil
		}
	}
	return mapper.ResourceForWithContext(ctx, byGroup.WithVersion(""))
}

// add keeps the list sorted and without doubles. Two versions of one resource show the same
// objects: the first one stays.
func (f *found) add(resource schema.GroupVersionResource) {
	at, known := slices.BinarySearchFunc(f.resources, resource, func(a, b schema.GroupVersionResource) int {
		return strings.Compare(a.GroupResource().String(), b.GroupResource().String())
	})
	switch {
	case !known:
		f.resources = slices.Insert(f.resources, at, resource)
	case f.resources[at] != resource:
		f.missing = append(f.missing, fmt.Errorf("%s is the same as %s, which is mirrored already", resource, f.resources[at]))
	}
}

// missed is the one error for all that is missing, or nil.
func (f *found) missed() error {
	if len(f.missing) == 0 {
		return nil
	}
	slices.SortFunc(f.missing, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.New(utilerrors.NewAggregate(f.missing).Error())
}
