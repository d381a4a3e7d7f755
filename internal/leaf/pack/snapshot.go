package pack

import (
	"encoding/binary"
	"iter"
	"slices"

	"github.com/rvinformer/informer/internal/leaf/checkpoint"
)

// Snapshot is the state of a pack at one moment. It shares the bytes of the records with the pack.
type Snapshot struct {
	chunks []chunk
	bases  []base
	roots  roots
	codes  codes
}

// Snapshot returns the present state. Like Record, it may be called beside Prepare and other
// readers.
func (p *Pack) Snapshot() *Snapshot {
	// Chunks, their lists of dropped records and codes are only appended to. Bases and roots change
	// in place.
	s := &Snapshot{
		chunks: slices.Clone(p.chunks.list), bases: slices.Clone(p.bases.list),
		roots: p.roots, codes: codes{list: slices.Clone(p.codes.list), tries: p.codes.tries},
	}
	s.roots.list = slices.Clone(p.roots.list)
	for id := range s.bases {
		if b := &s.bases[id]; p.bases.groups[b.group] != uint32(id) {
			b.group = 0 // a newer base has the group
		}
	}
	return s
}

// What a base of a snapshot is.
const (
	unusedBase = iota
	liveBase
	droppedBase // its bytes are needed by others
)

// Write writes the pack with all its records, for Read. It needs no lock. What is in the records
// is written as it is: s2, coded with Huffman tables as in zstd.
func (s *Snapshot) Write(out *checkpoint.PayloadWriter) {
	out.Number(uint64(s.codes.tries))
	out.Number(uint64(len(s.codes.list)))
	for _, c := range s.codes.list {
		out.Bytes(c.table)
	}
	out.Number(uint64(s.roots.current))
	out.Number(uint64(s.roots.samples))
	out.Number(uint64(len(s.roots.list)))
	for _, r := range s.roots.list {
		out.Bytes(r.data)
	}
	out.Number(uint64(len(s.bases)))
	for _, b := range s.bases {
		switch {
		case b.ref == 0:
			out.Number(unusedBase)
			continue
		case b.dropped:
			out.Number(droppedBase)
		default:
			out.Number(liveBase)
		}
		out.Write(binary.LittleEndian.AppendUint64(nil, b.group))
	}
	out.Number(uint64(len(s.chunks)))
	for _, c := range s.chunks {
		out.Bytes(c.data)
		out.Number(uint64(len(c.dropped)))
		for _, offset := range c.dropped {
			out.Number(uint64(offset))
		}
	}
}

// All returns the owners and Refs of all records, in no order. The pack must not change meanwhile.
func (p *Pack) All() iter.Seq2[uint32, Ref] {
	return func(yield func(uint32, Ref) bool) {
		for number := range p.chunks.list {
			for at, h := range p.chunks.list[number].records {
				if h.own != 0 && p.bases.list[h.own].dropped {
					continue
				}
				if !yield(h.owner, Ref(number)<<16|Ref(at)) {
					return
				}
			}
		}
	}
}
