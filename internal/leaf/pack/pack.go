package pack

import (
	"unsafe"
	"weak"
)

// Ref names a record. The zero Ref names none. It is valid until the record is dropped or Tidy
// reports another Ref for it.
type Ref uint64

// Pack keeps the encoded objects of one kind. A writer calls Prepare, Add, Drop and Tidy, one at a
// time. Readers may call the other methods while no Add, Drop or Tidy is under way, and use
// records, views and snapshots at any time.
type Pack struct {
	chunks chunks
	bases  bases
	roots  roots
	codes  codes

	aids    *aids // for records that are made now
	records int

	// prepared is whether the last Prepare has not been added yet. Pinned is the base that it
	// needs, which is kept even if nothing uses it any more; it is an orphan then.
	prepared       bool
	pinned, orphan uint32
	typical        float64 // part of its length that an object has against a good base
	hits           int     // objects that had a base
	misses         int     // objects in a row that were like nothing recent
	writer         weak.Pointer[writer]
}

// New returns an empty pack.
func New() *Pack { return &Pack{typical: rules.typical} }

// Add stores an object that Prepare has compressed. Head is kept uncompressed. Owner is a number of
// the caller's, which Tidy reports when it moves the record. Head and d are copied.
func (p *Pack) Add(head []byte, owner uint32, d Prepared) Ref {
	h := header{form: d.form, code: d.code, owner: owner, head: len(head), payload: len(d.payload), root: d.root, base: d.base}
	if d.becomesBase {
		h.own = p.bases.create(d.group, max(rules.minPatience, d.patience))
	}
	ref := p.chunks.append(&h, head, d.payload)
	switch d.form {
	case againstRoot:
		p.roots.list[d.root].uses++
	case againstBase:
		p.bases.list[d.base].use(d.poor)
	}
	if h.own != 0 {
		b := &p.bases.list[h.own]
		b.ref, b.uses = ref, 1
		p.bases.bytes += len(d.payload)
	}
	p.records++
	if d.form != raw {
		p.codes.learn(d.plain)
	}
	p.prepared, p.pinned = false, 0
	p.dropOrphan()
	p.renewAids()
	p.renewRoot()
	return ref
}

// Drop forgets the record. Views of it stay valid.
func (p *Pack) Drop(ref Ref) {
	p.dropOrphan()
	h := p.chunks.header(ref)
	p.records--
	if h.own != 0 {
		p.bases.list[h.own].dropped = true
		p.unuse(h.own)
	} else {
		p.forget(ref, &h)
	}
	p.renewAids()
	p.reset()
}

// unuse takes one use from a base, and forgets the base with the last.
func (p *Pack) unuse(id uint32) {
	b := &p.bases.list[id]
	b.uses--
	switch {
	case b.uses > 0:
	case id == p.pinned:
		p.orphan = id
	default:
		p.forgetBase(id)
	}
}

func (p *Pack) forgetBase(id uint32) {
	ref := p.bases.list[id].ref
	h := p.chunks.header(ref)
	p.bases.bytes -= h.payload
	p.bases.free(id)
	if w := p.writer.Value(); w != nil {
		w.forget(id)
	}
	p.forget(ref, &h)
}

// forget gives up the bytes of a record that neither the caller nor another record needs.
func (p *Pack) forget(ref Ref, h *header) {
	p.chunks.drop(ref, h.size())
	switch h.form {
	case againstRoot:
		p.roots.unuse(h.root)
	case againstBase:
		p.unuse(h.base)
	}
}

// dropOrphan forgets a base that was only kept for the object that Prepare had compressed against
// it, once that object came to nothing.
func (p *Pack) dropOrphan() {
	id := p.orphan
	if id == 0 || id == p.pinned {
		return
	}
	p.orphan = 0
	if p.bases.list[id].uses == 0 {
		p.forgetBase(id)
	}
}

// reset frees everything when no record is left.
func (p *Pack) reset() {
	if p.records == 0 && !p.prepared {
		*p = Pack{typical: p.typical}
	}
}

// Head returns the bytes that were stored uncompressed with a record. They must not be changed.
func (p *Pack) Head(ref Ref) []byte { return Record{own: p.chunks.bytes(ref)}.Head() }

// Record returns a view of a record.
func (p *Pack) Record(ref Ref) Record { return View{p.chunks.list, p.bases.list, p.aids}.Record(ref) }

// Tidy moves the records of one chunk with many dropped records, if there is one, and reports each
// record's owner and new Ref. It reports whether more is to be done. The work of one call is
// bounded by the size of a chunk, 64 KB.
func (p *Pack) Tidy(moved func(owner uint32, to Ref)) (more bool) {
	p.dropOrphan()
	p.renewAids()
	p.reset()
	victim := p.chunks.sparsest()
	if victim == 0 {
		return false
	}
	p.chunks.evacuate(victim, func(b []byte, h *header) {
		to := p.chunks.appendRecord(b)
		if h.own != 0 {
			p.bases.list[h.own].ref = to
			if p.bases.list[h.own].dropped {
				return
			}
		}
		moved(h.owner, to)
	})
	return p.chunks.wasteful()
}

// Reown gives a record another owner, and returns its new Ref. Views of it stay valid.
func (p *Pack) Reown(ref Ref, owner uint32) (to Ref) {
	h, b := p.chunks.header(ref), p.chunks.bytes(ref)
	size, head, payload := h.size(), b[h.prefix:][:h.head], h.payloadOf(b)
	h.owner = owner
	to = p.chunks.append(&h, head, payload)
	p.chunks.drop(ref, size)
	if h.own != 0 {
		p.bases.list[h.own].ref = to
	}
	return to
}

// SizeBytes returns the bytes that the pack holds, with its bases, tables and unused room.
func (p *Pack) SizeBytes() int64 {
	return int64(unsafe.Sizeof(*p)) + p.chunks.sizeBytes() + p.bases.sizeBytes() + p.roots.sizeBytes() + p.codes.sizeBytes() + p.aids.sizeBytes()
}
