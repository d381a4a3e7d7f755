package wire

// place is where in the grammar nested is.
type place uint8

const (
	beforeFirstKey place = iota // behind '{'
	beforeKey                   // behind an object's ','
	beforeColon
	beforeFirstElement // behind '['
	beforeValue        // behind ':' or an array's ','
	behindValue
)

// brackets are the open ones, the innermost in the lowest bit: 1 for an object. A 1 stands above
// the outermost.
type brackets uint64

const noBrackets brackets = 1

func (k brackets) isFull() bool   { return k>>63 != 0 }
func (k brackets) inObject() bool { return k&1 != 0 }

// nested passes the object or array that begins at pos. Nearly all bytes of a body go through here,
// and nearly all of them through compact; token passes what that leaves.
func (s *jsonScan) nested() bool {
	s.open, s.outers = noBrackets, 0
	for p, ok := beforeValue, true; ok; p, ok = s.token(p) {
		if p == beforeValue {
			p = s.compact()
		}
		if p == behindValue && s.open == noBrackets {
			if s.outers == 0 {
				return true
			}
			s.outers--
			s.open = s.outer[s.outers]
		}
	}
	return false
}

// token passes one token and white space before it, and returns the place behind it.
func (s *jsonScan) token(p place) (place, bool) {
	c, ok := s.peek()
	if !ok {
		return p, false
	}
	switch p {
	case beforeFirstKey, beforeKey:
		if c == '"' {
			_, ok = s.str()
			return beforeColon, ok
		}
		if c == '}' && p == beforeFirstKey {
			return s.closing()
		}
	case beforeColon:
		if c == ':' {
			s.pos++
			return beforeValue, true
		}
	case beforeFirstElement, beforeValue:
		if c == '{' || c == '[' {
			return s.opening(c)
		}
		if c == ']' && p == beforeFirstElement {
			return s.closing()
		}
		return behindValue, s.skip()
	case behindValue:
		switch object := s.open.inObject(); {
		case c == ',' && object:
			s.pos++
			return beforeKey, true
		case c == ',':
			s.pos++
			return beforeValue, true
		case c == '}' && object, c == ']' && !object:
			return s.closing()
		}
	}
	return p, s.broken("unexpected character")
}

func (s *jsonScan) opening(c byte) (place, bool) {
	if s.depth == maxDepth {
		return 0, s.broken("nested too deep")
	}
	if s.open.isFull() {
		s.outer = append(s.outer[:s.outers], s.open)
		s.outers++
		s.open = noBrackets
	}
	s.enter()
	if s.open <<= 1; c == '[' {
		return beforeFirstElement, true
	}
	s.open |= 1
	return beforeFirstKey, true
}

func (s *jsonScan) closing() (place, bool) {
	s.leave()
	s.open >>= 1
	return behindValue, true
}
