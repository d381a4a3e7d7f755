package checkpoint

import (
	"encoding/binary"
	"encoding/hex"
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

// Entry is one object, and the version of it that was acknowledged.
type Entry struct {
	// Key is "namespace/name" or "name"; any bytes are kept.
	Key string
	// ResourceVersion is the server's opaque string, and may be empty.
	ResourceVersion string
	// UID is empty where it is not known.
	UID string
}

// parseNumber is s as a number, if formatting that gives s again.
func parseNumber(s string) (n uint64, ok bool) {
	const tenth = math.MaxUint64 / 10
	if s == "" || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	for i := range len(s) {
		digit := uint64(s[i] - '0')
		if digit > 9 || n > tenth || n == tenth && digit > math.MaxUint64%10 {
			return 0, false
		}
		n = n*10 + digit
	}
	return n, true
}

const uuidSize = len("00112233-4455-6677-8899-aabbccddeeff")

// uuidDashes are the places of the dashes.
var uuidDashes = [...]int{8, 13, 18, 23}

// parseUUID is s as 16 bytes, if it is a UUID in lower case.
func parseUUID(s string) (uuid [16]byte, ok bool) {
	if len(s) != uuidSize {
		return uuid, false
	}
	for _, dash := range uuidDashes {
		if s[dash] != '-' {
			return uuid, false
		}
	}
	at := 0
	for i := range uuid {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			at++
		}
		high, low := nibbles[s[at]], nibbles[s[at+1]]
		if high|low > 0xf {
			return uuid, false
		}
		uuid[i] = high<<4 | low
		at += 2
	}
	return uuid, true
}

// nibbles are the values of hexadecimal digits in lower case, 0xff for all else.
var nibbles = func() (values [256]byte) {
	for i := range values {
		values[i] = 0xff
	}
	for i, digit := range "0123456789abcdef" {
		values[digit] = byte(i)
	}
	return values
}()

// appendUUID adds what parseUUID has read.
func appendUUID(to []byte, uuid []byte) []byte {
	to = append(hex.AppendEncode(to, uuid[:4]), '-')
	to = append(hex.AppendEncode(to, uuid[4:6]), '-')
	to = append(hex.AppendEncode(to, uuid[6:8]), '-')
	to = append(hex.AppendEncode(to, uuid[8:10]), '-')
	return hex.AppendEncode(to, uuid[10:16])
}

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
	for n < most && a[n] == b[n] {
		n++
	}
	return n
}
