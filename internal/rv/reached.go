package rv

// Reached is how far a watch has told what happened.
//
// A version has one event, or several deletions: etcd deletes all that a lease holds in one version,
// and a kube-apiserver has up to 1,000 Events under one lease. A newer version, or a bookmark, shows
// that no more of them will come. Until the first version with several deletions, each deletion is
// taken for the only one of its version. A watch from the version before would tell it once more, and
// a run that resumes cannot know that it was told.
type Reached struct {
	ResourceVersion string
	// Before is the version before ResourceVersion, if that is of a deletion and has an order, and no
	// bookmark has come since. Otherwise it is empty.
	Before string
	// Shared tells that a version had more deletions than one: ResourceVersion may have more, too.
	Shared bool
}

// At is what has told all up to a resource version.
func At(resourceVersion string) Reached { return Reached{ResourceVersion: resourceVersion} }

// Moved returns r after an event, or a bookmark, of a resource version that is not older.
func (r Reached) Moved(resourceVersion string, deletion bool) Reached {
	order, before := Compare(resourceVersion, r.ResourceVersion), ""
	switch {
	case deletion && order == Same:
		r.Shared = r.Shared || r.Before != ""
		return r
	case deletion && order == Newer:
		before = r.ResourceVersion
	}
	return Reached{ResourceVersion: resourceVersion, Before: before, Shared: r.Shared}
}

// Whole is the newest version whose events were all told, as far as that is known.
func (r Reached) Whole() string {
	if r.Before != "" {
		return r.Before
	}
	return r.ResourceVersion
}

// IsPartial reports whether more deletions of ResourceVersion are expected.
func (r Reached) IsPartial() bool { return r.Shared && r.Before != "" }

// Resume is the version from which a watch tells all that was not told.
func (r Reached) Resume() string {
	if r.IsPartial() {
		return r.Before
	}
	return r.ResourceVersion
}

// ResumeFor is Resume when an event of a resource version has come that is not counted in r.
func (r Reached) ResumeFor(resourceVersion string) string {
	switch Compare(resourceVersion, r.ResourceVersion) {
	case Newer: // it shows that no more of ResourceVersion will come
		return r.ResourceVersion
	case Same:
		return r.Whole()
	}
	return r.Resume()
}
