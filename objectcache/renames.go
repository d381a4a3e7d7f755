package objectcache

import (
	"maps"
	"strings"
)

// renames has the keys under which objects are kept that Transform has renamed, by the keys under
// which they are read. The zero value is empty, and stays so without such a Transform.
type renames struct {
	keys map[string]*renamed
	// generation is the number of the newest generation.
	generation int
}

type renamed struct {
	key string
	// shown is the newest generation that has shown the object.
	shown int
}

// of returns the key under which an object is kept. Key may be lent.
func (r *renames) of(key string) string {
	if to := r.keys[key]; to != nil {
		to.shown = r.generation
		return to.key
	}
	return key
}

// note notes under which key an object is kept that was read under a key, which may be lent.
func (r *renames) note(key, kept string) {
	switch to := r.keys[key]; {
	case kept == key:
		delete(r.keys, key)
	case to != nil:
		to.key, to.shown = kept, r.generation
	default:
		if r.keys == nil {
			r.keys = map[string]*renamed{}
		}
		r.keys[strings.Clone(key)] = &renamed{strings.Clone(kept), r.generation}
	}
}

// forget notes that the server has deleted an object.
func (r *renames) forget(key string) { delete(r.keys, key) }

// begin begins a generation, and end forgets what it has not shown.
func (r *renames) begin() { r.generation++ }

func (r *renames) end() {
	maps.DeleteFunc(r.keys, func(_ string, to *renamed) bool { return to.shown != r.generation })
}
