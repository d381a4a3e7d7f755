package checkpoint

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// Writer writes a checkpoint. It buffers what it is given until Push or Close, and
// every Write that it makes is of one block or more. After an error of the underlying
// writer, all methods return that.
type Writer struct {
	w io.Writer
	// buffer is what was not written yet: the head of the checkpoint, and blocks. The
	// last block begins at blockAt and is of kind, 0 if it has an end.
	buffer  []byte
	blockAt int
	kind    byte
	// last is the beginning of the key before, in the same block.
	last    []byte
	entries int
	// metadata is the size of the blocks of metadata.
	metadata int
	// sum is the checksum of the bytes that were written, but for checksums.
	sum     uint32
	written int64
	err     error
}

// NewWriter returns a Writer of one checkpoint. Nothing is written before the first
// block is full.
func NewWriter(w io.Writer) *Writer { return newWriter(w, magic, Version) }

// NewJournaledWriter returns a Writer of a checkpoint that frames of a Journal follow.
func NewJournaledWriter(w io.Writer) *Writer { return newWriter(w, magic, VersionJournaled) }

// NewSnapshotWriter returns a Writer of a snapshot, whose Payload has to follow.
func NewSnapshotWriter(w io.Writer) *Writer { return newWriter(w, snapshotMagic, SnapshotVersion) }

func newWriter(w io.Writer, magic string, version uint16) *Writer {
	buffer := make([]byte, 0, 2*blockFull)
	buffer = binary.BigEndian.AppendUint16(append(buffer, magic...), version)
	return &Writer{w: w, buffer: buffer, last: make([]byte, 0, sharedMost)}
}

// Metadata adds a named value, at any time before Close. Of two with one name, the
// later one counts: what is only known at the end may be said there.
func (w *Writer) Metadata(name, value string) error {
	if w.err != nil {
		return w.err
	}
	field := appendString(appendString(nil, name), value)
	if size := w.metadata + len(field); size > MaxMetadata {
		return w.tooLong("metadata", size, MaxMetadata)
	}
	w.metadata += len(field)
	w.begin(blockMetadata)
	w.buffer = append(w.buffer, field...)
	return nil
}

// AllMetadata adds named values.
func (w *Writer) AllMetadata(values map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if err := w.Metadata(name, values[name]); err != nil {
			return err
		}
	}
	return nil
}

// Entry adds an entry; it keeps none of its strings, and writes nothing, so that a
// lock may be held. One that has too long a string is ErrTooLong, and is left out.
// Entries may come in any order and more than once: the later one counts. In the
// order of their keys, they take least.
func (w *Writer) Entry(key string, version *keytable.Binary) error {
	if w.err != nil {
		return w.err
	}
	if most := max(len(key), len(version.Text), len(version.UID)); most > MaxString {
		return w.tooLong("string", most, MaxString)
	}
	w.begin(blockEntries)
	w.buffer = appendEntry(w.buffer, w.last, 0, key, version)
	w.last = appendLast(w.last, key)
	w.entries++
	if len(w.buffer)-w.blockAt >= blockFull {
		w.finish()
	}
	return nil
}

// Push writes what is buffered, if that is a block or more.
func (w *Writer) Push() error {
	if len(w.buffer) >= blockFull {
		w.flush()
	}
	return w.err
}

// Close writes what is left and the end. It does not close the underlying writer.
// No method may be called after it.
func (w *Writer) Close() error {
	w.begin(blockEnd)
	w.buffer = binary.BigEndian.AppendUint64(w.buffer, uint64(w.entries))
	w.buffer = binary.BigEndian.AppendUint32(w.buffer, 0) // the block is as long as with it
	w.finish()
	w.buffer = w.buffer[:len(w.buffer)-sumSize]
	w.sign()
	return w.err
}

// Written is the number of bytes that the underlying writer has taken.
func (w *Writer) Written() int64 { return w.written }

// begin begins a block, or goes on with one of the same kind.
func (w *Writer) begin(kind byte) {
	if w.kind == kind {
		return
	}
	w.finish()
	w.kind, w.blockAt = kind, len(w.buffer)
	w.buffer = append(w.buffer, kind, 0, 0, 0, 0)
	w.last = w.last[:0]
}

// finish ends the block that was begun.
func (w *Writer) finish() {
	if w.kind != 0 {
		binary.BigEndian.PutUint32(w.buffer[w.blockAt+1:], uint32(len(w.buffer)-w.blockAt-blockHead))
		w.kind = 0
	}
}

// flush ends the block that was begun, and writes what there is.
func (w *Writer) flush() {
	w.finish()
	w.sum = crc32.Update(w.sum, castagnoli, w.buffer)
	w.write()
}

// sign is flush with the checksum of everything before it behind the block.
func (w *Writer) sign() {
	w.finish()
	w.sum = crc32.Update(w.sum, castagnoli, w.buffer)
	w.buffer = binary.BigEndian.AppendUint32(w.buffer, w.sum)
	w.write()
}

func (w *Writer) write() {
	if w.err != nil {
		return
	}
	n, err := w.w.Write(w.buffer)
	w.written += int64(n)
	if err == nil && n < len(w.buffer) {
		err = io.ErrShortWrite
	}
	w.err = err
	w.buffer = w.buffer[:0]
}

func (w *Writer) tooLong(what string, size, most int) error {
	return &api.CheckpointError{
		Offset: w.written + int64(len(w.buffer)),
		Entry:  w.entries,
		Err:    fmt.Errorf("%w: %s of %d bytes, %d is the most", ErrTooLong, what, size, most),
	}
}
