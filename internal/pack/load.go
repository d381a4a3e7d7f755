package pack

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
)

// ErrSnapshot says that the bytes are no snapshot, or a damaged one.
var ErrSnapshot = errors.New("pack: damaged snapshot")

// Read returns the pack that a snapshot was written of, with the same Refs. It takes no more from r
// than that if r is an io.ByteReader. The error of r, or ErrSnapshot, is within Read's error.
func Read(r io.Reader) (*Pack, error) {
	in := &input{}
	if b, ok := r.(byteReader); ok {
		in.r = b
	} else {
		in.r = bufio.NewReaderSize(r, maxChunk)
	}
	p := New()
	p.read(in)
	sum := in.sum
	if stored := in.take(4); in.err == nil && binary.LittleEndian.Uint32(stored) != sum {
		in.fail("its checksum is another")
	}
	if in.err == nil {
		in.err = p.link()
	}
	if in.err != nil {
		return nil, in.err
	}
	return p, nil
}

type byteReader interface {
	io.Reader
	io.ByteReader
}

// read reads what WriteTo has written up to the checksum.
func (p *Pack) read(in *input) {
	if string(in.take(len(magic))) != magic {
		in.fail("it does not begin as one")
		return
	}
	if p.codes.tries = in.number(); p.codes.tries > maxCodes {
		in.fail("%d codes", p.codes.tries)
	}
	in.each(func(k int) {
		if table := in.text(); k > p.codes.tries || k > 0 && in.err == nil && !p.codes.add(table) {
			in.fail("code %d", k)
		}
	})
	p.roots.current, p.roots.samples = uint32(in.number()), in.number()
	in.each(func(k int) {
		data := in.text()
		p.roots.list = append(p.roots.list, root{})
		if len(data) == 0 || k == 0 {
			return
		}
		data = append(make([]byte, 0, len(data)+dictSpare), data...)
		dict := dictionary(data)
		if dict == nil {
			in.fail("root %d has %d bytes", k, len(data))
			return
		}
		p.roots.list[k] = root{data: data, dict: dict}
	})
	in.each(func(int) {
		b := base{}
		if state := in.number(); state != unusedBase {
			b = base{ref: unlinked, dropped: state == droppedBase, patience: rules.minPatience}
			if group := in.take(8); in.err == nil {
				b.group = binary.LittleEndian.Uint64(group)
			}
		}
		p.bases.list = append(p.bases.list, b)
	})
	in.each(func(int) {
		c := chunk{data: in.text()}
		in.each(func(int) {
			offset := in.number()
			if offset > math.MaxUint16 {
				in.fail("offset %d", offset)
			}
			c.dropped = append(c.dropped, uint16(offset))
		})
		p.chunks.list = append(p.chunks.list, c)
	})
}

// unlinked is the Ref of a base whose record was not found yet.
const unlinked = Ref(math.MaxUint64)

// link finds what refers to what, and counts it.
func (p *Pack) link() error {
	damaged := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrSnapshot, fmt.Sprintf(format, args...))
	}
	if p.roots.current != 0 && (int(p.roots.current) >= len(p.roots.list) || p.roots.list[p.roots.current].data == nil) {
		return damaged("root %d is used and is not there", p.roots.current)
	}
	if p.roots.current != 0 && p.roots.samples == 0 || p.roots.samples > maxRootSamples {
		return damaged("a root of %d samples", p.roots.samples)
	}
	for number := range p.chunks.list {
		c := &p.chunks.list[number]
		if len(c.data) == 0 {
			if number > 0 {
				p.chunks.unused = append(p.chunks.unused, uint32(number))
			}
			continue
		}
		if number == 0 {
			return damaged("chunk 0 has records")
		}
		if !c.countDead() {
			return damaged("chunk %d is no run of records, or what it has dropped is none", number)
		}
		p.chunks.used += len(c.data)
		p.chunks.dead += c.dead
		p.chunks.room += len(c.data)
		for at, h := range c.records {
			ref := Ref(number)<<16 | Ref(at)
			if at > math.MaxUint16 {
				return damaged("chunk %d is too long", number)
			}
			if err := p.linkRecord(ref, &h); err != nil {
				return damaged("record %x: %v", ref, err)
			}
		}
	}
	return p.linkBases(damaged)
}

