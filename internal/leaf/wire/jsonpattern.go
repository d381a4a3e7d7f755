package wire

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"
)

// pattern is the text of one object of a body, and where in it others differ: its holes.
//
// Objects of one kind are much alike, above all those of one owner. An object that equals the text
// outside of the holes, and has a string or a value in each hole, is as well-formed as the text is,
// and ends where the text ends. Comparing is several times as fast as finding each token.
//
// A pattern takes an object only if the scan of tokens would, and finds the same in it. Any other
// object is scanned as if there were no pattern, so that faults are found by that scan alone.
//
// Holes are learnt by comparing: the smallest string or value around a difference becomes a hole.
type pattern struct {
	text  []byte
	nodes []node // in the order of the text, those around others first
	holes []hole // in the order of the text; they do not overlap
	// shift has, for each number of holes, how much further on than in the text the piece behind so
	// many holes stands in the object at hand.
	shift []int

	// says is what the text says of its object. The spans count from the beginning of the text.
	says  identity
	marks [identityStrings]mark

	// matches, misses and loose count objects in a row: those that matched, those that did not, and
	// those most of whose bytes were in holes that take any value.
	matches, misses, loose int
	// wait is how many objects are scanned before one becomes the text, and pause how long the last
	// wait was.
	wait, pause int
}

// hole is a piece of the text in whose place other objects may have another one.
type hole struct {
	from, to int
	// value tells that the hole takes any value. Any other hole takes the content of a string,
	// without its quotes.
	value bool
	depth int // of brackets that the text opens before the hole
}

// mark is how many holes there are before the beginning, and before the end, of a string of the
// identity.
type mark struct{ from, to int }

const identityStrings = 6

// strings are the spans of an identity.
func (o *identity) strings() [identityStrings]*span {
	return [...]*span{&o.apiVersion, &o.kind, &o.namespace, &o.name, &o.uid, &o.rv}
}

const (
	// A body gets a pattern after so many objects, because a few are scanned in less time than one
	// takes to learn.
	patternAfter = 16
	// A body that brings much is read through a buffer of this size or more. Any other body has no
	// pattern, so that a watch that waits needs no memory for one.
	patternBuffer = defaultBufferBytes / 2
	// An object of more bytes or nodes does not become the text, and a text does not get more
	// holes.
	patternBytes = 64 << 10
	patternNodes = 8 << 10
	patternHoles = 1 << 10

	// A text is given up after so many objects in a row that did not match, or that were loose.
	patternMisses = 4
	patternLoose  = 8
	// After so many objects in a row that matched, the next pause is the shortest again.
	patternMatches = 64
	longestPause   = 255
)

// patterns has the memory of patterns that nothing uses.
var patterns = sync.Pool{New: func() any { return new(pattern) }}

// mayMatch counts an object, and reports whether it can be compared with a pattern.
func (s *jsonScan) mayMatch() bool {
	switch {
	case s.dropped:
		return false
	case s.alike < patternAfter:
		s.alike++
		return false
	case len(s.buf) < patternBuffer:
		s.letPatternGo()
		return false
	case s.pattern == nil:
		s.pattern = patterns.Get().(*pattern)
	}
	return len(s.pattern.text) > 0
}

// letPatternGo gives the pattern back.
func (s *jsonScan) letPatternGo() {
	s.alike = 0
	if p := s.pattern; p != nil {
		p.giveUp()
		p.wait, p.pause = 0, 0
		s.pattern = nil
		patterns.Put(p)
	}
}

// giveUp has another object become the text after a pause.
func (p *pattern) giveUp() {
	p.pause = min(2*p.pause+1, longestPause)
	p.text, p.nodes, p.holes, p.wait = p.text[:0], p.nodes[:0], p.holes[:0], p.pause
	p.matches, p.misses, p.loose = 0, 0, 0
}

// offer has an object that was scanned become the text, if one is needed.
func (p *pattern) offer(text []byte) {
	switch {
	case len(p.text) > 0 || len(text) > patternBytes:
	case p.wait > 0:
		p.wait--
	default:
		p.text = append(p.text, text...)
		if !p.index() {
			p.giveUp()
			return
		}
		p.shift = append(p.shift[:0], 0)
		p.locate()
	}
}

