package jsonmap

import (
	"strconv"

	"github.com/rvinformer/informer/internal/leaf/intern"
)

// numbers are those that came last, in their interface values, each in the place that it hashes to.
// The runtime itself shares those below 256.
type numbers [64]interface{}

// of returns n in an interface.
func (m *numbers) of(n int64) interface{} {
	if uint64(n) < 256 {
		return n
	}
	slot := &m[intern.Mix(0, uint64(n))>>58]
	if known, ok := (*slot).(int64); ok && known == n {
		return *slot
	}
	*slot = n
	return *slot
}

// number reads the number that begins at i: an int64 where it is one and has neither point nor
// exponent, else a float64.
func (d *Decoder) number(i int) (interface{}, int) {
	// Up to 18 digits cannot overflow.
	var n int64
	end := i
	for end < len(d.text) && end < i+18 {
		c := d.text[end] - '0'
		if c > 9 {
			break
		}
		n = n*10 + int64(c)
		end++
	}
	if end > i && end < len(d.text) && (d.text[i] != '0' || end == i+1) {
		if c := d.text[end]; c == ',' || c == '}' || c == ']' {
			return d.numbers.of(n), end
		}
	}
	return d.anyNumber(i)
}

// anyNumber is number for all that there is.
func (d *Decoder) anyNumber(i int) (interface{}, int) {
	end, whole := i, true
	if d.at(end) == '-' {
		end++
	}
	switch begin := end; {
	case d.at(end) == '0':
		end++
	default:
		if end = d.digits(end); end == begin {
			return nil, d.broken(end, "a value expected")
		}
	}
	if d.at(end) == '.' {
		whole = false
		begin := end + 1
		if end = d.digits(begin); end == begin {
			return nil, d.broken(end, "a digit expected")
		}
	}
	if c := d.at(end); c == 'e' || c == 'E' {
		begin := end + 1
		if c = d.at(begin); c == '+' || c == '-' {
			begin++
		}
		if end = d.digits(begin); end == begin {
			return nil, d.broken(end, "a digit expected")
		}
	}
	text := string(d.text[i:end])
	if whole {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return d.numbers.of(n), end
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, d.broken(i, "a number out of range")
	}
	return f, end
}

// at returns the byte at i, 0 at the end of the text.
func (d *Decoder) at(i int) byte {
	if i >= len(d.text) {
		return 0
	}
	return d.text[i]
}

// digits returns the offset of the first byte at or behind i that is no digit.
func (d *Decoder) digits(i int) int {
	for d.at(i)-'0' <= 9 {
		i++
	}
	return i
}
