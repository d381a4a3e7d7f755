package jsonmap

import (
	"encoding/binary"
	"math/bits"

	"github.com/rvinformer/informer/internal/leaf/intern"
	"github.com/rvinformer/informer/internal/leaf/wire"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// maxRemembered is of values that are remembered. Longer ones, such as the data of most secrets,
// are not.
const maxRemembered = 64

// str reads the string that begins at i with its quote, and is not the expected one.
func (d *Decoder) str(i int, at *place) (interface{}, int) {
	end, hash := d.plain(i + 1)
	if end < 0 {
		content, end := d.special(i)
		if len(content) > maxRemembered {
			return string(content), end
		}
		value, _ := d.words.Value(content, intern.HashOf(content))
		return value, end
	}
	if end-i-1 > maxRemembered {
		return string(d.text[i+1 : end]), end + 1
	}
	value, known := d.words.Value(d.text[i+1:end], hash)
	at.learn(value, known, intern.Tag(hash))
	return value, end + 1
}

// plain returns the offset of the quote that ends the string whose content begins at i, and the
// intern.HashOf of the content. It is -1 where the content does not mean itself, or does not end.
func (d *Decoder) plain(i int) (end int, hash uint64) {
	b := d.text
	for {
		var x uint64
		if i+8 <= len(b) {
			x = binary.LittleEndian.Uint64(b[i:])
		} else {
			for k := len(b) - 1; k >= i; k-- {
				x = x<<8 | uint64(b[k]) // ends with zeros, which no string has
			}
		}
		quote, slash := x^'"'*ones, x^'\\'*ones
		// High bits: byte >= 0x80; byte < 0x20; '"'; '\\'. Borrows can only add false alarms above
		// a true one.
		special := (x | (x - 0x20*ones) | (quote-ones)&^quote | (slash-ones)&^slash) & highs
		if special == 0 {
			hash = intern.Mix(hash, x)
			i += 8
			continue
		}
		n := bits.TrailingZeros64(special) &^ 7
		if byte(x>>n) != '"' {
			return -1, 0
		}
		x &= 1<<n - 1
		return i + n/8, intern.Mix(hash, x)
	}
}

// special reads the string that begins at i with its quote, and does not mean itself. The content
// is lent: it is overwritten by the next one.
func (d *Decoder) special(i int) (content []byte, end int) {
	end = i + 1
	for d.at(end) != '"' {
		switch c := d.at(end); {
		case c == '\\':
			end += 2
		case c < ' ' && end >= len(d.text):
			return nil, d.broken(end, "the end of a string expected")
		case c < ' ':
			return nil, d.broken(end, "a control character in a string")
		default:
			end++
		}
	}
	var ok bool
	if d.unescaped, ok = wire.AppendUnescaped(d.unescaped[:0], d.text[i+1:end]); !ok {
		return nil, d.broken(i, "an invalid escape in this string")
	}
	return d.unescaped, end + 1
}
