package known

import (
	"slices"

	"github.com/rvinformer/informer/internal/keytable"
	"github.com/rvinformer/informer/internal/object"
	"github.com/rvinformer/informer/internal/rv"
)

const (
	// sampled is how many keys are looked at to choose the objects of an inquiry, and
	// mostAsked how many are chosen.
	sampled, mostAsked = 64, 3
)

// Sample returns some objects with the oldest versions, because these are the least likely to
// be gone. It leaves out the keys for which leaveOut, which is called without a lock, is true.
func (v *Versions) Sample(leaveOut func(key string) bool) []object.Known {
	v.mu.RLock()
	objects := someOf(v.reading())
	v.mu.RUnlock()
	return Oldest(slices.DeleteFunc(objects, func(o object.Known) bool { return leaveOut(o.Key) }))
}

// someOf returns some objects of a table.
func someOf(table *keytable.Table) (objects []object.Known) {
	keys, _ := table.KeysFrom(0, sampled)
	for _, key := range keys {
		if version, ok := table.Get(key); ok && version.ResourceVersion != "" {
			objects = append(objects, object.Known{Key: key, Version: version})
		}
	}
	return objects
}

// Oldest returns the few that have the oldest versions.
func Oldest(objects []object.Known) []object.Known {
	slices.SortStableFunc(objects, func(a, b object.Known) int {
		switch rv.Compare(a.Version.ResourceVersion, b.Version.ResourceVersion) {
		case rv.Older:
			return -1
		case rv.Newer:
			return 1
		}
		return 0
	})
	return objects[:min(len(objects), mostAsked)]
}
