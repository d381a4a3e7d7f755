package checkpoint

import "encoding/binary"

// PayloadWriter writes the payload of a snapshot: numbers, and strings behind their lengths. Its
// first error stays, and Close returns it.
type PayloadWriter struct{ w *Writer }

// Payload writes the end, and returns what writes the payload behind it. Of the Writer, only
// Written may be used after it.
func (w *Writer) Payload() *PayloadWriter {
	_ = w.Close() // the error stays
	return &PayloadWriter{w}
}

// Write writes bytes as they are.
func (p *PayloadWriter) Write(b []byte) {
	for w := p.w; len(b) > 0 && w.err == nil; {
		w.begin(blockPayload)
		n := min(len(b), w.blockAt+blockHead+blockFull-len(w.buffer))
		w.buffer = append(w.buffer, b[:n]...)
		b = b[n:]
		if len(w.buffer)-w.blockAt == blockHead+blockFull {
			w.sign()
		}
	}
}

// Number writes a number.
func (p *PayloadWriter) Number(n uint64) {
	var b [binary.MaxVarintLen64]byte
	p.Write(b[:binary.PutUvarint(b[:], n)])
}

// Bytes writes a string.
func (p *PayloadWriter) Bytes(b []byte) {
	p.Number(uint64(len(b)))
	p.Write(b)
}

// Close writes what is left and the end of the payload. It does not close the underlying writer.
func (p *PayloadWriter) Close() error {
	if p.w.kind != 0 {
		p.w.sign()
	}
	p.w.begin(blockPayload) // one without bytes
	p.w.sign()
	return p.w.err
}

// PayloadReader reads the payload of a snapshot. The checksum of each block is compared before
// anything of it is returned. Its first error stays, and what is read after it is zero.
type PayloadReader struct {
	r   *Reader
	err error
}

// Payload returns what reads the payload, once Next has returned io.EOF.
func (r *Reader) Payload() *PayloadReader { return &PayloadReader{r: r} }

// Err returns the first error, an *api.CheckpointError.
func (p *PayloadReader) Err() error { return p.err }

// Fail notes that the payload is damaged here, unless there is an error already.
func (p *PayloadReader) Fail(format string, args ...any) {
	if p.err == nil {
		p.err = p.r.damaged(p.r.blockAt+int64(p.r.at), format, args...)
	}
}

// End reads the end of the payload, which has to come next.
func (p *PayloadReader) End() {
	if p.next(); p.err == nil && len(p.r.block) > 0 {
		p.Fail("bytes behind the last object")
	}
}

// next reads a block if nothing is left of the one before.
func (p *PayloadReader) next() {
	if r := p.r; p.err == nil && r.at == len(r.block) {
		r.sum, p.err = r.signed(blockPayload, r.sum)
	}
}

// rest returns what is left of a block, which is nothing after an error only.
func (p *PayloadReader) rest() []byte {
	if p.next(); p.err == nil && len(p.r.block) == 0 {
		p.Fail("the payload ends too early")
	}
	if p.err != nil {
		return nil
	}
	return p.r.block[p.r.at:]
}

// ReadByte returns a byte. It is an io.ByteReader, whose error is Err.
func (p *PayloadReader) ReadByte() (byte, error) {
	b := p.rest()
	if len(b) == 0 {
		return 0, p.err
	}
	p.r.at++
	return b[0], nil
}

// Byte returns a byte.
func (p *PayloadReader) Byte() byte {
	b, _ := p.ReadByte() // the error stays
	return b
}

// Number returns a number.
func (p *PayloadReader) Number() uint64 {
	n, size := binary.Uvarint(p.rest())
	if p.r.at += max(0, size); size > 0 {
		return n
	}
	n, err := binary.ReadUvarint(p) // it is in two blocks, or too long
	if err != nil {
		p.Fail("a number: %v", err)
		return 0
	}
	return n
}

// Below returns a number below limit.
func (p *PayloadReader) Below(limit int) int {
	n := p.Number()
	if n >= uint64(limit) && p.err == nil {
		p.Fail("number %d, it has to be below %d", n, limit)
	}
	if p.err != nil {
		return 0
	}
	return int(n)
}

// Each reads a number, and calls read so many times or until an error.
func (p *PayloadReader) Each(read func(k int)) {
	n := p.Number()
	for k := 0; uint64(k) < n && p.err == nil; k++ {
		read(k)
	}
}

// Fill reads len(b) bytes, zeros after an error.
func (p *PayloadReader) Fill(b []byte) {
	for len(b) > 0 {
		n := copy(b, p.rest())
		if n == 0 {
			clear(b)
			return
		}
		p.r.at += n
		b = b[n:]
	}
}

// Bytes returns a string, in memory of its own that has no room for more. Memory is taken for bytes
// that come, whatever the length says.
func (p *PayloadReader) Bytes() []byte {
	left := p.Number()
	b := make([]byte, 0, min(left, blockFull))
	for left > 0 && p.err == nil {
		piece := p.rest()
		piece = piece[:min(left, uint64(len(piece)))]
		b = append(b, piece...)
		p.r.at += len(piece)
		left -= uint64(len(piece))
	}
	if p.err != nil {
		return nil
	}
	if cap(b) > len(b) {
		b = append(make([]byte, 0, len(b)), b...)
	}
	return b
}
