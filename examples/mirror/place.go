package main

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// place is one resource of one cluster: what one informer follows, and what every message names.
// A place without a resource is the cluster as a whole.
type place struct {
	cluster  string
	resource schema.GroupVersionResource
}

func (p place) String() string {
	return strings.TrimSuffix(p.cluster+" "+p.resourceName(), " ")
}

// resourceName is the short form that kubectl takes too: pods, deployments.apps.
func (p place) resourceName() string {
	return p.resource.GroupResource().String()
}
