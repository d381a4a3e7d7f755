package fleet

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// anything is the name in a pattern that each resource has.
const anything = "*"

// pattern names resources: see Group.
type pattern struct {
	text string
	name string
	// anyGroup tells that the pattern names no group.
	anyGroup bool
	// group is what follows the name, if that is a group alone.
	group schema.GroupResource
	// exact is the pattern if a version follows the name; nil if it cannot be read that way.
	exact *schema.GroupVersionResource
}

func parsePatterns(texts []string) (patterns []pattern, err error) {
	for _, text := range texts {
		p := pattern{text: text, anyGroup: !strings.Contains(text, ".")}
		p.exact, p.group = schema.ParseResourceArg(strings.ToLower(text))
		p.name = p.group.Resource
		if p.name == "" || strings.ContainsAny(text, "/ ") || p.name != anything && strings.Contains(p.name, anything) || strings.Contains(p.group.Group, anything) {
			return nil, fmt.Errorf("%q is no pattern of resources: write \"*\", \"pods\", \"*.apps\", \"deployments.apps\" or \"widgets.v1.example.com\"", text)
		}
		patterns = append(patterns, p)
	}
	return patterns, nil
}

// matches reports whether the pattern is about a resource in a version.
func (p pattern) matches(r resource, version string, among *catalog) bool {
	switch {
	case p.name != anything && p.name != r.Resource:
		return false
	case p.anyGroup:
		return p.name == anything || r.Group == "" || !among.hasCore(p.name)
	}
	return p.group.Group == r.Group || p.pins(r, version)
}

// lacking is the error for a pattern that no resource matches. It says the name where the pattern
// has the kind.
func (p pattern) lacking(from *catalog) error {
	text := fmt.Sprintf("the cluster has no resource %s that can be listed and watched", p.text)
	for _, r := range from.resources {
		if strings.EqualFold(r.kind, p.name) {
			return fmt.Errorf("%s: the resource of the kind %s is %s", text, r.kind, r.GroupResource)
		}
	}
	return errors.New(text)
}

// pins reports whether the pattern names the version of a resource that it matches.
func (p pattern) pins(r resource, version string) bool {
	return p.exact != nil && p.exact.Group == r.Group && p.exact.Version == version
}
