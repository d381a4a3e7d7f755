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

// few returns the text of pods or changes of the set, those with numbers from from up to to, and
// keeps it for the next request. It is nil if they are not few.
func (t templates) few(p part, from, to int) []byte {
	template := t.templateOf[p]
	if (to-from)*template.size() > fewBytes || t.set.share != nil {
		return nil
	}
	key := few{p, t.set.Pods, t.set.Changed, from, to}
	if known, ok := t.fews.Load(key); ok {
		return known.([]byte)
	}
	made := &tiles{template, bytes.Repeat(template.bytes, to-from), newIdentity()}
	text := made.render(to-from, t.set.identities(p, from))
	t.fews.Store(key, text)
	return text
}
