package wire

import (
	"bytes"
	"fmt"
	"io"

	"github.com/rvinformer/informer/api"
)

// maxDepth is encoding/json's: the outermost bracket of a body is depth 1.
const maxDepth = 10000

var errBetween = fmt.Errorf("%w: what stands between the items", api.ErrTooLarge)

// jsonScan reads JSON tokens across refills. Outside strings it checks the whole grammar, because
// that is what keeps item boundaries safe; inside strings it looks for their end only.
//
// Its methods return false for one of two reasons: the grammar broke (wrecked; pos and depth are
// where), or else the body ended (stop says why). A value of the wrong type or a bad escape is
// noted in fault without ending the scan.
//
// A unit is an item, a frame, or what stands between two items. It begins at offset unit and may be
// limit bytes long; a longer item is dropped: held no more, scanned on to its end.
type jsonScan struct {
	window

	limit int64
	unit  int64
	depth int // open brackets before pos

	inItem  bool
	dropped bool
	alike   uint8 // objects since the body began, or was quiet; patternAfter at most
	trying  bool  // the item is compared with the pattern: it must not be dropped
	wrecked bool

	fault       error // ErrMalformed
	faultDetail string
	faultAt     int64

	obj     identity
	scratch []byte // unescaped strings

	pattern *pattern // of the objects, nil without one

	// identity of a dropped item
	lostNamespace, lostName string

	// The open brackets that nested has passed: the innermost in open, those around them in
	// outer[:outers], 63 in each. Hardly any text needs outer.
	open   brackets
	outers int
	outer  []brackets
}

// span is a string's content, as offsets from keep. The zero span is "absent".
type span struct{ from, to int }

func (s *jsonScan) restart(src io.Reader, o Options) {
	s.reset(src, o)
	s.limit = int64(o.MaxItemBytes)
	s.depth = 0
	s.begin(false)
}

// forget ends the loan of the bytes that Next returned last.
func (s *jsonScan) forget() {
	s.release()
	if s.poison {
		poisonBytes(s.scratch)
	}
	if s.scratch = s.scratch[:0]; cap(s.scratch) > s.floor {
		s.scratch = nil
	}
}

// begin starts a unit at pos.
func (s *jsonScan) begin(item bool) {
	s.inItem, s.dropped, s.wrecked, s.fault = item, false, false, nil
	s.obj = identity{}
	s.lostNamespace, s.lostName = "", ""
	s.unit = s.at()
	s.keep = -1
	if item {
		s.keep = s.pos
	}
}

// note keeps the first fault.
func (s *jsonScan) note(detail string) {
	if s.fault == nil {
		s.fault, s.faultDetail, s.faultAt = api.ErrMalformed, detail, s.at()
	}
}

// broken notes a fault of the grammar, and is false to be returned.
func (s *jsonScan) broken(detail string) bool {
	s.note(detail)
	s.wrecked = true
	return false
}

// more is fill within the limits.
func (s *jsonScan) more() bool {
	if size := s.base + int64(s.end) - s.unit; size > s.limit && s.stop == nil {
		if s.trying {
			return false
		}
		if !s.inItem {
			s.stop = errBetween
			return false
		}
		if !s.dropped {
			s.drop()
		}
		if size > s.limit*skipFactor {
			s.stop = api.ErrEndless
			return false
		}
	}
	return s.fill()
}

// drop gives up holding the item. What is known of its identity is saved.
func (s *jsonScan) drop() {
	s.lostNamespace, _ = s.copyText(s.obj.namespace)
	s.lostName, _ = s.copyText(s.obj.name)
	s.dropped = true
	s.keep = -1
}

// peek is the next byte that is not white space, at pos.
func (s *jsonScan) peek() (byte, bool) {
	for {
		for s.pos < s.end {
			c := s.buf[s.pos]
			if c > ' ' || !isSpace(c) {
				return c, true
			}
			s.pos++
		}
		if !s.more() {
			return 0, false
		}
	}
}

