package main

import (
	"strings"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// place is one resource of one cluster: what one informer follows, and what every message names. A
// place without a resource is the cluster as a whole. Where replicas share the work, it is a shard
// of the resource.
type place struct {
	cluster  string
	resource schema.GroupVersionResource
	group    string         // of resources that one replica follows; empty where one mirror does everything
	shard    informer.Shard // of the resource; all of it by default
}

func (p place) String() string {
	text := strings.TrimSuffix(p.cluster+" "+p.resourceName(), " ")
	if !p.shard.IsAll() {
		text += " " + p.shard.String()
	}
	return text
}

// unit is the part of the work that has one owner, and one epoch, together with this place.
func (p place) unit() string {
	return fleet.Unit{Cluster: p.cluster, Group: p.group, Shard: p.shard}.String()
}

// resourceName is the short form that kubectl takes too: pods, deployments.apps.
func (p place) resourceName() string {
	return p.resource.GroupResource().String()
}
