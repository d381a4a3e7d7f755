package pack

import (
	"encoding/binary"
	"math"
)

// form says what a payload is.
type form uint8

const (
	raw         form = iota // the object itself
	alone                   // s2
	againstRoot             // s2 with the root as dictionary
	againstBase             // s2 with another record as dictionary
)

// header begins each record in a chunk. Its first byte has the form, the code and whether the
// record is a base; the other numbers are varints. The head and the payload follow it.
type header struct {
	form  form
	code  uint8  // number of the Huffman code of the payload; 0: none
	owner uint32 // the caller's number
	own   uint32 // the base that this record is; 0: none
	root  uint32 // of a record againstRoot
	base  uint32 // of a record againstBase
	head  int    // lengths
	payload,
	prefix int
}

const isBase = 1 << 5

// maxHeader is the length of the longest header.
const maxHeader = 1 + 5*binary.MaxVarintLen32

func (h *header) append(b []byte) []byte {
	first := byte(h.form) | h.code<<2
	if h.own != 0 {
		first |= isBase
	}
	b = append(b, first)
	b = binary.AppendUvarint(b, uint64(h.owner))
	b = binary.AppendUvarint(b, uint64(h.head))
	b = binary.AppendUvarint(b, uint64(h.payload))
	if h.own != 0 {
		b = binary.AppendUvarint(b, uint64(h.own))
	}
	switch h.form {
	case againstRoot:
		b = binary.AppendUvarint(b, uint64(h.root))
	case againstBase:
		b = binary.AppendUvarint(b, uint64(h.base))
	}
	return b
}

// valid reports whether b begins with a whole record whose header append has written.
func valid(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	numbers := 3
	if b[0]&isBase != 0 {
		numbers++
	}
	if f := form(b[0] & 3); f == againstRoot || f == againstBase {
		numbers++
	}
	at, length := 1, uint64(0)
	for k := range numbers {
		v, n := binary.Uvarint(b[at:])
		if n <= 0 || n > binary.MaxVarintLen32 || v > math.MaxUint32 {
			return false
		}
		if at += n; k == 1 || k == 2 { // head and payload
			length += v
		}
	}
	return length <= uint64(len(b)-at)
}

// parse reads a header that append has written, and returns where the head begins.
func parse(b []byte) (h header, start int) {
	first := b[0]
	h.form, h.code = form(first&3), first>>2&7
	start = 1
	next := func() uint32 {
		if b[start] < 0x80 {
			start++
			return uint32(b[start-1])
		}
		v, n := binary.Uvarint(b[start:])
		start += n
		return uint32(v)
	}
	h.owner = next()
	h.head = int(next())
	h.payload = int(next())
	if first&isBase != 0 {
		h.own = next()
	}
	switch h.form {
	case againstRoot:
		h.root = next()
	case againstBase:
		h.base = next()
	}
	h.prefix = start
	return h, start
}

// size is the length of the whole record.
func (h *header) size() int { return h.prefix + h.head + h.payload }

// payloadOf returns the payload of a record, which may have other bytes behind it.
func (h *header) payloadOf(record []byte) []byte {
	at := h.prefix + h.head
	return record[at : at+h.payload : at+h.payload]
}
