package keytable

// generatedAlphabet is what Kubernetes makes the last five characters of the names
// of pods of; 27^5 is less than 2^24. See k8s.io/apimachinery/pkg/util/rand.
const (
	generatedAlphabet = "bcdfghjklmnpqrstvwxz2456789"
	generatedChars    = 5
	generatedSize     = 3

	// notGenerated is the code of all other characters: no letter has its top bit.
	notGenerated = 1 << 7
)

// generatedCodes has the code of each character.
var generatedCodes = func() (codes [256]uint8) {
	for c := range codes {
		codes[c] = notGenerated
	}
	for code, c := range []byte(generatedAlphabet) {
		codes[c] = uint8(code)
	}
	return codes
}()

// generatedCode is the number that stands for five characters, and whether they
// are all of those letters.
func generatedCode(text string) (code uint32, ok bool) {
	if len(text) != generatedChars {
		return 0, false
	}
	a, b, c, d, e := generatedCodes[text[0]], generatedCodes[text[1]], generatedCodes[text[2]], generatedCodes[text[3]], generatedCodes[text[4]]
	code = uint32(a)*(27*27*27*27) + uint32(b)*(27*27*27) + uint32(c)*(27*27) + uint32(d)*27 + uint32(e)
	return code, (a|b|c|d|e)&notGenerated == 0
}

// appendGenerated adds the five characters that code stands for.
func appendGenerated(to []byte, code uint32) []byte {
	first, last := code/(27*27*27), code%(27*27*27)
	return append(to, generatedAlphabet[first/27], generatedAlphabet[first%27],
		generatedAlphabet[last/(27*27)], generatedAlphabet[last/27%27], generatedAlphabet[last%27])
}