// byPattern passes the object at pos and fills obj, if the object matches the pattern. Else all is
// as before.
func (s *jsonScan) byPattern() bool {
	p, start, depth := s.pattern, s.pos-s.keep, s.depth
	fault, detail, at := s.fault, s.faultDetail, s.faultAt
	s.trying = true
	loose, matches := s.match(p, start)
	s.trying = false
	s.depth = depth
	if !matches {
		s.pos, s.wrecked = s.keep+start, false
		s.fault, s.faultDetail, s.faultAt = fault, detail, at
		p.matches = 0
		if p.misses++; p.misses >= patternMisses {
			p.giveUp()
		}
		return false
	}
	p.identify(&s.obj, start)
	s.obj.text = span{start, s.pos - s.keep}

	p.misses = 0
	if p.matches++; p.matches >= patternMatches {
		p.pause = 0
	}
	if p.loose++; 2*loose < len(p.text) {
		p.loose = 0
	} else if p.loose >= patternLoose {
		p.giveUp()
	}
	return true
}

// match compares the object that begins at keep+start with the text, and learns new holes. Loose is
// how many of its bytes were in holes that take any value. If it returns false, pos, depth and
// fault may be anything.
func (s *jsonScan) match(p *pattern, start int) (loose int, matches bool) {
	depth := s.depth
	b, i, at := s.buf[:s.end:s.end], s.pos, 0
	for n := 0; ; n++ {
		to := len(p.text)
		if n < len(p.holes) {
			to = p.holes[n].from
		}
		piece := p.text[at:to]
		for len(b)-i < len(piece) && bytes.HasPrefix(piece, b[i:]) {
			// The object goes on: as much as there is of it is the beginning of the text. Nothing
			// may be read behind the object, because nothing may come there for hours.
			if s.pos = i; !s.more() {
				return 0, false
			}
			b, i = s.buf[:s.end:s.end], s.pos
		}
		if !bytes.HasPrefix(b[i:], piece) {
			if !p.learn(at, at+commonPrefix(b[i:], piece)) {
				return 0, false
			}
			to = p.holes[n].from // holes[n] is the new one
			piece = p.text[at:to]
		}
		i += len(piece)
		if n == len(p.holes) {
			s.pos = i
			return loose, true
		}

		hole := &p.holes[n]
		if end := i; hole.value {
			s.pos, s.depth = i, depth+hole.depth
			if i == len(b) && !s.more() || !s.skip() || s.fault != nil {
				return 0, false
			}
			b, end = s.buf[:s.end:s.end], s.pos
			loose += hole.to - hole.from
			i = end
		} else if end = quoteIn(b, i); end >= 0 && b[end-1] != '\\' {
			i = end
		} else {
			if s.pos = i - 1; b[s.pos] != '"' { // str begins at the quote
				return 0, false
			}
			if _, ok := s.str(); !ok {
				return 0, false
			}
			b, i = s.buf[:s.end:s.end], s.pos-1
		}
		p.shift[n+1] = i - s.keep - start - hole.to
		at = hole.to
	}
}

// identify fills in the identity of the object that matched and begins at start.
func (p *pattern) identify(o *identity, start int) {
	*o = p.says
	for n, v := range o.strings() {
		if v.to > 0 {
			m := p.marks[n]
			v.from += start + p.shift[m.from]
			v.to += start + p.shift[m.to]
		}
	}
}

// learn adds a hole for the difference at an offset of the text, and reports whether the object may
// match with it. The text before from has matched, so that the hole must not begin there.
func (p *pattern) learn(from, difference int) bool {
	h, ok := p.around(difference)
	if !ok || len(p.holes) == patternHoles {
		return false
	}
	first, _ := slices.BinarySearchFunc(p.holes, h.from, func(h hole, from int) int { return h.from - from })
	last := first
	for last < len(p.holes) && p.holes[last].to <= h.to {
		last++
	}
	p.holes = slices.Replace(p.holes, first, last, h)
	for len(p.shift) <= len(p.holes) {
		p.shift = append(p.shift, 0)
	}
	p.locate()
	return h.from >= from
}

// locate sets marks.
func (p *pattern) locate() {
	for n, v := range p.says.strings() {
		m := &p.marks[n]
		m.from, _ = slices.BinarySearchFunc(p.holes, v.from, func(h hole, from int) int { return h.from - from })
		m.to = m.from
		if m.from < len(p.holes) && p.holes[m.from].from == v.from {
			m.to++ // the string itself
		}
	}
}

// quoteIn is where the first quote in b[i:] is, or negative.
func quoteIn(b []byte, i int) int {
	for ; len(b)-i >= 8; i += 8 {
		x := binary.LittleEndian.Uint64(b[i:]) ^ '"'*ones
		// High bits of bytes that are 0. A borrow makes wrong ones above a true one only.
		if zeros := (x - ones) &^ x & highs; zeros != 0 {
			return i + bits.TrailingZeros64(zeros)/8
		}
	}
	if n := bytes.IndexByte(b[i:], '"'); n >= 0 {
		return i + n
	}
	return -1
}

// commonPrefix is how many bytes a and b begin with in common.
func commonPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
