package prune

import (
	"fmt"

	"github.com/rvinformer/informer/internal/leaf/fieldpath"
)

// needed are the fields without which an object cannot be told from others.
var needed = []string{"apiVersion", "kind", "metadata", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion"}

// tree holds paths by the names that they have in common.
type tree struct {
	name     string
	children []*tree
	// end tells that a path ends here. Then there are no children, because longer paths say nothing
	// more.
	end bool
}

// parse adds a path, and returns what is wrong with it.
func (t *tree) parse(what, path string) error {
	if !fieldpath.Valid(path) {
		return fmt.Errorf("%s %q: empty field name", what, path)
	}
	t.add(fieldpath.Split(path))
	return nil
}

func (t *tree) add(names []string) {
	for _, name := range names {
		if t.end {
			return
		}
		next := t.child(name)
		if next == nil {
			next = &tree{name: name}
			t.children = append(t.children, next)
		}
		t = next
	}
	t.end, t.children = true, nil
}

// child returns the paths that go on with name, nil if there are none.
func (t *tree) child(name string) *tree {
	for _, c := range t.children {
		if c.name == name {
			return c
		}
	}
	return nil
}

// keepsWhole reports whether one of the paths ends at one of the names.
func (t *tree) keepsWhole(names []string) bool {
	for _, name := range names {
		if t = t.child(name); t == nil || t.end {
			return t != nil
		}
	}
	return false
}

// first returns one of the paths, behind a path that leads to t.
func (t *tree) first(path []string) []string {
	for !t.end {
		t = t.children[0]
		path = append(path, t.name)
	}
	return path
}
