package shard

import "strings"

// Has reports whether an object with a key, "namespace/name" or "name", is in a shard.
func Has(s Shard, key, uid string) bool {
	return s.IsAll() || s.Includes(key[:max(strings.IndexByte(key, '/'), 0)], uid)
}

// HasForCertain is Has for an object whose UID may not be known. It is false if the UID is needed
// and empty.
func HasForCertain(s Shard, key, uid string) bool {
	return s.IsAll() || (uid != "" || s.Key != ByUID) && Has(s, key, uid)
}

// LacksForCertain reports whether an object, whose UID may not be known, is not in a shard. It is
// false if the UID is needed and empty.
func LacksForCertain(s Shard, key, uid string) bool {
	return !s.IsAll() && (uid != "" || s.Key != ByUID) && !Has(s, key, uid)
}