// blank passes white space that was read, and reports whether nothing follows it yet.
func (s *jsonScan) blank() bool {
	for s.pos < s.end && isSpace(s.buf[s.pos]) {
		s.pos++
	}
	return s.pos == s.end
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// expect consumes c, white space before it included.
func (s *jsonScan) expect(c byte, detail string) bool {
	got, ok := s.peek()
	if !ok {
		return false
	}
	if got != c {
		return s.broken(detail)
	}
	s.pos++
	return true
}

// str passes the string whose opening quote is at pos. The span is of use only while keep holds.
func (s *jsonScan) str() (span, bool) {
	s.pos++
	from := s.pos - s.keep
	for {
		// Invariant: pos is inside the string and not behind an escaping backslash.
		b := s.buf[s.pos:s.end]
		n := bytes.IndexByte(b, '"')
		if n < 0 {
			// An escaping backslash at the very end is left for the next round; pairs of them are
			// done with.
			s.pos = s.end - oddBackslashes(b)
			if !s.more() {
				return span{}, false
			}
			continue
		}
		s.pos += n + 1
		if oddBackslashes(b[:n]) == 0 {
			return span{from, s.pos - 1 - s.keep}, true
		}
	}
}

// oddBackslashes is 1 if b, which begins outside an escape, ends within one.
func oddBackslashes(b []byte) int {
	n := len(b)
	for n > 0 && b[n-1] == '\\' {
		n--
	}
	return (len(b) - n) & 1
}

// skip passes the value that begins at pos, which is no white space.
func (s *jsonScan) skip() bool {
	switch s.buf[s.pos] {
	case '"':
		_, ok := s.str()
		return ok
	case '{', '[':
		return s.nested()
	}
	return s.scalar()
}

// enter consumes the bracket at pos. leave is its pair.
func (s *jsonScan) enter() {
	s.pos++
	s.depth++
}

func (s *jsonScan) leave() {
	s.pos++
	s.depth--
}

// member goes to the next member's value in an object that was entered, or leaves the object
// (fieldEnd).
func (s *jsonScan) member(first bool) (field, bool) {
	c, ok := s.peek()
	switch {
	case !ok:
		return fieldEnd, false
	case c == '}':
		s.leave()
		return fieldEnd, true
	case !first:
		if c != ',' {
			return fieldEnd, s.broken("',' or '}' expected")
		}
		s.pos++
		if c, ok = s.peek(); !ok {
			return fieldEnd, false
		}
	}
	if c != '"' {
		return fieldEnd, s.broken("a key expected")
	}
	if !s.inItem {
		s.keep = s.pos
	}
	key, ok := s.str()
	if !ok {
		return fieldEnd, false
	}
	f := s.fieldOf(key)
	if !s.inItem {
		s.keep = -1
	}
	if !s.expect(':', "':' expected") {
		return fieldEnd, false
	}
	_, ok = s.peek()
	return f, ok
}

// members passes the object at pos: each passes the value of one member.
func (s *jsonScan) members(each func(f field) bool) bool {
	s.enter()
	for first := true; ; first = false {
		f, ok := s.member(first)
		if !ok || f == fieldEnd {
			return ok
		}
		if !each(f) {
			return false
		}
	}
}

// null passes a value that should have been something else: null is allowed everywhere and changes
// nothing, all else is noted.
func (s *jsonScan) null(wanted string) bool {
	if s.buf[s.pos] != 'n' {
		s.note(wanted)
	}
	return s.skip()
}

// text reads a string into dst; null leaves dst alone.
func (s *jsonScan) text(dst *span) bool {
	if s.buf[s.pos] != '"' {
		return s.null("a string expected")
	}
	v, ok := s.str()
	if ok && !s.dropped {
		*dst = v
	}
	return ok
}

// raw is the span as it stands in the body.
func (s *jsonScan) raw(v span) []byte {
	if s.dropped || v.to == 0 {
		return nil
	}
	return s.buf[s.keep+v.from : s.keep+v.to : s.keep+v.to]
}

// unescaped is the string's value: the bytes of the body if they mean themselves, else a piece of
// scratch.
func (s *jsonScan) unescaped(v span) ([]byte, bool) {
	raw := s.raw(v)
	if isPlain(raw) {
		return raw, true
	}
	from := len(s.scratch)
	var ok bool
	s.scratch, ok = AppendUnescaped(s.scratch, raw)
	return s.scratch[from:len(s.scratch):len(s.scratch)], ok
}

// copyText is unescaped as a string of its own.
func (s *jsonScan) copyText(v span) (string, bool) {
	b, ok := s.unescaped(v)
	return string(b), ok
}

// resync goes on after the grammar broke inside an item at depth floor: to behind its last bracket,
// or, if none was open, to the next ',' or bracket. Only strings and brackets count.
func (s *jsonScan) resync(floor int) bool {
	s.wrecked = false
	inside := s.depth > floor
	for {
		if s.pos == s.end && !s.more() {
			return false
		}
		switch s.buf[s.pos] {
		case '"':
			if _, ok := s.str(); !ok {
				return false
			}
			continue
		case '{', '[':
			s.depth++
			inside = true
		case '}', ']':
			if !inside {
				return true
			}
			if s.depth--; s.depth == floor {
				s.pos++
				return true
			}
		case ',':
			if !inside {
				return true
			}
		}
		s.pos++
	}
}

// ended makes the error that ends the body after a method returned false, or after a fault outside
// the items.
func (s *jsonScan) ended(items int) *api.BodyError {
	if s.wrecked || !s.inItem && s.fault != nil {
		e := s.bodyError(s.fault, s.faultDetail, items)
		e.Offset = s.faultAt
		return e
	}
	return s.cut(items)
}
