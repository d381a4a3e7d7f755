package prune

import "github.com/rvinformer/informer/internal/wire"

// jsonScan passes JSON values. Its methods are false, with err set, where the
// text is malformed.
type jsonScan struct {
	text []byte
	pos  int
	err  error
	// values passes what no path leads into.
	values wire.JSONText
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
	end, fault := s.values.Skip(s.pos)
	s.pos = end
	return fault == "" || s.broken(fault)
}
