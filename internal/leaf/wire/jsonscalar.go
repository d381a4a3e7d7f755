package wire

// scalar passes the number or literal that begins at pos. That what follows is a delimiter is for
// the caller's next token to find out.
func (s *jsonScan) scalar() bool {
	switch s.buf[s.pos] {
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	return s.number()
}

func (s *jsonScan) literal(word string) bool {
	for i := range len(word) {
		if s.pos == s.end && !s.more() {
			return false
		}
		if s.buf[s.pos] != word[i] {
			return s.broken("unexpected character in a literal")
		}
		s.pos++
	}
	return true
}

func (s *jsonScan) number() bool {
	s.one('-', '-')
	if !s.one('0', '0') && s.digits() == 0 {
		return s.wrongNumber()
	}
	if s.one('.', '.') && s.digits() == 0 {
		return s.wrongNumber()
	}
	if s.one('e', 'E') {
		s.one('+', '-')
		if s.digits() == 0 {
			return s.wrongNumber()
		}
	}
	return s.stop == nil || s.pos < s.end
}

// wrongNumber leaves fault alone if the number was cut rather than wrong.
func (s *jsonScan) wrongNumber() bool {
	if s.pos == s.end && s.stop != nil {
		return false
	}
	return s.broken("unexpected character in a number or value")
}

// one passes a byte that is either x or y.
func (s *jsonScan) one(x, y byte) bool {
	if s.pos == s.end && !s.more() {
		return false
	}
	if c := s.buf[s.pos]; c != x && c != y {
		return false
	}
	s.pos++
	return true
}

func (s *jsonScan) digits() (n int) {
	for {
		for s.pos < s.end {
			if c := s.buf[s.pos]; c < '0' || c > '9' {
				return n
			}
			s.pos++
			n = 1
		}
		if !s.more() {
			return n
		}
	}
}
