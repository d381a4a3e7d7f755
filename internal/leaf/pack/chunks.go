package pack

import (
	"slices"
	"unsafe"
)

const (
	maxChunk = 64 << 10
	minChunk = 1 << 10
	// maxWaste is the part of all bytes, one in so many, that dropped records may take before
	// chunks are evacuated. If objects are replaced at random, about seven bytes are copied for
	// each one that is replaced.
	maxWaste = 16
)

// chunk is appended to and otherwise immutable, so a view of a record needs no lock. Once evacuated
// it is left to the garbage collector, which frees it when no view is left.
type chunk struct {
	data []byte
	// dropped has the offsets of the dropped records, and dead their bytes.
	dropped []uint16
	dead    int
}

// chunks are the records' bytes. A Ref is the number of a chunk and an offset of 16 bits.
type chunks struct {
	list    []chunk // by number; 0 is none
	unused  []uint32
	current uint32 // what is appended to; 0: none
	used    int    // bytes of all records, dropped or not
	dead    int    // bytes of dropped records
	room    int    // bytes of all chunks
}

func (c *chunks) bytes(ref Ref) []byte { return c.list[ref>>16].data[ref&0xffff:] }

func (c *chunks) header(ref Ref) header {
	h, _ := parse(c.bytes(ref))
	return h
}

// append writes a record.
func (c *chunks) append(h *header, head, payload []byte) Ref {
	var b [maxHeader]byte
	prefix := h.append(b[:0])
	ref, k := c.reserve(len(prefix) + len(head) + len(payload))
	k.data = append(append(append(k.data, prefix...), head...), payload...)
	return ref
}

// appendRecord writes a copy of a whole record.
func (c *chunks) appendRecord(b []byte) Ref {
	ref, k := c.reserve(len(b))
	k.data = append(k.data, b...)
	return ref
}

// reserve returns a chunk with room for n bytes, and the Ref of the record that begins there.
func (c *chunks) reserve(n int) (Ref, *chunk) {
	if c.current == 0 || cap(c.list[c.current].data)-len(c.list[c.current].data) < n || len(c.list[c.current].data) > 0xffff {
		number := c.create(n)
		if n <= maxChunk/4 {
			c.current = number
		} else { // a large record has a chunk of its own, and the current chunk keeps its room
			c.used += n
			return Ref(number) << 16, &c.list[number]
		}
	}
	k := &c.list[c.current]
	c.used += n
	return Ref(c.current)<<16 | Ref(len(k.data)), k
}

// create makes a chunk for a record of n bytes: an exact one for a large record, else one in
// proportion to what there is.
func (c *chunks) create(n int) (number uint32) {
	size := n
	if n <= maxChunk/4 {
		for size = minChunk; size < maxChunk && (size < c.used/8 || size < 2*n); {
			size *= 2
		}
	}
	if last := len(c.unused) - 1; last >= 0 {
		number, c.unused = c.unused[last], c.unused[:last]
	} else {
		if len(c.list) == 0 {
			c.list = make([]chunk, 1, 4)
		}
		number = uint32(len(c.list))
		c.list = append(c.list, chunk{})
	}
	c.list[number] = chunk{data: make([]byte, 0, size)}
	c.room += size
	return number
}

// drop counts a record of n bytes as dead, and frees a chunk that has no other.
func (c *chunks) drop(ref Ref, n int) {
	number := uint32(ref >> 16)
	k := &c.list[number]
	k.dead += n
	c.dead += n
	if k.dead == len(k.data) {
		c.free(number)
		return
	}
	k.dropped = append(k.dropped, uint16(ref))
}

func (c *chunks) free(number uint32) {
	k := &c.list[number]
	c.used -= len(k.data)
	c.dead -= k.dead
	c.room -= cap(k.data)
	*k = chunk{}
	c.unused = append(c.unused, number)
	if c.current == number {
		c.current = 0
	}
}

// wasteful reports whether dropped records take more than their share.
func (c *chunks) wasteful() bool { return c.dead > c.used/maxWaste }

// sparsest returns the chunk that an evacuation shrinks most, or 0 if there is no need of one.
func (c *chunks) sparsest() (number uint32) {
	if !c.wasteful() {
		return 0
	}
	most := 0.0
	for k := range c.list {
		if of := &c.list[k]; of.dead > 0 {
			if part := float64(of.dead) / float64(len(of.data)); part > most {
				number, most = uint32(k), part
			}
		}
	}
	return number
}

// records calls yield for each record that is not dropped, with its offset.
func (k *chunk) records(yield func(at int, h header) bool) {
	dropped := slices.Clone(k.dropped) // a snapshot may have the list
	slices.Sort(dropped)
	for at := 0; at < len(k.data); {
		h, _ := parse(k.data[at:])
		if len(dropped) > 0 && int(dropped[0]) == at {
			dropped = dropped[1:]
		} else if !yield(at, h) {
			return
		}
		at += h.size()
	}
}

// evacuate calls move for each record of the chunk that is not dropped, and frees the chunk.
func (c *chunks) evacuate(number uint32, move func(b []byte, h *header)) {
	if c.current == number {
		c.current = 0
	}
	k := c.list[number]
	for at, h := range k.records {
		move(k.data[at:at+h.size()], &h)
	}
	c.free(number)
}

func (c *chunks) sizeBytes() int64 {
	n := c.room + cap(c.list)*int(unsafe.Sizeof(chunk{})) + 4*cap(c.unused)
	for k := range c.list {
		n += 2 * cap(c.list[k].dropped)
	}
	return int64(n)
}
