package wire

import "bytes"

// nested passes the object or array that begins at pos. Nearly all bytes of a body go through here, so it is one
// function of labels: one per place in the grammar, each with its own way to a refill and back.
//
// Registers: b is buf[:end], i the next byte, object whether the innermost bracket is one. pos and depth are written
// back before anything else looks at them.
func (s *jsonScan) nested() bool {
	var (
		b      = s.buf[:s.end]
		i      = s.pos
		floor  = s.depth
		depth  = s.depth
		object bool
		c      byte
		n      int
		place  uint8 // where refill returns to
	)
	const (
		inFirstKey = iota
		inKey
		inKeyString
		inColon
		inFirstElement
		inValue
		inValueString
		inAfter
	)

open: // b[i] is '{' or '['
	if depth == maxDepth {
		s.pos, s.depth = i, depth
		return s.broken("nested too deep")
	}
	depth++
	object = b[i] == '{'
	i++
	if object {
		s.stack[depth>>6] |= 1 << (depth & 63)
		goto firstKey
	}
	s.stack[depth>>6] &^= 1 << (depth & 63)

firstElement:
	for ; i < len(b); i++ {
		if c = b[i]; c == ']' {
			goto closing
		}
		if !isSpace(c) {
			goto value
		}
	}
	place = inFirstElement
	goto refill

firstKey:
	for ; i < len(b); i++ {
		if c = b[i]; c == '"' {
			i++
			goto keyString
		}
		if c == '}' {
			goto closing
		}
		if !isSpace(c) {
			goto broken
		}
	}
	place = inFirstKey
	goto refill

key:
	for ; i < len(b); i++ {
		if c = b[i]; c == '"' {
			i++
			goto keyString
		}
		if !isSpace(c) {
			goto broken
		}
	}
	place = inKey
	goto refill

keyString: // i is inside the string and not behind an escaping backslash
	n = bytes.IndexByte(b[i:], '"')
	if n < 0 {
		i = len(b) - oddBackslashes(b[i:])
		place = inKeyString
		goto refill
	}
	if n > 0 && b[i+n-1] == '\\' && oddBackslashes(b[i:i+n]) == 1 {
		i += n + 1
		goto keyString
	}
	i += n + 1

colon:
	for ; i < len(b); i++ {
		if c = b[i]; c == ':' {
			i++
			goto value
		}
		if !isSpace(c) {
			goto broken
		}
	}
	place = inColon
	goto refill

value:
	for ; i < len(b); i++ {
		switch c = b[i]; c {
		case '"':
			i++
			goto valueString
		case '{', '[':
			goto open
		case ' ', '\n', '\r', '\t':
			continue
		}
		s.pos, s.depth = i, depth
		if !s.scalar() {
			return false
		}
		b, i = s.buf[:s.end], s.pos
		goto after
	}
	place = inValue
	goto refill

valueString: // as keyString
	n = bytes.IndexByte(b[i:], '"')
	if n < 0 {
		i = len(b) - oddBackslashes(b[i:])
		place = inValueString
		goto refill
	}
	if n > 0 && b[i+n-1] == '\\' && oddBackslashes(b[i:i+n]) == 1 {
		i += n + 1
		goto valueString
	}
	i += n + 1

after:
	for ; i < len(b); i++ {
		switch c = b[i]; c {
		case ',':
			i++
			if object {
				goto key
			}
			goto value
		case '}', ']':
			goto closing
		case ' ', '\n', '\r', '\t':
			continue
		}
		goto broken
	}
	place = inAfter
	goto refill

closing: // c is b[i], a closing bracket
	if object != (c == '}') {
		goto broken
	}
	i++
	if depth--; depth == floor {
		s.pos, s.depth = i, depth
		return true
	}
	object = s.stack[depth>>6]&(1<<(depth&63)) != 0
	goto after

refill:
	s.pos, s.depth = i, depth
	if !s.more() {
		return false
	}
	b, i = s.buf[:s.end], s.pos
	switch place {
	case inFirstKey:
		goto firstKey
	case inKey:
		goto key
	case inKeyString:
		goto keyString
	case inColon:
		goto colon
	case inFirstElement:
		goto firstElement
	case inValue:
		goto value
	case inValueString:
		goto valueString
	}
	goto after

broken:
	s.pos, s.depth = i, depth
	return s.broken("unexpected character")
}
