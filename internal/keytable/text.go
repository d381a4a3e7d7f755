package keytable

// Kinds of text.
const (
	textPacked    = iota // four characters in three bytes
	textPlain            // its bytes
	textLarge            // the number of a large text
	textGenerated        // five letters of those that generated names end in, in three bytes
)

// appendText adds text in the shorter way that it can be written.
func appendText(to []byte, text string) (longer []byte, kind byte) {
	switch len(text) {
	case 1:
		return append(to, text...), textPlain
	case generatedChars:
		if code, ok := generatedCode(text); ok {
			return append(to, byte(code), byte(code>>8), byte(code>>16)), textGenerated
		}
	}
	if packed, ok := appendPacked(to, text); ok {
		return packed, textPacked
	}
	return append(to, text...), textPlain
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
	return ok && code == read24(written)
}

// appendRead adds the text of n characters that begins at written.
func appendRead(to, written []byte, kind byte, n int) []byte {
	switch kind {
	case textPlain:
		return append(to, written[:n]...)
	case textGenerated:
		return appendGenerated(to, read24(written))
	}
	return appendUnpacked(to, written, n)
}
