package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer"
)

// Group is a named set of resources, which is followed in each cluster in so many shards.
//
// A pattern is one of
//
//   - "*": all resources;
//   - "pods": the resource of that name in the core group or, if it has none, in every group that
//     has one;
//   - "deployments.apps", "*.apps": that, or everything, in a group; "*." is the core group;
//   - "widgets.v1.example.com", "*.v1.example.com": the same in this version, whichever one the
//     server prefers.
//
// Only resources that can be listed and watched are meant. What a cluster lacks of the resources
// that are named without "*" is shown in Cluster.Missing.
type Group struct {
	// Name tells groups apart. It is UTF-8 without "/" and control characters. Default: "all".
	Name string
	// Resources are patterns of the resources in the group. Default: "*".
	Resources []string
	// Except are patterns of the resources that are not in it.
	Except []string
	// Shards is the number of shards that each resource is divided into. Default: 1, the whole set.
	Shards int
	// ShardBy is what resources are divided by. Default: informer.ShardByUID.
	ShardBy informer.ShardKey
}

// group is a Group that was checked.
type group struct {
	name            string
	include, except []pattern
	shards          []informer.Shard
}

func newGroup(g Group) (*group, error) {
	if g.Name == "" {
		g.Name = "all"
	}
	if len(g.Resources) == 0 {
		g.Resources = []string{"*"}
	}
	invalid := func(err error) error { return fmt.Errorf("fleet: group %q: %w", g.Name, err) }
	if strings.Contains(g.Name, "/") || !isText(g.Name) {
		return nil, invalid(errors.New("the name has a slash or a control character, or is not UTF-8"))
	}
	if g.Shards < 0 {
		return nil, invalid(fmt.Errorf("it has %d shards", g.Shards))
	}
	checked := &group{name: g.Name, shards: []informer.Shard{{}}}
	if g.Shards > 1 {
		checked.shards = informer.Shard{Key: cmp.Or(g.ShardBy, informer.ShardByUID)}.Split(g.Shards)
	}
	for _, s := range checked.shards {
		if err := s.Validate(); err != nil {
			return nil, invalid(err)
		}
	}
	var err error
	if checked.include, err = parsePatterns(g.Resources); err != nil {
		return nil, invalid(err)
	}
	if checked.except, err = parsePatterns(g.Except); err != nil {
		return nil, invalid(err)
	}
	return checked, nil
}

func newGroups(groups []Group) ([]*group, error) {
	var checked []*group
	for _, g := range groups {
		next, err := newGroup(g)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(checked, func(other *group) bool { return other.name == next.name }) {
			return nil, fmt.Errorf("fleet: two groups have the name %q", next.name)
		}
		checked = append(checked, next)
	}
	return checked, nil
}

// choice is a resource in the version that a group follows.
type choice struct {
	resource   schema.GroupVersionResource
	kind       string
	namespaced bool
}

// choose returns what a group follows of a catalog, and errors for what it names in vain.
func (g *group) choose(from *catalog) (chosen map[schema.GroupResource]choice, missing []error) {
	chosen = map[schema.GroupResource]choice{}
	met := make([]bool, len(g.include))
	for _, r := range from.resources {
		version := g.versionOf(r, from, met)
		if version != "" {
			chosen[r.GroupResource] = choice{r.WithVersion(version), r.kind, r.namespaced}
		}
	}
	for i, p := range g.include {
		if !met[i] && p.name != anything {
			missing = append(missing, p.lacking(from))
		}
	}
	return chosen, missing
}

// versionOf is the version in which the group follows a resource; empty if it does not. A pattern
// with a version goes before others.
func (g *group) versionOf(r resource, from *catalog, met []bool) (version string) {
	pinned := false
	for _, v := range r.versions {
		if slices.ContainsFunc(g.except, func(p pattern) bool { return p.matches(r, v, from) }) {
			continue
		}
		for i, p := range g.include {
			if !p.matches(r, v, from) {
				continue
			}
			met[i] = true
			if pins := p.pins(r, v); version == "" || pins && !pinned {
				version, pinned = v, pins
			}
		}
	}
	return version
}
