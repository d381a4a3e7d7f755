package keytable

import (
	"encoding/binary"
	"slices"
)

// Packed text has six bits for each character, the first character lowest. There are
// codes for what names, namespaces and the slash between them are made of, and for
// the colon, which is in names of RBAC: 0 to 13 for "-./0123456789:", which follow
// each other in ASCII, and 14 to 39 for the letters.
//
// Eight characters at a time are words of eight bytes, and each byte of such a word
// is a number of its own: nothing is carried from one to the next.
const (
	packedChars = 8
	packedBytes = 6

	codeFirst  = '-'
	codeLetter = ':' + 1 - codeFirst
	// letterGap is what a letter is farther from codeFirst than its code is.
	letterGap = 'a' - codeFirst - codeLetter

	bytes1   = 0x0101_0101_0101_0101
	bytesTop = bytes1 << 7
)

// packedSize is the bytes that a packed text of n characters takes.
func packedSize(n int) int { return (n*3 + 3) / 4 }

// atLeast has the top bit of each byte of x that is least or more, if none is 128 or
// more.
func atLeast(x uint64, least byte) uint64 {
	return (x + uint64(128-least)*bytes1) & bytesTop
}

// pack is the codes of eight characters in 48 bits, and whether all have one.
func pack(chars uint64) (codes uint64, ok bool) {
	low := chars &^ bytesTop
	letters := atLeast(low, 'a') &^ atLeast(low, 'z'+1)
	others := atLeast(low, codeFirst) &^ atLeast(low, ':'+1)
	if chars&bytesTop != 0 || letters|others != bytesTop {
		return 0, false
	}
	x := chars - codeFirst*bytes1 - letters>>7*letterGap
	x = x&0x003f_003f_003f_003f | x>>2&0x0fc0_0fc0_0fc0_0fc0
	x = x&0x0000_0fff_0000_0fff | x>>4&0x00ff_f000_00ff_f000
	return x&0xff_ffff | x>>8&0xffff_ff00_0000, true
}

// unpack is the eight characters of 48 bits, whatever is in the others.
func unpack(codes uint64) uint64 {
	x := codes&0xff_ffff | codes<<8&0x00ff_ffff_0000_0000
	x = x&0x0000_0fff_0000_0fff | x<<4&0x0fff_0000_0fff_0000
	x = x&0x003f_003f_003f_003f | x<<2&0x3f00_3f00_3f00_3f00
	return x + codeFirst*bytes1 + atLeast(x, codeLetter)>>7*letterGap
}

// appendPacked adds text packed, if all its characters have codes.
func appendPacked(to []byte, text string) (longer []byte, ok bool) {
	end := len(to) + packedSize(len(text))
	for {
		chars, n := firstChars(text)
		if n < packedChars {
			chars |= uint64(codeFirst*bytes1) << (8 * n) // code 0
		}
		codes, ok := pack(chars)
		if !ok {
			return nil, false
		}
		to = binary.LittleEndian.AppendUint64(to, codes)[:len(to)+packedBytes]
		if text = text[n:]; text == "" {
			return to[:end], true
		}
	}
}

// appendUnpacked adds the n characters that are packed at written.
func appendUnpacked(to, written []byte, n int) []byte {
	end := len(to) + n
	to = slices.Grow(to, n+packedChars)
	for len(to) < end {
		to = binary.LittleEndian.AppendUint64(to, unpack(firstBytes(written)))
		written = written[min(packedBytes, len(written)):]
	}
	return to[:end]
}

// packedEqual reports whether text is packed at written.
func packedEqual(written []byte, text string) bool {
	for len(text) >= packedChars {
		chars, _ := firstChars(text)
		if unpack(firstBytes(written)) != chars {
			return false
		}
		written, text = written[packedBytes:], text[packedChars:]
	}
	chars, n := firstChars(text)
	return (unpack(firstBytes(written))^chars)<<(64-8*n) == 0
}

// firstChars is the first eight characters of text, or the n that there are.
func firstChars(text string) (chars uint64, n int) {
	if len(text) >= packedChars {
		return uint64(text[0]) | uint64(text[1])<<8 | uint64(text[2])<<16 | uint64(text[3])<<24 |
			uint64(text[4])<<32 | uint64(text[5])<<40 | uint64(text[6])<<48 | uint64(text[7])<<56, packedChars
	}
	for i := range len(text) {
		chars |= uint64(text[i]) << (8 * i)
	}
	return chars, len(text)
}

// firstBytes is the first eight bytes of written, with zeros for those that there
// are not.
func firstBytes(written []byte) uint64 {
	if len(written) >= 8 {
		return binary.LittleEndian.Uint64(written)
	}
	return readNumber(written)
}
