package rv

// Reached is how far a watch has told what happened.
//
// A version has one event, or several: etcd deletes all that a lease holds in one version, a
// kube-apiserver has up to 1,000 Events under one lease, and a server that is not over etcd may change
// several objects in one version. A newer version shows that no more of them will come. A bookmark of
// the version shows the same, unless a version was seen to have several events: a watch cache may send
// it between two of them, and the next bookmark shows it then.
//
// A watch that goes on in the same process begins before a version that may have more events, and its
// first event is told again: see Resume. A later run cannot know that it was told. So what it goes on
// from is before such a version only once a version was seen to have several events: see Claim.
type Reached struct {
	ResourceVersion string
	// Before is the version before ResourceVersion. It is empty if that is not known, or has no order.
	Before string
	// Shared tells that a version had more events than one: ResourceVersion may have more, too.
	Shared bool
	// Bookmarks counts the bookmarks of ResourceVersion since its newest event, up to 2.
	Bookmarks uint8
}

// At is what has told all up to a resource version.
func At(resourceVersion string) Reached { return Reached{ResourceVersion: resourceVersion} }

// Moved returns r after an event, or a bookmark, of a resource version that is not older.
func (r Reached) Moved(resourceVersion string, bookmark bool) Reached {
	switch Compare(resourceVersion, r.ResourceVersion) {
	case Same:
		r.Shared = r.Shared || !bookmark && r.Before != ""
	case Newer:
		r = Reached{ResourceVersion: resourceVersion, Before: r.ResourceVersion, Shared: r.Shared}
	default:
		r = Reached{ResourceVersion: resourceVersion, Shared: r.Shared}
	}
	if bookmark {
		r.Bookmarks = min(r.Bookmarks+1, 2)
	} else {
		r.Bookmarks = 0
	}
	return r
}

// IsPartial reports whether ResourceVersion may have events that were not told.
func (r Reached) IsPartial() bool {
	return r.Before != "" && (r.Bookmarks == 0 || r.Shared && r.Bookmarks == 1)
}

// IsExpected reports whether more events of ResourceVersion are to be expected, because versions had
// several.
func (r Reached) IsExpected() bool { return r.Shared && r.IsPartial() }

// Resume is the version from which a watch tells all that was not told, and perhaps the newest events
// again. It is also the newest version whose events were all told, as far as that is known.
func (r Reached) Resume() string {
	if r.IsPartial() {
		return r.Before
	}
	return r.ResourceVersion
}

// Claim is the version that a later run goes on from. It would tell again what Resume has told again.
func (r Reached) Claim() string {
	if r.IsExpected() {
		return r.Before
	}
	return r.ResourceVersion
}

// ClaimFor is Claim when an event of a resource version has come that is not counted in r.
func (r Reached) ClaimFor(resourceVersion string) string {
	switch Compare(resourceVersion, r.ResourceVersion) {
	case Newer: // it shows that no more of ResourceVersion will come
		return r.ResourceVersion
	case Same:
		if r.Before != "" {
			return r.Before
		}
	}
	return r.Claim()
}
