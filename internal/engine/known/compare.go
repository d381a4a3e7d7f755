package known

import "github.com/rvinformer/informer/internal/leaf/keytable"

// Compare compares a version, which may be lent, with that of a key.
func (v *Versions) Compare(key string, version keytable.Version) keytable.Comparison {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.reading().Compare(key, version)
}

// LendFrom lends visit about most of the next keys and versions, and returns where to go on, 0 at
// the end. Visit must not use v.
func (v *Versions) LendFrom(cursor keytable.Cursor, most int, visit func(key string, version *keytable.Binary)) (next keytable.Cursor) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.reading().LendFrom(cursor, most, visit)
}
