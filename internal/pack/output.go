package pack

import (
	"bufio"
	"encoding/binary"
	"hash/crc32"
	"io"
)

// Output writes a snapshot and sums it: numbers as varints, and texts behind their lengths. Its
// first error stays.
type Output struct {
	w   *bufio.Writer
	n   int64
	sum uint32
	err error
}

// NewOutput returns an output to w. End has to follow.
func NewOutput(w io.Writer) *Output { return &Output{w: bufio.NewWriterSize(w, maxChunk)} }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Write writes bytes as they are.
func (o *Output) Write(b []byte) {
	if o.err != nil {
		return
	}
	var n int
	n, o.err = o.w.Write(b)
	o.n += int64(n)
	o.sum = crc32.Update(o.sum, castagnoli, b)
}

// Number writes a number.
func (o *Output) Number(n uint64) {
	var b [binary.MaxVarintLen64]byte
	o.Write(b[:binary.PutUvarint(b[:], n)])
}

// Text writes a text.
func (o *Output) Text(b []byte) {
	o.Number(uint64(len(b)))
	o.Write(b)
}

// End writes the CRC-32C of all that was written. It returns how many bytes there are with it, and
// the first error.
func (o *Output) End() (int64, error) {
	o.Write(binary.LittleEndian.AppendUint32(nil, o.sum))
	if o.err == nil {
		o.err = o.w.Flush()
	}
	return o.n, o.err
}
