package pack

import (
	"unsafe"

	"github.com/klauspost/compress/s2"
)

// root is the dictionary of the records that begin a group: a few objects of the kind, one behind
// the other, uncompressed.
type root struct {
	data []byte
	dict *s2.Dict // for decoding only: the tables of an encoder are large
	uses uint32
}

// roots are the roots of a pack. The newest is used, and older ones stay while records need them.
type roots struct {
	list    []root // by number; 0 is none
	current uint32
	samples int // of the current root
	changed bool
}

const (
	// rootSamples is how many times more objects the next root has, up to maxRootSamples.
	rootSamples    = 4
	maxRootSamples = 16
	// rootBases is how many times more bases than objects of the next root there have to be, and
	// rootShare how many times larger than that root the compressed bases have to be.
	rootBases = 4
	rootShare = 8
	minRoot   = minBase
	maxRoot   = s2.MaxDictSize
	dictSpare = 16 // s2 copies a dictionary that it cannot read beyond
)

// add makes data the current root. It takes data over.
func (r *roots) add(data []byte) {
	if len(r.list) == 0 {
		r.list = make([]root, 1, 4)
	}
	old := r.current
	for r.current = 1; int(r.current) < len(r.list) && r.list[r.current].data != nil; {
		r.current++
	}
	if int(r.current) == len(r.list) {
		r.list = append(r.list, root{})
	}
	r.list[r.current] = root{data: data, dict: dictionary(data)}
	r.changed = true
	r.drop(old)
}

func (r *roots) unuse(number uint32) {
	r.list[number].uses--
	if number != r.current {
		r.drop(number)
	}
}

// drop frees a root that nothing uses.
func (r *roots) drop(number uint32) {
	if number != 0 && r.list[number].uses == 0 {
		r.list[number] = root{}
		r.changed = true
	}
}

// dictionary returns a decoder's dictionary, which keeps data. The first copy of an object may
// begin at its first byte.
func dictionary(data []byte) *s2.Dict {
	if cap(data) < len(data)+dictSpare {
		data = append(make([]byte, 0, len(data)+dictSpare), data...)
	}
	return s2.MakeDict(data, nil)
}

func (r *roots) sizeBytes() int64 {
	n := cap(r.list) * int(unsafe.Sizeof(root{}))
	for k := range r.list {
		if r.list[k].data != nil {
			n += cap(r.list[k].data) + int(dictBytes)
		}
	}
	return int64(n)
}

const dictBytes = unsafe.Sizeof(s2.Dict{})

// renewRoot makes a root of more objects once there are so many bases that it pays.
func (p *Pack) renewRoot() {
	r, s := &p.roots, &p.bases
	next := min(max(1, r.samples*rootSamples), maxRootSamples)
	count := len(s.list) - 1 - len(s.unused)
	if next == r.samples || count < rootBases*next {
		return
	}
	if r.current != 0 && s.bytes < rootShare*len(r.list[r.current].data)/r.samples*next {
		return
	}
	var data []byte
	for k := range next {
		id := 1 + k*(len(s.list)-1)/next
		if s.list[id].ref == 0 {
			continue // its number is unused
		}
		if b, err := p.Record(s.list[id].ref).Append(nil); err == nil && len(data)+len(b) <= maxRoot {
			data = append(data, b...)
		}
	}
	r.samples = next
	if len(data) >= minRoot {
		r.add(append(make([]byte, 0, len(data)+dictSpare), data...))
		p.renewAids()
	}
}
