package podserver

import "bytes"

// fewBytes is the most that is kept of a set that is sent as it is.
const fewBytes = 128 << 10

// few is a part of a small set, as it is sent: many servers of one process send the same, and each
// would hold tiles while its client does not read.
type few struct {
	part          part
	pods, changed int
	from, to      int
}

type part int

const (
	listed part = iota
	added
	modified
)

// few returns a part of a set: pods, or changes, from one and up to another. It is nil if they are
// not few.
func (f *form) few(p part, set Options, from, to int) []byte {
	t, identify := f.item, set.identify
	switch p {
	case added:
		t = f.added
	case modified:
		t, identify = f.modified, set.identifyChange
	}
	if (to-from)*t.size() > fewBytes || set.share != nil {
		return nil
	}
	key := few{p, set.Pods, set.Changed, from, to}
	if known, ok := f.fews.Load(key); ok {
		return known.([]byte)
	}
	made := &tiles{t, bytes.Repeat(t.bytes, to-from), newIdentity()}
	text := made.render(to-from, func(id *identity, k int) { identify(id, from+k) })
	f.fews.Store(key, text)
	return text
}
