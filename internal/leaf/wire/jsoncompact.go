package wire

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// compact passes the value at pos and what follows, as long as the body holds it whole, as servers
// write it. It returns the place of the first token that it leaves, at pos, or behindValue with
// noBrackets open. It finds no faults: what it does not know is for token to pass or to refuse.
//
// What costs here is not to look at bytes but to wait for the end of a string, because only that
// tells where the next one begins. So quotes are found for 64 bytes at once, ahead of the tokens;
// the ends of strings are then bits of a word. A string of 20 bytes took 8 ns with bytes.IndexByte,
// and takes 5.
//
// It is one function of labels, one per place in the grammar, and the only loops in it are over
// value, behind and white space: what is entered in two ways, or loops around a call, makes the
// compiler put the registers into memory for every token. That is also why a key and a value each
// have their own string.
//
// Registers: b is buf[:end]; i the next byte; quotes has the quotes in b[base:base+64] that are not
// before i.
func (s *jsonScan) compact() (p place) {
	if s.depth > maxDepth-64 { // open could grow beyond maxDepth
		return beforeValue
	}
	var (
		b      = s.buf[:s.end:s.end]
		i      = s.pos
		open   = s.open
		quotes uint64
		base   int
		c      byte
		n      int
	)

value:
	if uint(i) >= uint(len(b)) {
		p = beforeValue
		goto out
	}
	c = b[i]
	if c == '"' {
		if quotes == 0 {
			base = i - 63 // nextQuotes begins inside the string
		}
		if quotes &= quotes - 1; quotes == 0 {
			if quotes, base = nextQuotes(b, base); quotes == 0 {
				p = beforeValue
				goto out
			}
		}
		n = base + bits.TrailingZeros64(quotes)
		quotes &= quotes - 1
		if b[n-1] == '\\' {
			if n, quotes, base = unescapedQuote(b, n, quotes, base); n < 0 {
				p = beforeValue
				goto out
			}
		}
		i = n + 1
		goto behind
	}
	if c == '{' {
		if open.isFull() || uint(i+1) >= uint(len(b)) {
			p = beforeValue
			goto out
		}
		i++
		if b[i] == '}' {
			i++
			goto behind
		}
		open = open<<1 | 1
		goto firstKey
	}
	if c == '[' {
		if open.isFull() || uint(i+1) >= uint(len(b)) {
			p = beforeValue
			goto out
		}
		i++
		if b[i] == ']' {
			i++
			goto behind
		}
		open <<= 1
		goto firstElement
	}
	if n = scalarIn(b[i:]); n > 0 {
		i += n
		goto behind
	}
	if n = pastSpace(b, i); n > i {
		i = n
		goto value
	}
	p = beforeValue
	goto out

behind:
	if open == noBrackets || uint(i) >= uint(len(b)) {
		p = behindValue
		goto out
	}
	c = b[i]
	if open.inObject() {
		if c == ',' {
			i++
			goto key
		}
		if c == '}' {
			i++
			open >>= 1
			goto behind
		}
	} else {
		if c == ',' {
			i++
			goto value
		}
		if c == ']' {
			i++
			open >>= 1
			goto behind
		}
	}
	if n = pastSpace(b, i); n > i {
		i = n
		goto behind
	}
	p = behindValue
	goto out

firstElement: // which is none if there is ']'
	if uint(i) < uint(len(b)) && b[i] > ' ' && b[i] != ']' {
		goto value
	}
	if n = pastSpace(b, i); n > i {
		i = n
		goto firstElement
	}
	p = beforeFirstElement
	goto out

firstKey:
	if uint(i) < uint(len(b)) && b[i] == '"' {
		goto key
	}
	if n = pastSpace(b, i); n > i {
		i = n
		goto firstKey
	}
	p = beforeFirstKey
	goto out

key:
	if uint(i) >= uint(len(b)) || b[i] != '"' {
		if n = pastSpace(b, i); n > i {
			i = n
			goto key
		}
		p = beforeKey
		goto out
	}
	if quotes == 0 {
		base = i - 63
	}
	if quotes &= quotes - 1; quotes == 0 {
		if quotes, base = nextQuotes(b, base); quotes == 0 {
			p = beforeKey
			goto out
		}
	}
	n = base + bits.TrailingZeros64(quotes)
	quotes &= quotes - 1
	if b[n-1] == '\\' {
		if n, quotes, base = unescapedQuote(b, n, quotes, base); n < 0 {
			p = beforeKey
			goto out
		}
	}
	i = n + 1
	if uint(i) >= uint(len(b)) || b[i] != ':' {
		p = beforeColon
		goto out
	}
	i++
	goto value

out:
	s.depth += bits.Len64(uint64(open)) - bits.Len64(uint64(s.open))
	s.pos, s.open = i, open
	return p
}

