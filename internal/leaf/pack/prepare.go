package pack

import (
	"weak"

	"github.com/klauspost/compress/huff0"
	"github.com/klauspost/compress/s2"
)

// Prepared is a compressed object for Add. It is valid until the next Prepare.
type Prepared struct {
	payload     []byte
	plain       []byte // the payload before it was coded
	length      int    // of the object
	group       uint64
	base, root  uint32
	form        form
	code        uint8
	becomesBase bool
	patience    uint8 // of the base that it becomes
	poor        bool  // it is not alike to its base
}

const (
	// minBase and maxBase bound the length of a base. maxBase is also the largest object that is
	// compressed against another: s2 finds copies of a dictionary in the first 64 KB only.
	minBase = 64
	maxBase = 64 << 10
	// maxRatio is how many times shorter than an object its payload may be, beyond maxBase. What a
	// damaged payload claims to be is bounded by it.
	maxRatio = 256
	// encoders is how many bases an object without a hint is compared with.
	encoders = 4
)

// standard is how short an object has to be against a base, so that it has that base.
type standard struct {
	// typical is how many times as long as is typical it may be: it is alike then, and nothing else
	// is tried. Otherwise it is compressed against the root too.
	typical float64
	// own is the part of its length as a base of its own that it has to be below.
	own float64
}

// rules are what choose goes by. They are constants that were measured.
var rules = struct {
	// group is for a base that there is reason to try, other for any other one, and first for any
	// other one while there is no root.
	group, other, first standard
	// A group has a new base after patience poor objects in a row: those that are not alike. The
	// next base of the group has twice the patience of minPatience, up to maxPatience, until objects
	// are alike.
	minPatience, maxPatience uint8
	// After misses objects in a row that were like nothing recent, only one in misses is compared
	// with what is recent.
	misses int
	// typical is taken as typical before anything is known: after hits objects.
	typical float64
	hits    int
}{
	group:       standard{typical: 1.5, own: 0.75},
	other:       standard{typical: 1.2, own: 0.6},
	first:       standard{typical: 1.2, own: 0.35},
	minPatience: 4,
	maxPatience: 128,
	misses:      8,
	typical:     0.2,
	hits:        32,
}

// Prepare compresses data. Objects with the same hint like, such as those of one owner, are alike;
// without a hint, the most recent objects are tried. Old is the record that this one is going to
// replace, or zero.
//
// Prepare does not change what readers use.
func (p *Pack) Prepare(like string, old Ref, data []byte) Prepared {
	w := p.writer.Value()
	if w == nil {
		w = &writer{}
		p.writer = weak.Make(w)
	}
	d := p.choose(w, like, old, data)
	p.prepared, p.pinned = true, d.base
	d.plain, d.length = d.payload, len(data)
	if number := p.codes.newest(); number != 0 && minCoded <= len(d.payload) && len(d.payload) <= maxCoded {
		if coded := w.code(&p.codes, number, d.payload); coded != nil {
			d.payload, d.code = coded, number
		}
	}
	return d
}

// choose compresses data against the best base at hand. The candidates are the base to try first,
// then bases that were used recently, and last a base of its own. One that is good enough ends the
// choice, because each costs a compression.
func (p *Pack) choose(w *writer, like string, old Ref, data []byte) (d Prepared) {
	if len(data) < minBase || len(data) > maxBase {
		return w.alone(data)
	}
	group := groupOf(like)
	base, trusted := p.base(like, group, old)
	if base != 0 && (trusted || p.misses < rules.misses || p.misses%rules.misses == 0) {
		if d = w.against(p, base, data); p.alike(&d, trusted) {
			return p.hit(d)
		}
	}
	own := w.againstRoot(p, data)
	own.becomesBase, own.group, own.length = true, group, len(data)
	if d.base == 0 {
		p.misses++
		return own
	}
	d.poor = true
	fair := fairness(trusted, own.form)
	switch b := &p.bases.list[base]; {
	case trusted && b.group == group && b.poor >= b.patience: // the group has become another
		own.patience = 2 * min(b.patience, rules.maxPatience/2)
		return own
	case d.shorter(fair, &own): // it differs more than its siblings do, and a base of its own would not help them
		return p.hit(d)
	case !trusted && like == "":
		if d = w.againstRecent(p, base, data); d.shorter(fair, &own) {
			return p.hit(d)
		}
	}
	p.misses++
	return own
}

// fairness is the part of its length as a base of its own that an object has to be below.
func fairness(trusted bool, own form) float64 {
	switch {
	case trusted:
		return rules.group.own
	case own == alone:
		return rules.first.own
	default:
		return rules.other.own
	}
}

// maxLength returns how long an object with a payload of n bytes may be.
func maxLength(n int) int { return max(maxBase, maxRatio*n) }

// groupOf returns the number of a group, the same in each process: FNV-1a.
func groupOf(like string) uint64 {
	n := uint64(14695981039346656037)
	for k := range len(like) {
		n = (n ^ uint64(like[k])) * 1099511628211
	}
	return n
}

