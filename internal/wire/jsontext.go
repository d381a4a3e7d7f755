package wire

import "io"

// JSONText passes values of a JSON text that is in memory, as lists are read: it checks the whole
// grammar.
type JSONText struct{ scan jsonScan }

// Reset begins with a text. It is not changed, and is read by Skip only.
func (t *JSONText) Reset(text []byte) {
	t.scan.window = window{buf: text, end: len(text), keep: -1, stop: io.EOF}
	t.scan.wrecked, t.scan.fault = false, nil
}

// Skip passes the value that begins at the offset, which is no white space, and returns the offset
// behind it. If that is no value, it returns the offset of the fault and what is wrong there; the
// text that is left is of no use then.
func (t *JSONText) Skip(at int) (end int, fault string) {
	s := &t.scan
	if s.pos, s.depth = at, 0; at >= s.end {
		return s.end, "a value expected"
	}
	switch {
	case s.skip():
		return s.pos, ""
	case s.wrecked:
		return s.pos, s.faultDetail
	default:
		return s.end, "the end of a value expected"
	}
}
