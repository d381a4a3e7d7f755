package keytable

import "encoding/binary"

// alphabet is what names, namespaces and the slash between them are made of, in
// 40 characters; 40*40*40 is less than 2^16. The colon is in names of RBAC.
const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789-.:/"

// foreign is the code of all other characters: no sum of six with one fits 32
// bits, nor does it overflow.
const foreign = 1 << 35

// codes has the code of each character.
var codes = func() (codes [256]uint64) {
	for c := range codes {
		codes[c] = foreign
	}
	for code, c := range []byte(alphabet) {
		codes[c] = uint64(code)
	}
	return codes
}()

// Kinds of text.
const (
	textPacked    = iota // three characters in two bytes
	textPlain            // its bytes
	textLarge            // the number of a large text
	textGenerated        // five letters of those that generated names end in, in three bytes
)

// generatedAlphabet is what Kubernetes makes the last five characters of the names
// of pods of; 27^5 is less than 2^24. See k8s.io/apimachinery/pkg/util/rand.
const (
	generatedAlphabet = "bcdfghjklmnpqrstvwxz2456789"
	generatedChars    = 5
	generatedSize     = 3
)

// generatedCodes has the code of each character, foreign for all others.
var generatedCodes = func() (codes [256]uint64) {
	for c := range codes {
		codes[c] = foreign
	}
	for code, c := range []byte(generatedAlphabet) {
		codes[c] = uint64(code)
	}
	return codes
}()

// generatedCode is the number that stands for five characters, and whether they
// are all of those letters.
func generatedCode(text string) (code uint64, ok bool) {
	_ = text[generatedChars-1]
	code = generatedCodes[text[0]]*(27*27*27*27) + generatedCodes[text[1]]*(27*27*27) + generatedCodes[text[2]]*(27*27) +
		generatedCodes[text[3]]*27 + generatedCodes[text[4]]
	return code, code < foreign
}

// packedSize is the bytes that a packed text of n characters takes.
func packedSize(n int) int { return (n + 2) / 3 * 2 }

// appendText adds text in the shorter way that it can be written.
func appendText(to []byte, text string) (longer []byte, kind byte) {
	start := len(to)
	switch len(text) {
	case 1:
		return append(to, text...), textPlain
	case generatedChars:
		if code, ok := generatedCode(text); ok {
			return append(to, byte(code), byte(code>>8), byte(code>>16)), textGenerated
		}
	}
	for rest := text; rest != ""; {
		var code uint64
		code, rest = nextCode(rest)
		if code >= foreign {
			return append(to[:start], text...), textPlain
		}
		to = append(to, byte(code), byte(code>>8))
	}
	return to, textPacked
}

// nextCode is the code of the first three characters of text, or of those that
// there are, and what comes after them.
func nextCode(text string) (code uint64, rest string) {
	switch len(text) {
	case 1:
		return codes[text[0]] * 1600, ""
	case 2:
		return codes[text[0]]*1600 + codes[text[1]]*40, ""
	}
	return codes[text[0]]*1600 + codes[text[1]]*40 + codes[text[2]], text[3:]
}

// textEqual reports whether what begins at written is text.
func textEqual(written []byte, kind byte, text string) bool {
	switch kind {
	case textPacked:
		return packedEqual(written, text)
	case textPlain:
		return string(written[:len(text)]) == text
	}
	code, ok := generatedCode(text)
	return ok && code == uint64(read24(written))
}

func packedEqual(written []byte, text string) bool {
	for len(text) >= 6 && len(written) >= 4 {
		first := codes[text[0]]*1600 + codes[text[1]]*40 + codes[text[2]]
		second := codes[text[3]]*1600 + codes[text[4]]*40 + codes[text[5]]
		if first+second<<16 != uint64(binary.LittleEndian.Uint32(written)) {
			return false
		}
		written, text = written[4:], text[6:]
	}
	for text != "" {
		var code uint64
		code, text = nextCode(text)
		if code != uint64(binary.LittleEndian.Uint16(written)) {
			return false
		}
		written = written[2:]
	}
	return true
}

// appendRead adds the text of n characters that begins at written.
func appendRead(to, written []byte, kind byte, n int) []byte {
	switch kind {
	case textPlain:
		return append(to, written[:n]...)
	case textGenerated:
		code := read24(written)
		var text [generatedChars]byte
		for i := generatedChars - 1; i >= 0; i-- {
			text[i] = generatedAlphabet[code%27]
			code /= 27
		}
		return append(to, text[:]...)
	}
	end := len(to) + n
	for ; len(to) < end; written = written[2:] {
		code := binary.LittleEndian.Uint16(written)
		to = append(to, alphabet[code/1600], alphabet[code/40%40], alphabet[code%40])
	}
	return to[:end]
}

// large keeps the texts that are too long for an entry.
type large struct {
	texts []string
	// free are the numbers not in use.
	free  []uint32
	bytes int64
}

func (l *large) add(text string) uint32 {
	l.bytes += int64(len(text))
	if n := len(l.free); n > 0 {
		number := l.free[n-1]
		l.free = l.free[:n-1]
		l.texts[number] = text
		return number
	}
	l.texts = append(l.texts, text)
	return uint32(len(l.texts) - 1)
}

func (l *large) remove(number uint32) {
	l.bytes -= int64(len(l.texts[number]))
	l.texts[number] = ""
	l.free = append(l.free, number)
}

func (l *large) size() int64 {
	return l.bytes + int64(cap(l.texts))*16 + int64(cap(l.free))*4
}
