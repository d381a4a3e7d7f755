package keytable

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unsafe"
)

// parseNumber reads a resource version that is a number and written as strconv
// would write it, so that it comes back as it was: not "007", not "+5".
func parseNumber(s string) (n uint64, ok bool) {
	if len(s) == 0 || len(s) > 20 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	for i := range len(s) {
		digit := uint64(s[i] - '0')
		if digit > 9 {
			return 0, false
		}
		if i == 19 && (n > math.MaxUint64/10 || n == math.MaxUint64/10 && digit > math.MaxUint64%10) {
			return 0, false
		}
		n = n*10 + digit
	}
	return n, true
}

// numberSize is the bytes that appendNumber adds.
func numberSize(n uint64) int { return (bits.Len64(n) + 7) / 8 }

// appendNumber adds n, lowest byte first, without its leading zero bytes.
func appendNumber(to []byte, n uint64) []byte {
	return binary.LittleEndian.AppendUint64(to, n)[:len(to)+numberSize(n)]
}

// writeNumber writes n where there was a number of its size.
func writeNumber(to []byte, n uint64) {
	for i := range to {
		to[i], n = byte(n), n>>8
	}
}

func readNumber(written []byte) uint64 {
	var whole [8]byte
	copy(whole[:], written)
	return binary.LittleEndian.Uint64(whole[:])
}

// parseUUID reads a UID that is a UUID, in lower case, with its dashes.
func parseUUID(s string) (uuid [16]byte, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return uuid, false
	}
	a, okA := parseHex(chars4(s) | chars4(s[4:])<<32)
	b, okB := parseHex(chars4(s[9:]) | chars4(s[14:])<<32)
	c, okC := parseHex(chars4(s[19:]) | chars4(s[24:])<<32)
	d, okD := parseHex(chars4(s[28:]) | chars4(s[32:])<<32)
	binary.LittleEndian.PutUint32(uuid[:], a)
	binary.LittleEndian.PutUint32(uuid[4:], b)
	binary.LittleEndian.PutUint32(uuid[8:], c)
	binary.LittleEndian.PutUint32(uuid[12:], d)
	return uuid, okA && okB && okC && okD
}

func chars4(s string) uint64 {
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24
}

// parseHex is the four bytes that eight digits in lower case stand for, the first one
// lowest, and whether the characters are such digits. See pack for how.
func parseHex(chars uint64) (four uint32, ok bool) {
	low := chars &^ bytesTop
	digits := atLeast(low, '0') &^ atLeast(low, '9'+1)
	letters := atLeast(low, 'a') &^ atLeast(low, 'f'+1)
	x := chars&(0xf*bytes1) + letters>>7*9
	x = (x<<4 | x>>8) & 0x00ff_00ff_00ff_00ff
	x = (x | x>>8) & 0x0000_ffff_0000_ffff
	return uint32(x | x>>16), chars&bytesTop == 0 && digits|letters == bytesTop
}

func appendUUID(to, uuid []byte) []byte {
	const digits = "0123456789abcdef"
	for i, b := range uuid[:16] {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			to = append(to, '-')
		}
		to = append(to, digits[b>>4], digits[b&15])
	}
	return to
}

func read24(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }

func write24(b []byte, v uint32) { b[0], b[1], b[2] = byte(v), byte(v>>8), byte(v>>16) }

// Borrowed is b as a string, valid as long as b does not change.
func Borrowed(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
