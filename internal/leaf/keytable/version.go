package keytable

import "k8s.io/apimachinery/pkg/types"

// Version tells one state of one object from every other state of that name.
type Version struct {
	// ResourceVersion is the server's opaque version string.
	ResourceVersion string
	// UID tells an object from a later one of the same name. It is empty where
	// it is not known, as for versions that were loaded from elsewhere.
	UID types.UID
}

// SameObject reports whether v and other may be states of one object: their
// UIDs are equal, or one of them is not known.
func (v Version) SameObject(other Version) bool {
	return v.UID == "" || other.UID == "" || v.UID == other.UID
}

// SameState reports whether v and other are versions of one state, as far as their UIDs are known.
// An empty resource version is that of no state.
func (v Version) SameState(other Version) bool {
	return v.ResourceVersion != "" && v.ResourceVersion == other.ResourceVersion && v.SameObject(other)
}

// Comparison is how a version compares to the one that a table has.
type Comparison struct {
	// Known is whether the table has the key. The others are false if not.
	Known bool
	// SameVersion is whether the resource versions are equal.
	SameVersion bool
	// SameObject is what Version.SameObject says of the two.
	SameObject bool
	// Identified is whether the table has a UID. If not, SameObject says nothing.
	Identified bool
	// Marked is whether the generation that shows the key has shown it before.
	Marked bool
}
