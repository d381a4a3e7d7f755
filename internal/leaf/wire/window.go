package wire

import (
	"fmt"
	"io"
	"sync"

	"github.com/rvinformer/informer/api"
)

const (
	headBytes = 256
	// A buffer that grew beyond the usual size is given back after so many items that did not need
	// it.
	calmItems = 64
	// A buffer that a busy body made grow is given back after so many reads that did not need it.
	slackReads = 8
	// As bufio: a reader that returns nothing so many times in a row is broken.
	emptyReads = 100
	// Larger than any object of a cluster is by default. A buffer that has to be larger still gets
	// its largest size at once: what needs that is mostly too large for any, and on the way there
	// each size would be left to the garbage collector.
	doublingBytes = 4 << 20
)

// window is the part of the body that is held in memory. It slides: fill drops what is behind and
// reads what follows.
//
//	body:  ····|base ······ keep ······ pos ······ end|·····
//	buf:       |0                                      |    ...len(buf)
//
// Invariant: keep == -1 or 0 <= keep <= pos; pos <= end <= len(buf). buf[i] is the body's byte
// base+i. fill moves all of them together, so indexes do not survive it; offsets relative to keep
// do.
type window struct {
	src  io.Reader
	buf  []byte
	pos  int   // next byte to look at
	end  int   // end of the bytes that were read
	keep int   // first byte that fill must not drop, besides pos; -1: none
	base int64 // offset of buf[0] in the body

	stop error  // no bytes follow: io.EOF, the reader's error, or a limit
	head []byte // first bytes of the body, for errors; nil where no error quotes them any more

	floor int // len(buf) at rest
	most  int // len(buf) that holds the largest item, and room to read more
	// Of the last read, how much of the room it filled; and the size of the last unit that was
	// lent. A busy body is read in large pieces, and one that has gone quiet waits with a small
	// buffer.
	room, read int
	lent       int

	// The bytes lent to the caller, for poisoning. No fill happens between lending and releasing.
	lentFrom, lentTo int
	poison           bool

	watch bool // the body is a watch, for errors
	// resting tells that little is expected. The next fill of an empty buf gives it back at once.
	resting bool
	slack   uint8  // reads in a row that found buf empty and hardly filled it
	calm    uint32 // items since buf was last needed beyond the usual size
	// spare is buf if that is borrowed, else nil.
	spare *spare
}

// spareBytes is the size of a spare: that of the largest frame in which servers send by HTTP/2.
const spareBytes = 16 << 10

// spare is a buffer that a watch borrows while it reads more than its own small one holds. It is
// given back once all was read, so that very many watches that each bring one event need few of
// them.
type spare struct {
	bytes [spareBytes]byte
	// own is the buffer of the borrower, with nothing in it.
	own []byte
}

var spares = sync.Pool{New: func() any { return new(spare) }}

func (w *window) reset(src io.Reader, o Options) {
	size := o.BufferBytes
	most := max(o.MaxItemBytes, size) + defaultBufferBytes
	w.giveBack()
	*w = window{src: src, buf: w.buf, keep: -1, lent: w.lent, head: w.head[:0], floor: size, most: most, calm: w.calm, poison: w.poison || poisonLent, watch: w.watch}
	if len(w.buf) == 0 {
		w.buf = make([]byte, size)
	}
}

// at is the body's offset of pos.
func (w *window) at() int64 { return w.base + int64(w.pos) }

// fill reads at least one more byte behind end, or returns false with stop set.
func (w *window) fill() bool {
	if w.stop != nil {
		return false
	}
	w.fit()
	w.makeRoom()
	w.room = len(w.buf) - w.end
	for range emptyReads {
		n, err := w.src.Read(w.buf[w.end:])
		if n < 0 || n > len(w.buf)-w.end {
			w.stop = io.ErrNoProgress // as bufio's errNegativeRead, without the panic
			return false
		}
		if w.took(n, err) {
			return n > 0
		}
	}
	w.stop = io.ErrNoProgress
	return false
}

// took notes what a read returned, and reports whether that was anything. It is not to be on the
// stack of fill, which waits.
//
//go:noinline
func (w *window) took(n int, err error) bool {
	if have := int64(len(w.head)); have < headBytes && have == w.base+int64(w.end) {
		w.head = append(w.head, w.buf[w.end:w.end+min(n, headBytes-len(w.head))]...)
	}
	w.end += n
	w.read = n
	w.stop = err
	return n > 0 || err != nil
}

// begun lets the head go, since the body has turned out to be what it should.
func (w *window) begun() { w.head = nil }

// rest notes that little is expected after what was lent: the initial events of a watch are over,
// or it sent a bookmark, which servers send when nothing else is to be said.
func (w *window) rest() { w.resting = true }

