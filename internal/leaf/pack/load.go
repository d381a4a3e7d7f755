package pack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rvinformer/informer/internal/leaf/checkpoint"
)

// Read returns the pack that a snapshot was written of, with the same Refs, or the error of in.
func Read(in *checkpoint.PayloadReader) (*Pack, error) {
	p := New()
	p.read(in)
	if in.Err() == nil {
		if err := p.link(); err != nil {
			in.Fail("%v", err)
		}
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return p, nil
}

// read reads what Write has written.
func (p *Pack) read(in *checkpoint.PayloadReader) {
	p.codes.tries = in.Below(maxCodes + 1)
	in.Each(func(k int) {
		if table := in.Bytes(); k > p.codes.tries || k > 0 && in.Err() == nil && !p.codes.add(table) {
			in.Fail("code %d", k)
		}
	})
	p.roots.current, p.roots.samples = uint32(in.Below(math.MaxInt32)), in.Below(maxRootSamples+1)
	in.Each(func(k int) {
		data := in.Bytes()
		p.roots.list = append(p.roots.list, root{})
		if len(data) == 0 || k == 0 {
			return
		}
		data = append(make([]byte, 0, len(data)+dictSpare), data...)
		dict := dictionary(data)
		if dict == nil {
			in.Fail("root %d has %d bytes", k, len(data))
			return
		}
		p.roots.list[k] = root{data: data, dict: dict}
	})
	in.Each(func(int) {
		b := base{}
		if state := in.Number(); state != unusedBase {
			var group [8]byte
			in.Fill(group[:])
			b = base{ref: unlinked, dropped: state == droppedBase, patience: rules.minPatience, group: binary.LittleEndian.Uint64(group[:])}
		}
		p.bases.list = append(p.bases.list, b)
	})
	in.Each(func(int) {
		c := chunk{data: in.Bytes()}
		in.Each(func(int) { c.dropped = append(c.dropped, uint16(in.Below(math.MaxUint16+1))) })
		p.chunks.list = append(p.chunks.list, c)
	})
}

// unlinked is the Ref of a base whose record was not found yet.
const unlinked = Ref(math.MaxUint64)

// link finds what refers to what, and counts it.
func (p *Pack) link() error {
	if p.roots.current != 0 && (int(p.roots.current) >= len(p.roots.list) || p.roots.list[p.roots.current].data == nil) {
		return fmt.Errorf("root %d is used and is not there", p.roots.current)
	}
	if p.roots.current != 0 && p.roots.samples == 0 {
		return fmt.Errorf("a root of %d samples", p.roots.samples)
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
			return errors.New("chunk 0 has records")
		}
		if !c.countDead() {
			return fmt.Errorf("chunk %d is no run of records, or what it has dropped is none", number)
		}
		p.chunks.used += len(c.data)
		p.chunks.dead += c.dead
		p.chunks.room += len(c.data)
		for at, h := range c.records {
			ref := Ref(number)<<16 | Ref(at)
			if at > math.MaxUint16 {
				return fmt.Errorf("chunk %d is too long", number)
			}
			if err := p.linkRecord(ref, &h); err != nil {
				return fmt.Errorf("record %x: %w", ref, err)
			}
		}
	}
	return p.linkBases()
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
func (p *Pack) linkBases() error {
	p.bases.groups = map[uint64]uint32{}
	for id := range p.bases.list {
		switch b := &p.bases.list[id]; {
		case b.ref == unlinked || id == 0 && b.ref != 0:
			return fmt.Errorf("base %d has no record", id)
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
