package wire

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// isPlain: the string's content means itself: ASCII, no escapes, no control characters. Eight bytes
// at a time; a quote cannot occur.
func isPlain(b []byte) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	var bad uint64
	for len(b) >= 8 {
		x := binary.LittleEndian.Uint64(b)
		slash := x ^ '\\'*ones
		// High bits: byte >= 0x80; byte < 0x20; byte == '\\'. Borrows can only add false alarms
		// above a true one.
		bad |= x | (x - 0x20*ones) | (slash-ones)&^slash
		b = b[8:]
	}
	if bad&highs != 0 {
		return false
	}
	for _, c := range b {
		if c < 0x20 || c >= 0x80 || c == '\\' {
			return false
		}
	}
	return true
}

// AppendUnescaped appends the value of a JSON string's content, as encoding/json reads it: invalid
// UTF-8 and lone surrogates become U+FFFD. It reports false for what encoding/json rejects.
func AppendUnescaped(dst, b []byte) ([]byte, bool) {
	for len(b) > 0 {
		c := b[0]
		switch {
		case c < 0x20:
			return dst, false
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(b)
			dst = utf8.AppendRune(dst, r)
			b = b[n:]
			continue
		case c != '\\':
			dst = append(dst, c)
			b = b[1:]
			continue
		case len(b) < 2:
			return dst, false
		}
		switch b[1] {
		case '"', '\\', '/':
			dst = append(dst, b[1])
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r := hexRune(b)
			if r < 0 {
				return dst, false
			}
			b = b[6:]
			if utf16.IsSurrogate(r) {
				if pair := utf16.DecodeRune(r, hexRune(b)); pair != utf8.RuneError {
					r = pair
					b = b[6:]
				}
			}
			dst = utf8.AppendRune(dst, r) // a lone surrogate becomes U+FFFD
			continue
		default:
			return dst, false
		}
		b = b[2:]
	}
	return dst, true
}

// hexRune reads \uXXXX at the beginning of b, or is -1.
func hexRune(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// appendQuoted appends v, which is valid UTF-8, as a JSON string.
func appendQuoted(dst []byte, v string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := range len(v) {
		switch c := v[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
