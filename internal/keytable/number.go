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
	for ; n != 0; n >>= 8 {
		to = append(to, byte(n))
	}
	return to
}

func readNumber(written []byte) uint64 {
	var whole [8]byte
	copy(whole[:], written)
	return binary.LittleEndian.Uint64(whole[:])
}

const notHex = 0xff

// nibbles has the value of each lower case hexadecimal digit.
var nibbles = func() (nibbles [256]byte) {
	for c := range nibbles {
		nibbles[c] = notHex
	}
	for value, c := range []byte("0123456789abcdef") {
		nibbles[c] = byte(value)
	}
	return nibbles
}()

// uuidPlaces are those of the bytes of a UUID in its text.
var uuidPlaces = [16]int{0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34}

// parseUUID reads a UID that is a UUID, in lower case, with its dashes.
func parseUUID(s string) (uuid [16]byte, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return uuid, false
	}
	for i, place := range uuidPlaces {
		high, low := nibbles[s[place]], nibbles[s[place+1]]
		if high|low == notHex {
			return uuid, false
		}
		uuid[i] = high<<4 | low
	}
	return uuid, true
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

// borrowed is b as a string, valid as long as b does not change.
func borrowed(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
