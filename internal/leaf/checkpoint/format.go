package checkpoint

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"

	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// magic begins every checkpoint. As with PNG, a byte that is not ASCII and both
// kinds of line ending make a transfer that takes it for a text fail here.
const magic = "\x89RVC\r\n\x1a\n"

// snapshotMagic begins a snapshot: a checkpoint of some objects, and all objects as payload behind
// it. It differs from magic, so that neither is taken for the other.
const snapshotMagic = "\x89RVS\r\n\x1a\n"

const (
	// Version is the version of a checkpoint that has an end, and nothing behind it.
	Version = 1
	// VersionJournaled is the version of a checkpoint with a journal behind it, and the newest
	// that is read.
	VersionJournaled = 2
	// SnapshotVersion is the version of snapshots and of their payload. No other one is read.
	SnapshotVersion = 2
)

// ErrEarlier says that a snapshot is in an earlier version of the format, which is not read any
// more.
var ErrEarlier = errors.New("format of an earlier version of the library")

// headSize is magic and version.
const headSize = len(magic) + 2

// Kinds of block.
const (
	blockMetadata = 1
	blockEntries  = 2
	blockEnd      = 3
	blockFrame    = 4
	blockPayload  = 5
)

const (
	// blockHead is a kind and a length.
	blockHead = 1 + 4
	// blockMost is the most that may follow the head of a block.
	blockMost = 4 << 20
	// blockFull is when the writer begins a new one.
	blockFull = 64 << 10
	// endSize is the count of the entries, and the checksum.
	endSize = 8 + 4
	// sumSize is the checksum behind a frame or a block of payload.
	sumSize = 4
)

const (
	// MaxString is the most bytes that a key, a resource version or a UID may have.
	// Kubernetes has 317 at most.
	MaxString = 1 << 20
	// MaxMetadata is the most bytes that all blocks of metadata together may have.
	MaxMetadata = 64 << 10
	// sharedMost is the most that a key may share with the one before, so that few
	// bytes of a file cannot stand for many of a table.
	sharedMost = math.MaxUint8
)

// How an entry has its resource version and its UID.
const (
	versionEmpty  = 0
	versionNumber = 1
	versionString = 2
	versionMask   = 3

	uidNone   = 0 << 2
	uidUUID   = 1 << 2
	uidString = 2 << 2
	uidMask   = 3 << 2

	entryMask  = versionMask | uidMask
	recordMask = 3 << 4
)

// Record is what a record of a journal says of its key.
type Record byte

const (
	// Acknowledged: the handler has acknowledged the key in a version.
	Acknowledged Record = 0 << 4
	// Gone: the handler has acknowledged that the key is gone.
	Gone Record = 1 << 4
	// Begun: the handler is about to be called for the key.
	Begun Record = 2 << 4
	// Dead is a Begun that has a dead letter in place of a version.
	Dead Record = Begun | 1<<7
	// Resume has no key. Its version is where a watch goes on.
	Resume Record = 3 << 4
)

// castagnoli is the polynomial for which amd64 and arm64 have an instruction. It
// finds every error of up to 32 bits in a row, so every single damaged byte.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendString adds length and bytes of s.
func appendString(to []byte, s string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(s))), s...)
}

// appendEntry adds an entry or a record, whose key shares a beginning with last.
func appendEntry(b, last []byte, record Record, key string, version *keytable.Binary) []byte {
	common := shared(last, key)
	kindsAt := len(b)
	b = appendString(append(b, byte(record), byte(common)), key[common:])
	switch {
	case version.IsNumber:
		b[kindsAt] |= versionNumber
		b = binary.AppendUvarint(b, version.Number)
	case version.Text != "":
		b[kindsAt] |= versionString
		b = appendString(b, version.Text)
	}
	switch {
	case version.IsUUID:
		b[kindsAt] |= uidUUID
		b = append(b, version.UUID[:]...)
	case version.UID != "":
		b[kindsAt] |= uidString
		b = appendString(b, version.UID)
	}
	return b
}

// appendLast returns the part of key that the next one can share, in the memory of last.
func appendLast(last []byte, key string) []byte {
	return append(last[:0], key[:min(len(key), sharedMost)]...)
}

// cutString is the string with which b begins, borrowed from it, and what follows.
func cutString(b []byte) (s, rest []byte, ok bool) {
	length, size := binary.Uvarint(b)
	if size <= 0 || length > MaxString || length > uint64(len(b)-size) {
		return nil, nil, false
	}
	end := size + int(length)
	return b[size:end], b[end:], true
}

// shared is how many bytes a key has in common with the one before.
func shared(a []byte, b string) (n int) {
	most := min(len(a), len(b), sharedMost)
	a, b = a[:most], b[:most]
	for n < most && a[n] == b[n] {
		n++
	}
	return n
}
