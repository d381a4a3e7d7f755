package recency

import "github.com/rvinformer/informer/internal/leaf/rv"

// Trust tells whether an object of a known version is the known object. A list that shows that the
// server was restored is read once more, and what is kept is then compared with what was read. The
// zero value trusts.
type Trust struct {
	// told is the resource version up to which the server had told everything when the list began,
	// empty if that is not certain.
	told string
	// restored tells that the list shows something that is not newer, and that the server has not
	// told of.
	restored bool
	// lost tells that versions say nothing, until a list was read to its end.
	lost bool
	// replaced is how often another cluster was found.
	replaced int
}

// Begin begins a list. Told is the version up to which the server has told everything, empty if
// that is not certain, and replaced how often another cluster was found.
func (t *Trust) Begin(told string, replaced int) {
	t.told, t.restored = told, false
	t.lost = t.lost || replaced != t.replaced
	t.replaced = replaced
}

// Lost reports whether equal versions say nothing in the list under way.
func (t *Trust) Lost() bool { return t.lost }

// Note notes an object of the list in a version that is not the known one.
func (t *Trust) Note(resourceVersion string) {
	t.restored = t.restored || rv.NotNewer(resourceVersion, t.told)
}

// End reports whether the list, which was read to its end, can be trusted. If not, it has to be
// read once more.
func (t *Trust) End(resourceVersion string) bool {
	trusted := t.lost || !t.restored && rv.Compare(resourceVersion, t.told) != rv.Older
	t.lost = !trusted
	return trusted
}
