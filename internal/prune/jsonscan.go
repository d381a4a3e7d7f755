package prune

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// jsonScan passes JSON values. Its methods are false, with err set, where the
// text is malformed.
type jsonScan struct {
	text []byte
	pos  int
	err  error
}

// broken is false, to be returned.
func (s *jsonScan) broken(detail string) bool {
	if s.pos >= len(s.text) {
		detail = "cut: " + detail
	}
	s.err = &MalformedError{Offset: s.pos, Detail: detail}
	return false
}

// peek goes to the next byte that is no white space; at the end it is 0, which
// begins and ends nothing.
func (s *jsonScan) peek() byte {
	for ; s.pos < len(s.text); s.pos++ {
		switch c := s.text[s.pos]; c {
		case ' ', '\n', '\r', '\t':
		default:
			return c
		}
	}
	return 0
}

// skip passes the value that begins at pos, which is no white space.
func (s *jsonScan) skip() bool {
	switch s.peek() {
	case '"':
		return s.string()
	case '{', '[':
		return s.nested()
	}
	return s.scalar()
}

// string passes the string whose opening quote is at pos.
func (s *jsonScan) string() bool {
	end := stringEnd(s.text, s.pos+1)
	if end < 0 {
		s.pos = len(s.text)
		return s.broken("'\"' expected")
	}
	s.pos = end
	return true
}

// stringEnd is where the string ends, behind its closing quote, or -1. b[i-1] is
// its opening quote.
func stringEnd(b []byte, i int) int {
	for {
		n := indexQuote(b[i:])
		if n < 0 {
			return -1
		}
		if i += n + 1; b[i-2] != '\\' || !isEscaped(b, i-1) {
			return i
		}
	}
}

// indexQuote is bytes.IndexByte of a quote, for strings that are mostly short:
// it looks at 16 bytes before it calls that.
func indexQuote(b []byte) int {
	const ones, highs, quotes = 0x0101010101010101, 0x8080808080808080, '"' * 0x0101010101010101
	for i := 0; i < 16 && i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:]) ^ quotes
		// High bits where x is 0. Borrows can only add false ones above a true one.
		if found := (x - ones) &^ x & highs; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	return bytes.IndexByte(b, '"')
}

// isEscaped counts the backslashes before b[i]. A quote stands before them.
func isEscaped(b []byte, i int) bool {
	n := 0
	for b[i-n-1] == '\\' {
		n++
	}
	return n%2 == 1
}

// nesting is by how much a byte outside strings goes deeper.
var nesting = [256]int8{'{': 1, '[': 1, '}': -1, ']': -1}

// nested passes the object or array that begins at pos. Nearly all bytes of an
// object go through here.
func (s *jsonScan) nested() bool {
	b, i := s.text, s.pos
	for depth := 0; i < len(b); {
		c := b[i]
		i++
		if c == '"' {
			if i = stringEnd(b, i); i < 0 {
				break
			}
			continue
		}
		if depth += int(nesting[c]); depth == 0 {
			s.pos = i
			return true
		}
	}
	s.pos = len(b)
	return s.broken("a closing bracket or '\"' expected")
}

// scalar passes a number or literal, whose spelling is not looked at.
func (s *jsonScan) scalar() bool {
	from := s.pos
	for s.pos < len(s.text) && isScalar(s.text[s.pos]) {
		s.pos++
	}
	return s.pos > from || s.broken("a value expected")
}

func isScalar(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'E'
}