func (p *Pack) linkRecord(ref Ref, h *header) error {
	if int(h.code) >= max(1, len(p.codes.list)) {
		return fmt.Errorf("no code %d", h.code)
	}
	switch h.form {
	case againstRoot:
		if int(h.root) >= len(p.roots.list) || p.roots.list[h.root].data == nil {
			return fmt.Errorf("no root %d", h.root)
		}
		p.roots.list[h.root].uses++
	case againstBase:
		if int(h.base) >= len(p.bases.list) || p.bases.list[h.base].ref == 0 || h.own != 0 {
			return fmt.Errorf("no base %d", h.base)
		}
		p.bases.list[h.base].uses++
	}
	if h.own == 0 {
		p.records++
		return nil
	}
	if int(h.own) >= len(p.bases.list) || p.bases.list[h.own].ref != unlinked {
		return fmt.Errorf("it is not base %d", h.own)
	}
	b := &p.bases.list[h.own]
	b.ref = ref
	p.bases.bytes += h.payload
	if !b.dropped {
		b.uses++
		p.records++
	}
	return nil
}

// linkBases completes the bases, once all records were seen.
func (p *Pack) linkBases(damaged func(string, ...any) error) error {
	p.bases.groups = map[uint64]uint32{}
	for id := range p.bases.list {
		switch b := &p.bases.list[id]; {
		case b.ref == unlinked || id == 0 && b.ref != 0:
			return damaged("base %d has no record", id)
		case b.ref == 0:
			if id > 0 {
				p.bases.unused = append(p.bases.unused, uint32(id))
			}
		default:
			if b.group != 0 {
				p.bases.groups[b.group] = uint32(id)
			}
			p.bases.latest = uint32(id)
		}
	}
	for id := range p.bases.list {
		if b := &p.bases.list[id]; b.ref != 0 && b.uses == 0 { // a Prepare had pinned it
			p.forgetBase(uint32(id))
		}
	}
	for number := range p.roots.list {
		if uint32(number) != p.roots.current {
			p.roots.drop(uint32(number))
		}
	}
	p.renewAids()
	p.reset()
	return nil
}

// countDead checks that the chunk is a run of records and counts the bytes of the dropped ones.
func (k *chunk) countDead() bool {
	dropped := slices.Clone(k.dropped)
	slices.Sort(dropped)
	for at := 0; at < len(k.data); {
		if !valid(k.data[at:]) {
			return false
		}
		h, _ := parse(k.data[at:])
		if len(dropped) > 0 && int(dropped[0]) == at {
			dropped = dropped[1:]
			k.dead += h.size()
		}
		at += h.size()
	}
	return len(dropped) == 0 && k.dead < len(k.data)
}

// input reads and sums. Its first error stays, and what is read after it is nothing.
type input struct {
	r   byteReader
	sum uint32
	err error
}

func (in *input) fail(format string, args ...any) {
	if in.err == nil {
		in.err = fmt.Errorf("%w: %s", ErrSnapshot, fmt.Sprintf(format, args...))
	}
}

// take reads n bytes. It allocates in proportion to what there is, whatever n is.
func (in *input) take(n int) []byte {
	const piece = maxChunk
	b := make([]byte, 0, min(n, piece))
	for len(b) < n && in.err == nil {
		at := len(b)
		b = slices.Grow(b, min(n-at, piece))[:min(n, at+piece)]
		if _, err := io.ReadFull(in.r, b[at:]); err != nil {
			in.ended(err)
		}
	}
	if in.err != nil {
		return nil
	}
	in.sum = crc32.Update(in.sum, castagnoli, b)
	if cap(b) > n {
		b = append(make([]byte, 0, n), b...)
	}
	return b
}

func (in *input) ended(err error) {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		in.fail("it ends too early")
	} else if in.err == nil {
		in.err = err
	}
}

func (in *input) text() []byte { return in.take(in.number()) }

// each reads a number and calls read so many times, until an error.
func (in *input) each(read func(k int)) {
	n := in.number()
	for k := 0; k < n && in.err == nil; k++ {
		read(k)
	}
}

func (in *input) number() int {
	var b [binary.MaxVarintLen64]byte
	for k := range b {
		if in.err != nil {
			return 0
		}
		c, err := in.r.ReadByte()
		if err != nil {
			in.ended(err)
			return 0
		}
		b[k] = c
		if c < 0x80 {
			in.sum = crc32.Update(in.sum, castagnoli, b[:k+1])
			if v, n := binary.Uvarint(b[:k+1]); n > 0 && v <= math.MaxInt32 {
				return int(v)
			}
			break
		}
	}
	in.fail("a number is too large")
	return 0
}
