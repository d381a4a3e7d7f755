package report

import (
	"strconv"
	"time"

	"github.com/rvinformer/informer/internal/leaf/moment"
)

// marks say of a few moments how far the reading had come then. From them follows about when a
// version was read, without a time for each object.
//
// The newest mark is about a minute old, and each one behind it is older by its spacing at least,
// or is the first of all. Versions that are no numbers of 64 bits leave none.
type marks [4]mark

// mark says that everything up to a version had been read at a moment, and nothing that is newer.
type mark struct {
	version uint64
	at      moment.Moment // zero: there is no mark
}

// spacing is how much older than a mark the one behind it is.
var spacing = [len(marks{}) - 2]time.Duration{10 * time.Minute, 2 * time.Hour}

// freshness is the age of the newest mark from which on there is another.
const freshness = time.Minute

// due reports whether it is time for another mark.
func (m *marks) due(now moment.Moment) bool { return now.Since(m[0].at) >= freshness }

// wentBack reports whether a version is a smaller number than the one before, if both are numbers.
func wentBack(from, to string) bool {
	return len(to) < len(from) || len(to) == len(from) && to < from
}

// add notes that the reading has come to a version.
func (m *marks) add(resourceVersion string, now moment.Moment) {
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil || version < m[0].version { // the versions have no order, or went back
		*m = marks{}
	}
	if err != nil {
		return
	}
	old := *m
	for i := 1; i < len(m) && old[i-1].at != 0; i++ {
		last := i == len(m)-1
		if kept := old[i].at != 0; kept && (last || old[i-1].at.Since(old[i].at) < spacing[i-1]) {
			break
		}
		m[i] = old[i-1]
	}
	m[0] = mark{version, now}
}

// read returns bounds of the time when the reading came to a version: after from, and not after
// until. They are zero where that is not known.
func (m *marks) read(resourceVersion string) (from, until time.Time) {
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return from, until
	}
	for _, mark := range m { // the newest first
		switch {
		case mark.at == 0:
		case mark.version >= version:
			until = mark.at.Time()
		case from.IsZero():
			from = mark.at.Time()
		}
	}
	return from, until
}

// Read returns when about the reading came to a resource version: after from, and not after until.
// Each is zero where it is not known.
func (p *Progress) Read(resourceVersion string) (from, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.marks.read(resourceVersion)
}