func pastSpace(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

// nextQuotes goes from b[base:base+64] on to 64 bytes with a quote in them, and returns their
// quotes and their base. There are none if b ends before.
func nextQuotes(b []byte, base int) (uint64, int) {
	if base += 64; base+64 > len(b) {
		return 0, base
	}
	if quotes := quotesIn((*[64]byte)(b[base:])); quotes != 0 {
		return quotes, base
	}
	// In a text that long IndexByte is faster. The 64 bytes are those that its quote ends.
	base += 64
	n := bytes.IndexByte(b[base:], '"')
	if n < 0 {
		return 0, base
	}
	return 1 << 63, base + n - 63
}

// unescapedQuote goes from the quote at n on to the first one that no backslash escapes, or -1. The
// quotes are those behind n.
func unescapedQuote(b []byte, n int, quotes uint64, base int) (int, uint64, int) {
	for isEscaped(b, n) {
		if quotes == 0 {
			if quotes, base = nextQuotes(b, base); quotes == 0 {
				return -1, 0, base
			}
		}
		n = base + bits.TrailingZeros64(quotes)
		quotes &= quotes - 1
	}
	return n, quotes, base
}

// isEscaped counts the backslashes before b[i]. They end at the string's opening quote at the
// latest.
func isEscaped(b []byte, i int) bool {
	n := 0
	for b[i-n-1] == '\\' {
		n++
	}
	return n%2 == 1
}

const ones, highs = 0x0101010101010101, 0x8080808080808080

// quotesIn has a bit for each quote in b.
func quotesIn(b *[64]byte) uint64 {
	return ^(othersIn(b[56:])<<56 | othersIn(b[48:])<<48 | othersIn(b[40:])<<40 | othersIn(b[32:])<<32 |
		othersIn(b[24:])<<24 | othersIn(b[16:])<<16 | othersIn(b[8:])<<8 | othersIn(b[:]))
}

// othersIn has a bit for each byte of b[:8] that is no quote. The sum sets the high bit of a byte
// whose low bits are not all 0, without a carry; the product gathers the high bits in its upper
// byte.
func othersIn(b []byte) uint64 {
	x := binary.LittleEndian.Uint64(b) ^ '"'*ones
	return ((x&^highs + (highs - ones) | x) & highs) * 0x0002040810204081 >> 56
}

// scalarIn is the length of the scalar that b begins with, if it is a literal or an integer of up
// to 7 digits, else 0. What may follow a literal is for the next token to find out.
func scalarIn(b []byte) int {
	if len(b) < 8 {
		return 0
	}
	x := binary.LittleEndian.Uint64(b)
	switch uint32(x) {
	case 'n' | 'u'<<8 | 'l'<<16 | 'l'<<24, 't' | 'r'<<8 | 'u'<<16 | 'e'<<24:
		return 4
	case 'f' | 'a'<<8 | 'l'<<16 | 's'<<24:
		if b[4] == 'e' {
			return 5
		}
		return 0
	}
	x ^= '0' * ones
	// High bits where x is 10 or more. Carries can only make wrong ones above a true one.
	m := ((x + 0x76*ones) | x) & highs
	n := bits.TrailingZeros64(m) / 8
	if n == 8 || n == 0 || n > 1 && b[0] == '0' {
		return 0
	}
	if c := b[n]; c == ',' || c == '}' || c == ']' {
		return n
	}
	return 0
}
