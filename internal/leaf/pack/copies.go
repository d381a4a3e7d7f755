package pack

import (
	"bytes"
	"hash/maphash"
	"maps"
	"unsafe"
	"weak"
)

// Copies makes copies of records that are kept for long. A view keeps a whole chunk in memory, and
// a copy its own bytes. Copies of siblings share the bytes of their base. The zero value is ready;
// it is not safe for concurrent use.
type Copies struct {
	seed maphash.Seed
	// bases are by the hash of their bytes. They stay in memory for as long as a copy needs them.
	bases map[uint64]copiedBase
	// most is how many bases there may be before those are forgotten that are not in memory any
	// more.
	most int
}

type copiedBase struct {
	first  weak.Pointer[byte]
	length int
}

// fewBases is the least number of bases after which some are forgotten.
const fewBases = 64

// Copy returns a copy of r, and how many bytes that took.
func (c *Copies) Copy(r Record) (copied Record, size int) {
	copied = r
	if len(r.own) > 0 {
		copied.own = bytes.Clone(whole(r.own))
		size = cap(copied.own)
	}
	if len(r.base) > 0 {
		var more int
		copied.base, more = c.base(whole(r.base))
		size += more
	}
	return copied, size
}

// whole returns a record without what follows it.
func whole(record []byte) []byte {
	h, _ := parse(record)
	return record[:h.size()]
}

// base returns a copy of a base, which it may have made before, and how many bytes that took.
func (c *Copies) base(b []byte) (copied []byte, size int) {
	if c.bases == nil {
		c.seed, c.bases, c.most = maphash.MakeSeed(), map[uint64]copiedBase{}, fewBases
	}
	hash := maphash.Bytes(c.seed, b)
	known := c.bases[hash]
	if first := known.first.Value(); first != nil {
		if copied = unsafe.Slice(first, known.length); bytes.Equal(copied, b) {
			return copied, 0
		}
	}
	copied = bytes.Clone(b)
	c.forget()
	c.bases[hash] = copiedBase{weak.Make(unsafe.SliceData(copied)), len(copied)}
	return copied, cap(copied)
}

// forget forgets bases that are not in memory any more, each time that there are twice as many as
// were left.
func (c *Copies) forget() {
	if len(c.bases) < c.most {
		return
	}
	maps.DeleteFunc(c.bases, func(_ uint64, b copiedBase) bool { return b.first.Value() == nil })
	if len(c.bases) == 0 {
		c.bases = map[uint64]copiedBase{} // a map never shrinks
	}
	c.most = max(fewBases, 2*len(c.bases))
}
