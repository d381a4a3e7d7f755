package checkpoint

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"unsafe"

	"github.com/rvinformer/informer/internal/keytable"
)

// Reader reads a checkpoint: exactly its bytes and no more, in pieces of about 64
// KiB, from any io.Reader. It holds one block, which grows as bytes arrive and not
// because a length says so, to 4 MiB at most.
type Reader struct {
	r io.Reader
	// block is what follows the head of a block; at is how far it was read, and
	// blockAt where it is in the checkpoint.
	block   []byte
	at      int
	blockAt int64
	// key is the key of the last entry in the same block, and version its version.
	key     []byte
	version keytable.Binary

	entries  int
	metadata map[string]string
	// metadataSize is the size of the blocks of metadata that were read.
	metadataSize int
	// sum is the checksum of what was read, and read its size.
	sum  uint32
	read int64
	err  error
}

// NewReader returns a Reader of one checkpoint.
func NewReader(r io.Reader) *Reader { return &Reader{r: r, metadata: map[string]string{}} }

// Next returns the key of the next entry and its version. Both are lent: they are
// valid until Next is called again, and strings.Clone keeps what they have of strings.
// At the end it returns io.EOF: only then is it known that the entries and the
// metadata are what was written. Any other error is an *Error and final.
func (r *Reader) Next() (key string, version *keytable.Binary, err error) {
	for r.err == nil {
		if r.at < len(r.block) {
			if r.entry() {
				return lent(r.key), &r.version, nil
			}
			r.err = r.damaged(r.blockAt+int64(r.at), "malformed entry")
			break
		}
		r.err = r.nextBlock()
	}
	return "", nil, r.err
}

// Metadata is the named values as far as they were read. All of them are known once
// Next has returned io.EOF.
func (r *Reader) Metadata() map[string]string { return r.metadata }

// Read is the number of bytes that were taken from the underlying reader.
func (r *Reader) Read() int64 { return r.read }

// entry reads the entry at r.at. It is false where that is malformed.
func (r *Reader) entry() bool {
	b := r.block[r.at:]
	if len(b) < 2 {
		return false
	}
	kinds, common := b[0], int(b[1])
	text, b, ok := cutString(b[2:])
	if !ok || kinds&^kindsMask != 0 || common > len(r.key) || common+len(text) > MaxString {
		return false
	}
	r.key = append(r.key[:common], text...)
	r.version = keytable.Binary{}
	switch kinds & versionMask {
	case versionEmpty:
	case versionNumber:
		number, size := binary.Uvarint(b)
		if size <= 0 {
			return false
		}
		b = b[size:]
		r.version.Number, r.version.IsNumber = number, true
	case versionString:
		if text, b, ok = cutString(b); !ok {
			return false
		}
		r.version.SetResourceVersion(lent(text))
	default:
		return false
	}
	switch kinds & uidMask {
	case uidNone:
	case uidUUID:
		if len(b) < 16 {
			return false
		}
		r.version.UUID, r.version.IsUUID = [16]byte(b), true
		b = b[16:]
	case uidString:
		if text, b, ok = cutString(b); !ok {
			return false
		}
		r.version.SetUID(lent(text))
	default:
		return false
	}
	r.at = len(r.block) - len(b)
	r.entries++
	return true
}

// nextBlock reads a block, of entries if it returns nil and there is something in
// it, and what is before the first.
func (r *Reader) nextBlock() error {
	if r.read == 0 {
		if err := r.head(); err != nil {
			return err
		}
	}
	headAt := r.read
	if err := r.fill(blockHead); err != nil {
		return err
	}
	r.count(r.block)
	kind, size := r.block[0], binary.BigEndian.Uint32(r.block[1:])
	if size > blockMost {
		return r.damaged(headAt, "block of %d bytes", size)
	}
	if err := r.fill(int(size)); err != nil {
		return err
	}
	r.blockAt = headAt + blockHead
	switch kind {
	case blockEntries:
		r.count(r.block)
		r.at, r.key = 0, r.key[:0]
		return nil
	case blockMetadata:
		r.count(r.block)
		return r.readMetadata()
	case blockEnd:
		return r.end()
	}
	return r.damaged(headAt, "block of kind %d", kind)
}

// head reads the head of the checkpoint.
func (r *Reader) head() error {
	err := r.fill(len(magic))
	r.count(r.block)
	if string(r.block) != magic[:len(r.block)] {
		return r.wrong(0, ErrFormat)
	}
	if err != nil {
		return err
	}
	if err := r.fill(headSize - len(magic)); err != nil {
		return err
	}
	r.count(r.block)
	switch version := binary.BigEndian.Uint16(r.block); {
	case version > Version:
		return r.wrong(int64(len(magic)), fmt.Errorf("%w: version %d, %d is the newest known", ErrVersion, version, Version))
	case version == 0:
		return r.damaged(int64(len(magic)), "version 0")
	}
	return nil
}

func (r *Reader) readMetadata() error {
	if r.metadataSize += len(r.block); r.metadataSize > MaxMetadata {
		return r.damaged(r.blockAt, "more than %d bytes of metadata", MaxMetadata)
	}
	for b := r.block; len(b) > 0; {
		at := r.blockAt + int64(len(r.block)-len(b))
		name, rest, ok := cutString(b)
		if !ok {
			return r.damaged(at, "malformed metadata")
		}
		value, rest, ok := cutString(rest)
		if !ok {
			return r.damaged(at, "malformed metadata")
		}
		r.metadata[string(name)] = string(value)
		b = rest
	}
	return nil
}

// end checks the end, and returns io.EOF if it is right.
func (r *Reader) end() error {
	if len(r.block) != endSize {
		return r.damaged(r.blockAt, "end of %d bytes", len(r.block))
	}
	r.count(r.block[:8])
	if sum := binary.BigEndian.Uint32(r.block[8:]); sum != r.sum {
		return r.damaged(r.blockAt+8, "checksum %08x, not %08x", r.sum, sum)
	}
	if count := binary.BigEndian.Uint64(r.block); count != uint64(r.entries) {
		return r.damaged(r.blockAt, "%d entries, not %d", r.entries, count)
	}
	return io.EOF
}

// count adds b to the checksum.
func (r *Reader) count(b []byte) { r.sum = crc32.Update(r.sum, castagnoli, b) }

// fill reads size bytes to r.block, all of which is done then. If there are fewer,
// it has those.
func (r *Reader) fill(size int) error {
	r.block = r.block[:0]
	for len(r.block) < size {
		if len(r.block) == cap(r.block) {
			r.block = slices.Grow(r.block, min(size-len(r.block), max(len(r.block), blockFull)))
		}
		have := len(r.block)
		n, err := io.ReadFull(r.r, r.block[have:min(size, cap(r.block))])
		r.block = r.block[:have+n]
		r.read += int64(n)
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			r.at = len(r.block)
			return r.wrong(r.read, err)
		}
	}
	r.at = len(r.block)
	return nil
}

func (r *Reader) damaged(at int64, format string, args ...any) error {
	return r.wrong(at, fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...)))
}

func (r *Reader) wrong(at int64, err error) error {
	return &Error{Offset: at, Entry: r.entries, Err: err}
}

// lent is b as a string, valid as long as b does not change.
func lent(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
