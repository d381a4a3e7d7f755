package oracle

import "sort"

// position is the newest record of the writes of an epoch that are at or before a
// version; false where that cannot be told.
func (h *History) position(epoch int, version string) (int, bool) {
	e := &h.epochs[epoch]
	if n, ok := e.versions[version]; ok {
		return n, true
	}
	comparable := true
	after := sort.Search(len(e.writes), func(i int) bool {
		order, err := h.options.Compare(h.versionOf(e.writes[i]), version)
		comparable = comparable && err == nil
		return order > 0
	})
	if !comparable || after == 0 {
		return 0, false
	}
	return e.writes[after-1], true
}

// versionOf is the version that a write or a restore made.
func (h *History) versionOf(n int) string {
	switch w := h.records[n].what.(type) {
	case Write:
		return w.ResourceVersion
	case restoration:
		return w.version
	}
	return ""
}
