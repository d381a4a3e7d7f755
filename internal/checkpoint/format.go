package checkpoint

import (
	"encoding/binary"
	"hash/crc32"
	"math"
)

// magic begins every checkpoint. As with PNG, a byte that is not ASCII and both
// kinds of line ending make a transfer that takes it for a text fail here.
const magic = "\x89RVC\r\n\x1a\n"

// Version is the version of the format that is written, and the newest that is read.
const Version = 1

// headSize is magic and version.
const headSize = len(magic) + 2

// Kinds of block.
const (
	blockMetadata = 1
	blockEntries  = 2
	blockEnd      = 3
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
)

const (
	// MaxString is the most bytes that a key, a resource version or a UID may have.
	// Kubernetes has 317 at most.
	MaxString = 1 << 20
	// MaxMetadata is the most bytes that all blocks of metadata together may have.
	MaxMetadata = 64 << 10
	// sharedMost is the most that a key may share with the one before, so that few
	// bytes of a file can not stand for many of a table.
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

	kindsMask = versionMask | uidMask
)

// castagnoli is the polynomial for which amd64 and arm64 have an instruction. It
// finds every error of up to 32 bits in a row, so every single damaged byte.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendString adds length and bytes of s.
func appendString(to []byte, s string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(s))), s...)
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