// fit doubles a buffer that the last read has filled, up to the usual size, and gives back most of
// one that is empty and was hardly used, or rests. A small buffer of a watch is replaced by a
// spare, until there is nothing more to read.
func (w *window) fit() {
	rest := max(w.floor, min(2*w.lent, defaultBufferBytes))
	rests := w.resting && w.pos == w.end && w.keep < 0
	w.resting = false
	filled := w.room > 0 && w.read == w.room
	switch {
	case w.spare != nil && !filled && w.pos == w.end && w.keep < 0:
		w.base += int64(w.pos)
		w.pos, w.end = 0, 0
		w.giveBack()
	case w.watch && filled && len(w.buf) < spareBytes:
		w.borrow()
	case rests && rest <= len(w.buf)/2:
		w.slide(make([]byte, rest), w.pos)
	case filled && len(w.buf) < defaultBufferBytes:
		w.slide(make([]byte, 2*len(w.buf)), w.from())
	case w.pos == w.end && w.keep < 0 && w.read < len(w.buf)/4 && rest <= len(w.buf)/2:
		// By halves, so that it settles at what the body needs; but at once after a giant.
		w.slack++
		if giant := len(w.buf) > max(w.floor, defaultBufferBytes); giant {
			w.slide(make([]byte, rest), w.pos)
		} else if w.slack < slackReads {
			return
		} else {
			w.slide(make([]byte, max(rest, len(w.buf)/2)), w.pos)
		}
	}
	w.slack = 0
}

// from is the first byte that must stay.
func (w *window) from() int {
	if w.keep >= 0 {
		return w.keep
	}
	return w.pos
}

// borrow puts a spare in the place of buf.
func (w *window) borrow() {
	lent, own := spares.Get().(*spare), w.buf
	w.slide(lent.bytes[:], w.from())
	lent.own, w.spare = own, lent
}

// giveBack puts the window's own buffer in the place of a spare that is not needed any more.
func (w *window) giveBack() {
	if lent := w.spare; lent != nil {
		w.buf, w.spare = lent.own, nil
		lent.own = nil
		spares.Put(lent)
	}
}

// makeRoom slides, and grows only if what must be held fills more than half of buf: so every byte
// is moved about once. A buf that begins with what must be held has nothing to gain from a slide.
func (w *window) makeRoom() {
	from := w.from()
	if from > 0 && (from == w.end || len(w.buf)-w.end < len(w.buf)/4) {
		w.slide(w.buf, from)
	}
	if size := w.grown(); w.end > len(w.buf)/2 && len(w.buf)-w.end < len(w.buf)/4 && size > len(w.buf) {
		w.slide(make([]byte, size), 0)
	}
}

// grown is the size after that of buf.
func (w *window) grown() int {
	if len(w.buf) >= doublingBytes {
		return w.most
	}
	return min(2*len(w.buf), w.most)
}

// slide moves buf[from:end] to the beginning of into, and into in the place of buf.
func (w *window) slide(into []byte, from int) {
	copy(into, w.buf[from:w.end])
	if len(into) != len(w.buf) {
		w.giveBack()
	}
	w.buf = into
	w.pos -= from
	w.end -= from
	w.base += int64(from)
	if w.keep >= 0 {
		w.keep -= from
	}
}

// need makes n bytes stand in buf[pos:].
func (w *window) need(n int) bool {
	for w.end-w.pos < n {
		if !w.fill() {
			return false
		}
	}
	return true
}

// discard moves pos n bytes on without holding them.
func (w *window) discard(n int64) bool {
	for {
		if have := int64(w.end - w.pos); have >= n {
			w.pos += int(n)
			return true
		} else {
			n -= have
		}
		w.pos = w.end
		if !w.fill() {
			return false
		}
	}
}

// lend notes what the caller holds until release.
func (w *window) lend(from, to int) []byte {
	w.lentFrom, w.lentTo = from, to
	return w.buf[from:to:to]
}

// release ends the loan, and gives back a buffer that a giant item has blown up.
func (w *window) release() {
	if w.poison {
		poisonBytes(w.buf[w.lentFrom:w.lentTo])
	}
	w.lent = w.lentTo - w.lentFrom
	if usual := max(w.floor, defaultBufferBytes); len(w.buf) > usual {
		if w.calm++; w.lent > usual/2 {
			w.calm = 0
		}
		if w.calm >= calmItems && w.end-w.pos <= usual/2 && w.keep < 0 {
			w.slide(make([]byte, usual), w.pos)
			w.calm = 0
		}
	}
	w.lentFrom, w.lentTo = 0, 0
}

// cut makes the error of a body that ended too early, for the reason in stop.
func (w *window) cut(items int) *api.BodyError {
	if w.stop == io.EOF {
		return w.bodyError(io.ErrUnexpectedEOF, "", items)
	}
	return w.bodyError(w.stop, "", items)
}

func (w *window) bodyError(reason error, detail string, items int) *api.BodyError {
	e := &api.BodyError{Watch: w.watch, Offset: w.at(), Items: items, Err: reason}
	if detail != "" {
		e.Err = fmt.Errorf("%w: %s", reason, detail)
	}
	switch reason {
	case api.ErrNotList, api.ErrNotWatch:
		e.Head = Quote(w.head)
	case ErrStatus:
		e.Head = quoteStatus(w.head)
	}
	return e
}

// poisonByte is no JSON and, as a protobuf tag, an illegal wire type.
const poisonByte = 0xDF

func poisonBytes(b []byte) {
	for i := range b {
		b[i] = poisonByte
	}
}

// Poison overwrites bytes whose loan is over, where the build tag wirepoison asks for it, so that a
// caller that still reads them notices.
func Poison(b []byte) {
	if poisonLent {
		poisonBytes(b)
	}
}
