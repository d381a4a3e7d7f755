package pack

import (
	"slices"
	"unsafe"

	"github.com/klauspost/compress/huff0"
)

// codes are the Huffman codes of a pack. What s2 leaves of an object is mostly what differs:
// hexadecimal digits, and copies of the same few kinds. One code for all records shortens them by a
// quarter and costs a record nothing, as a table of its own would.
type codes struct {
	list []code // by number; 0 is none
	// counts are the bytes that were seen, until the last code is made.
	counts *[256]uint32
	seen   int
	tries  int // of making a code
}

type code struct {
	decoder *huff0.Decoder
	table   []byte // its lengths, as in zstd; what encoders are made of
}

const (
	// A code is made of the first firstCode bytes, and the next ones of nextCode times as many, up
	// to maxCodes: early objects may be unlike later ones.
	firstCode = 16 << 10
	nextCode  = 16
	maxCodes  = 3
	// minCoded and maxCoded bound what is coded. Decoders keep a buffer of maxCoded bytes.
	minCoded = 24
	maxCoded = 32 << 10
	// decoderBytes is what a decoder holds: 2,048 entries of two bytes, and itself.
	decoderBytes = 2*2048 + 128
)

// learn counts the bytes of a payload, and makes a code when there are enough.
func (c *codes) learn(payload []byte) {
	if c.tries == maxCodes || len(payload) > maxCoded {
		return
	}
	if c.counts == nil {
		c.counts = new([256]uint32)
		for k := range c.counts {
			c.counts[k] = 1 // each byte can be coded
		}
	}
	for _, b := range payload {
		c.counts[b]++
	}
	c.seen += len(payload)
	need := firstCode
	for range c.tries {
		need *= nextCode
	}
	if c.seen < need {
		return
	}
	c.tries++
	encoder := new(huff0.Scratch)
	err := encoder.BuildCTable(c.counts)
	if c.tries == maxCodes {
		c.counts = nil
	}
	if err != nil {
		return // all bytes are as frequent
	}
	if table, err := encoder.AppendTable(nil); err == nil {
		c.add(table)
	}
}

// add adds the code with this table, which it takes over, and reports whether there is one.
func (c *codes) add(table []byte) bool {
	s, rest, err := huff0.ReadTable(table, nil)
	if err != nil || len(rest) > 0 {
		return false
	}
	if len(c.list) == 0 {
		c.list = make([]code, 1, 2)
	}
	c.list = append(c.list, code{decoder: s.Decoder(), table: slices.Clip(table)})
	return true
}

// newest is the number of the code for new records.
func (c *codes) newest() uint8 { return uint8(max(0, len(c.list)-1)) }

// encoder returns a new encoder of a code.
func (c *codes) encoder(number uint8) *huff0.Scratch {
	s, _, err := huff0.ReadTable(c.list[number].table, nil)
	if err != nil {
		return nil // add has read it
	}
	s.Reuse = huff0.ReusePolicyMust
	return s
}

func (c *codes) sizeBytes() int64 {
	n := cap(c.list) * int(unsafe.Sizeof(code{}))
	for k := range c.list {
		if c.list[k].decoder != nil {
			n += decoderBytes + cap(c.list[k].table)
		}
	}
	if c.counts != nil {
		n += int(unsafe.Sizeof(*c.counts))
	}
	return int64(n)
}
