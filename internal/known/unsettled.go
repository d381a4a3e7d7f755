package known

import (
	"maps"
	"slices"
	"strings"

	"github.com/rvinformer/informer/internal/keytable"
)

// Delivered is what the handler was given of key: the version that it has acknowledged, if
// there is one, and whether it has failed to acknowledge another since.
func (v *Versions) Delivered(key string) (version keytable.Version, exists, unsettled bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	version, exists = v.reading().Get(key)
	_, unsettled = v.unsettled[key]
	return version, exists, unsettled
}

// Settle notes whether it is certain what the handler has of key: its calls returned, or they
// only showed the version that it has.
func (v *Versions) Settle(key string, certain bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if certain {
		delete(v.unsettled, key)
		return
	}
	if v.unsettled == nil { // which hardly any informer needs
		v.unsettled = map[string]uint64{}
	}
	v.unsettled[key] = v.reading().Generation()
}

// Matches reports whether key is known in just this version, and the handler has no other.
func (v *Versions) Matches(key string, version keytable.Version) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if _, unsettled := v.unsettled[key]; unsettled {
		return false
	}
	compared := v.reading().Compare(key, version)
	return compared.SameVersion && compared.SameObject && compared.Identified
}

// Unsettled returns the keys for which the last handler call panicked or failed.
func (v *Versions) Unsettled() []string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return slices.Collect(maps.Keys(v.unsettled))
}

// UnsettledUnknown returns those of Unsettled that have no version.
func (v *Versions) UnsettledUnknown() (keys []string) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for key := range v.unsettled {
		if !v.reading().Compare(key, keytable.Version{}).Known {
			keys = append(keys, key)
		}
	}
	return keys
}

// settleShown notes that a generation shows key, and reports whether the last handler call for
// it panicked or failed. The caller holds the lock.
func (v *Versions) settleShown(key string, generation uint64) (unsettled bool) {
	if len(v.unsettled) == 0 {
		return false
	}
	if _, unsettled = v.unsettled[key]; unsettled {
		v.unsettled[strings.Clone(key)] = generation // a map may keep the newest form of a key
	}
	return unsettled
}