// alike reports whether an object is about as short against its base as objects are that have a
// good one.
func (p *Pack) alike(d *Prepared, trusted bool) bool {
	times := rules.group.typical
	if !trusted {
		if p.hits < rules.hits {
			return false
		}
		times = rules.other.typical
	}
	return d.base != 0 && float64(len(d.payload)) <= times*p.typical*float64(d.length)
}

// shorter reports whether d is shorter than this part of the same object as a new base.
func (d *Prepared) shorter(part float64, first *Prepared) bool {
	return d.base != 0 && float64(len(d.payload)) < part*float64(len(first.payload))
}

// hit counts an object that has a base. What is typical follows the good ones.
func (p *Pack) hit(d Prepared) Prepared {
	p.misses = 0
	p.hits++
	weight := 1.0 / 64
	if d.poor {
		weight /= 8
	}
	p.typical += weight * (float64(len(d.payload))/float64(d.length) - p.typical)
	return d
}

// base returns the base to try first, or 0, and whether there is reason to think that it is a good
// one: it is that of the group, or of the record that is replaced. Else it is the newest.
func (p *Pack) base(like string, group uint64, old Ref) (id uint32, trusted bool) {
	if like != "" {
		id = p.bases.groups[group]
	}
	if old != 0 {
		h := p.chunks.header(old)
		if id == 0 {
			id = max(h.base, h.own)
		}
		if id != 0 && id == h.own && p.bases.list[id].uses == 1 {
			return 0, false // the base would be kept for this object only
		}
	}
	if id != 0 {
		return id, true
	}
	if id = p.bases.groups[group]; id == 0 {
		id = p.bases.latest
	}
	return id, false
}

// writer is what Prepare needs and Add does not: it is found again if the garbage collector has not
// run since, so that a pack that is not written to has none.
type writer struct {
	// base, other and root are room for what is compressed.
	base, other, root []byte
	coded             *huff0.Scratch
	number            uint8 // of the code that coded has
	encoders          [encoders]encoder
	rootData          *byte // rootDict is the dictionary of this
	rootDict          *s2.Dict
	next              int
}

// encoder is a base with the tables to encode against it, 32 KB.
type encoder struct {
	base uint32
	dict *s2.Dict
}

func room(buffer *[]byte, n int) []byte {
	if need := s2.MaxEncodedLen(n); cap(*buffer) < need {
		*buffer = make([]byte, need)
	}
	return (*buffer)[:0]
}

func (w *writer) alone(data []byte) Prepared {
	if len(data) >= minBase {
		if b := s2.EncodeBetter(room(&w.root, len(data))[:cap(w.root)], data); len(b) < len(data) && len(data) <= maxLength(len(b)) {
			return Prepared{form: alone, payload: b}
		}
	}
	return Prepared{form: raw, payload: data}
}

func (w *writer) againstRoot(p *Pack, data []byte) Prepared {
	number := p.roots.current
	if number == 0 {
		return w.alone(data)
	}
	if data := p.roots.list[number].data; w.rootData != &data[0] {
		w.rootData, w.rootDict = &data[0], dictionary(data)
	}
	if b := w.rootDict.Encode(room(&w.root, len(data)), data); len(b) < len(data) {
		return Prepared{form: againstRoot, root: number, payload: b}
	}
	return Prepared{form: raw, payload: data}
}

func (w *writer) against(p *Pack, id uint32, data []byte) Prepared {
	dict := w.dictionary(p, id)
	if dict == nil {
		return Prepared{}
	}
	return Prepared{form: againstBase, base: id, length: len(data), payload: dict.Encode(room(&w.base, len(data)), data)}
}

// againstRecent compresses data against the bases that were used most recently, except the one that
// was tried, and returns the shortest.
func (w *writer) againstRecent(p *Pack, tried uint32, data []byte) (shortest Prepared) {
	for k := range w.encoders {
		if id := w.encoders[k].base; id != 0 && id != tried {
			if d := w.against(p, id, data); shortest.payload == nil || len(d.payload) < len(shortest.payload) {
				shortest = d
				w.base, w.other = w.other, w.base
			}
		}
	}
	return shortest
}

// dictionary returns the base with its tables.
func (w *writer) dictionary(p *Pack, id uint32) *s2.Dict {
	for k := range w.encoders {
		if w.encoders[k].base == id {
			return w.encoders[k].dict
		}
	}
	data, err := p.Record(p.bases.list[id].ref).Append(nil)
	if err != nil {
		return nil
	}
	e := &w.encoders[w.next%encoders]
	w.next++
	*e = encoder{base: id, dict: dictionary(data)}
	return e.dict
}

// forget drops the encoder of a base whose number is going to be another's.
func (w *writer) forget(id uint32) {
	for k := range w.encoders {
		if w.encoders[k].base == id {
			w.encoders[k] = encoder{}
		}
	}
}

// code shortens a payload, or returns nil.
func (w *writer) code(c *codes, number uint8, payload []byte) []byte {
	if w.number != number {
		w.coded, w.number = c.encoder(number), number
	}
	b, _, err := huff0.Compress1X(payload, w.coded)
	if err != nil {
		return nil
	}
	return b
}
