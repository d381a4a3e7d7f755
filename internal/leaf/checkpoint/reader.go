package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"unsafe"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// Reader reads a checkpoint: exactly its bytes and no more, in pieces of about 64
// KiB, from any io.Reader. It holds one block, which grows as bytes arrive and not
// because a length says so, to 4 MiB at most.
type Reader struct {
	r io.Reader
	// magic is what it has to begin with.
	magic string
	// block is what follows the head of a block; at is how far it was read, and
	// blockAt where it is in the checkpoint.
	block   []byte
	at      int
	blockAt int64
	// key is the key of the last entry in the same block, and version its version.
	key     []byte
	version keytable.Binary

	// formatVersion is that of the checkpoint, and ended tells that its end was read.
	formatVersion uint16
	ended         bool
	// whole is the size of the checkpoint and of the frames that were read.
	whole int64
	// torn is what is wrong with what follows them, nil if nothing is.
	torn error

	entries  int
	metadata map[string]string
	// metadataSize is the size of the blocks of metadata that were read.
	metadataSize int
	// sum is the checksum of the bytes that were read, and read their number.
	sum  uint32
	read int64
	err  error
	// failed tells that the underlying reader has failed, other than by an end too soon. Its error
	// may say that something is damaged, too.
	failed bool
}

// NewReader returns a Reader of one checkpoint.
func NewReader(r io.Reader) *Reader { return newReader(r, magic) }

// NewSnapshotReader returns a Reader of one snapshot.
func NewSnapshotReader(r io.Reader) *Reader { return newReader(r, snapshotMagic) }

func newReader(r io.Reader, magic string) *Reader {
	return &Reader{r: r, magic: magic, metadata: map[string]string{}}
}

// Next returns the key of the next entry and its version. Both are lent: they are
// valid until Next is called again, and strings.Clone keeps what they have of strings.
// At the end it returns io.EOF: only then is it known that the entries and the
// metadata are what was written. Any other error is an *api.CheckpointError and final.
func (r *Reader) Next() (key string, version *keytable.Binary, err error) {
	for r.err == nil {
		if r.at < len(r.block) {
			if kinds := r.block[r.at]; kinds&^entryMask == 0 && r.entry() {
				r.entries++
				return lent(r.key), &r.version, nil
			}
			r.err = r.damaged(r.blockAt+int64(r.at), "malformed entry")
			break
		}
		r.err = r.nextBlock()
	}
	return "", nil, r.err
}

// NextRecord returns the next record of the journal behind the checkpoint, once Next has
// returned io.EOF. Key and version are lent, as by Next. At the end it returns io.EOF: that is
// the end of the file, or comes before a frame that was cut or damaged, which
// Torn tells. A checkpoint without a journal must have nothing behind it.
func (r *Reader) NextRecord() (record Record, key string, version *keytable.Binary, err error) {
	if !r.ended {
		return 0, "", nil, r.err
	}
	for r.at == len(r.block) {
		if err := r.nextFrame(); err != nil {
			return 0, "", nil, err
		}
	}
	record = Record(r.block[r.at] & recordMask)
	if kinds := r.block[r.at]; kinds&^(entryMask|recordMask) != 0 || !r.entry() {
		// The checksum is right: this is what was written.
		r.torn = r.damaged(r.blockAt+int64(r.at), "malformed record")
		r.ended, r.err = false, io.EOF
		return 0, "", nil, io.EOF
	}
	if record == Begun && r.version.Text != "" {
		record = Dead
	}
	return record, lent(r.key), &r.version, nil
}

// Torn is what is wrong with the end of the journal, nil if nothing is. Frames appended behind
// that cannot be read.
func (r *Reader) Torn() error { return r.torn }

// Whole is the size of the part that could be read: the checkpoint, and the frames up to Torn.
func (r *Reader) Whole() int64 { return r.whole }

// Journaled reports whether the checkpoint may have a journal. It is known once Next has
// returned io.EOF.
func (r *Reader) Journaled() bool {
	return r.magic == magic && r.formatVersion >= VersionJournaled
}

