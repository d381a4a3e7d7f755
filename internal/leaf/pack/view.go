package pack

import (
	"slices"
	"unsafe"

	"github.com/klauspost/compress/huff0"
	"github.com/klauspost/compress/s2"
)

// View is the state of a pack at one moment. It makes records without a lock, at any time.
type View struct {
	chunks []chunk
	bases  []base
	aids   *aids
}

// View returns the present state. It copies a few dozen bytes for each chunk and each base, and
// nothing for a record.
func (p *Pack) View() View {
	return View{slices.Clone(p.chunks.list), slices.Clone(p.bases.list), p.aids}
}

// Record returns a record that the pack had when the view was made.
func (v View) Record(ref Ref) Record {
	r := Record{own: v.bytes(ref), aids: v.aids}
	if h, _ := parse(r.own); h.form == againstBase {
		r.base = v.bytes(v.bases[h.base].ref)
	}
	return r
}

func (v View) bytes(ref Ref) []byte { return v.chunks[ref>>16].data[ref&0xffff:] }

// aids are what records are decoded with, besides their bytes. They never change; others take their
// place.
type aids struct {
	decoders []*huff0.Decoder // by the number of the code
	roots    []*s2.Dict
}

// renewAids makes other aids if these lack something, or keep what is not needed any more.
func (p *Pack) renewAids() {
	if p.aids != nil && !p.roots.changed && len(p.codes.list) == len(p.aids.decoders) {
		return
	}
	a := &aids{}
	for _, c := range p.codes.list {
		a.decoders = append(a.decoders, c.decoder)
	}
	for _, r := range p.roots.list {
		a.roots = append(a.roots, r.dict)
	}
	p.aids, p.roots.changed = a, false
}

func (a *aids) sizeBytes() int64 {
	if a == nil {
		return 0
	}
	return int64(unsafe.Sizeof(*a)) + int64(8*cap(a.decoders)+8*cap(a.roots))
}
