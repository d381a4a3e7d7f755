package keytable

import "encoding/binary"

// alphabet is what names, namespaces and the slash between them are made of, in
// 40 characters; 40*40*40 is less than 2^16. The colon is in names of RBAC.
const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789-.:/"

// foreign is the code of all other characters: no sum with one fits 16 bits.
const foreign = 1 << 20

// codes has the code of each character.
var codes = func() (codes [256]uint32) {
	for c := range codes {
		codes[c] = foreign
	}
	for code, c := range []byte(alphabet) {
		codes[c] = uint32(code)
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
var generatedCodes = func() (codes [256]uint32) {
	for c := range codes {
		codes[c] = foreign
	}
	for code, c := range []byte(generatedAlphabet) {
		codes[c] = uint32(code)
	}
	return codes
}()

// generatedCode is the number that stands for five characters, and whether they
// are all of those letters.
func generatedCode(text string) (code uint32, ok bool) {
	for i := range generatedChars {
		digit := generatedCodes[text[i]]
		if digit == foreign {
			return 0, false
		}
		code = code*27 + digit
	}
	return code, true
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
		var code uint32
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
func nextCode(text string) (code uint32, rest string) {
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
	case textPlain:
		return string(written[:len(text)]) == text
	case textGenerated:
		code, ok := generatedCode(text)
		return ok && code == read24(written)
	}
	for len(text) >= 3 {
		code := codes[text[0]]*1600 + codes[text[1]]*40 + codes[text[2]]
		if code != uint32(binary.LittleEndian.Uint16(written)) {
			return false
		}
		written, text = written[2:], text[3:]
	}
	if text == "" {
		return true
	}
	code, _ := nextCode(text)
	return code == uint32(binary.LittleEndian.Uint16(written))
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