// nextFrame reads a frame. It returns io.EOF where there is none that is right.
func (r *Reader) nextFrame() error {
	at := r.read
	_, err := r.signed(blockFrame, 0)
	switch {
	case r.read == at && errors.Is(err, io.ErrUnexpectedEOF):
		return r.noFrame(nil)
	case !r.Journaled() && r.read > at:
		err = r.damaged(at, "bytes behind the end")
	case err == nil:
		r.key, r.whole = r.key[:0], r.read
		return nil
	case !r.failed && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, api.ErrCheckpointDamaged)):
		return r.noFrame(err)
	}
	r.ended, r.err = false, err
	return err
}

// signed reads a block of a kind whose checksum is behind it: sum, and what is in the block. It
// returns the checksum.
func (r *Reader) signed(kind byte, sum uint32) (uint32, error) {
	at := r.read
	if err := r.fill(blockHead); err != nil {
		return 0, err
	}
	found, size := r.block[0], binary.BigEndian.Uint32(r.block[1:])
	if found != kind || size > blockMost {
		return 0, r.damaged(at, "block of kind %d, %d bytes", found, size)
	}
	sum = crc32.Update(sum, castagnoli, r.block)
	if err := r.fill(int(size) + sumSize); err != nil {
		return 0, err
	}
	content := r.block[:size]
	if sum = crc32.Update(sum, castagnoli, content); sum != binary.BigEndian.Uint32(r.block[size:]) {
		return 0, r.damaged(at, "checksum of a block")
	}
	r.block, r.at, r.blockAt = content, 0, at+blockHead
	return sum, nil
}

// noFrame ends the journal: there is nothing more, or it is torn.
func (r *Reader) noFrame(torn error) error {
	r.torn, r.ended, r.err = torn, false, io.EOF
	return io.EOF
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
	if !ok || common > len(r.key) || common+len(text) > MaxString {
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
	if string(r.block) != r.magic[:len(r.block)] {
		return r.wrong(0, r.otherFormat())
	}
	if err != nil {
		return err
	}
	if err := r.fill(headSize - len(magic)); err != nil {
		return err
	}
	r.count(r.block)
	r.formatVersion = binary.BigEndian.Uint16(r.block)
	newest := uint16(VersionJournaled)
	if r.magic == snapshotMagic {
		newest = SnapshotVersion
	}
	switch version := r.formatVersion; {
	case version > newest:
		return r.wrong(int64(len(magic)), fmt.Errorf("%w: version %d, %d is the newest known", api.ErrCheckpointVersion, version, newest))
	case version == 0:
		return r.damaged(int64(len(magic)), "version 0")
	case r.magic == snapshotMagic && version < SnapshotVersion:
		return r.wrong(int64(len(magic)), fmt.Errorf("%w: snapshot of version %d, %d is the oldest known", ErrEarlier, version, SnapshotVersion))
	}
	return nil
}

// otherFormat is the error for data that begins in another way.
func (r *Reader) otherFormat() error {
	switch begin := string(r.block); {
	case begin == magic:
		return fmt.Errorf("%w with objects, but one of an informer that keeps none", api.ErrCheckpointFormat)
	case begin == snapshotMagic:
		return fmt.Errorf("%w of an informer that keeps no objects", api.ErrCheckpointFormat)
	default:
		return api.ErrCheckpointFormat
	}
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
	r.ended, r.whole = true, r.read
	return io.EOF
}

// count adds b to the checksum.
func (r *Reader) count(b []byte) { r.sum = crc32.Update(r.sum, castagnoli, b) }

// fill reads size bytes to r.block, which must be done. If there are fewer,
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
			r.at, r.failed = len(r.block), err != io.ErrUnexpectedEOF
			return r.wrong(r.read, err)
		}
	}
	r.at = len(r.block)
	return nil
}

func (r *Reader) damaged(at int64, format string, args ...any) error {
	return r.wrong(at, fmt.Errorf("%w: %s", api.ErrCheckpointDamaged, fmt.Sprintf(format, args...)))
}

func (r *Reader) wrong(at int64, err error) error {
	return &api.CheckpointError{Offset: at, Entry: r.entries, Err: err}
}

// lent is b as a string, valid as long as b does not change.
func lent(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
