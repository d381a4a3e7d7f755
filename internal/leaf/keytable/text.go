package keytable

// Kinds of text.
const (
	textPacked    = iota // its length, and four characters in three bytes
	textPlain            // its length, and its bytes
	textLarge            // the number of a large text, in four bytes
	textGenerated        // five letters of those that generated names end in, in three bytes
)

// appendText adds text in the shortest way that it can be written.
func appendText(to []byte, text string) (longer []byte, kind byte) {
	if code, ok := generatedCode(text); ok {
		return append(to, byte(code), byte(code>>8), byte(code>>16)), textGenerated
	}
	to = append(to, byte(len(text)))
	if len(text) > 1 {
		if packed, ok := appendPacked(to, text); ok {
			return packed, textPacked
		}
	}
	return append(to, text...), textPlain
}

// textSize is the bytes of the text that begins at written.
func textSize(written []byte, kind byte) int {
	switch kind {
	case textGenerated:
		return generatedSize
	case textPacked:
		return 1 + packedSize(int(written[0]))
	case textPlain:
		return 1 + int(written[0])
	}
	return 4
}

// textChars is the length of the text that begins at written, which is not large.
func textChars(written []byte, kind byte) int {
	if kind == textGenerated {
		return generatedChars
	}
	return int(written[0])
}

// textEqual reports whether what begins at written is text, which is as long.
func textEqual(written []byte, kind byte, text string) bool {
	switch kind {
	case textGenerated:
		code, ok := generatedCode(text)
		return ok && code == read24(written)
	case textPacked:
		return packedEqual(written[1:], text)
	}
	return string(written[1:1+len(text)]) == text
}

// appendRead adds the text that begins at written, which is not large.
func appendRead(to, written []byte, kind byte) []byte {
	switch kind {
	case textGenerated:
		return appendGenerated(to, read24(written))
	case textPacked:
		return appendUnpacked(to, written[1:], int(written[0]))
	}
	return append(to, written[1:1+int(written[0])]...)
}
