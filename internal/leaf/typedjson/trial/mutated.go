package trial

import (
	"bytes"
	"fmt"
	"math/rand"

	"github.com/go-json-experiment/json/jsontext"
)

// Values are what a random value is changed to.
func Values() []string {
	return []string{
		"null", "true", "0", "1", "-1", "-0", "1.0", "1.5", "1e2", "1e999", "300", "70000", "5000000000", "9223372036854775808", "123456789012345678901234567890", "01", "1.",
		`""`, `"x"`, `"1"`, `" 1"`, `"1.5"`, `"null"`, `"true"`, `"\"q\""`, `"\"q"`, `"100m"`, `"1Gi"`, `"5m"`, `"2020-01-01T00:00:00Z"`, `"2020-01-01T00:00:00.123456Z"`, `"2020-01-01t0:00:00,5Z"`,
		`"aGVsbG8="`, `"aGVsbG8"`, `"YR=="`, "\"aGVs\\nbG8=\"", "\"\xff\"", `"\ud800"`, `"\u00e9\ud83d\ude00"`, `"a\/b"`, `"\x"`, "\"\t\"", `"x`,
		"[]", "[null]", "[1]", "[1,2,3]", "[300]", `["a"]`, "[{}]", "[{},null]", "[[]]", "[1,]",
		"{}", `{"a":null}`, `{"a":1}`, `{"a":"x"}`, `{"1":"a"}`, `{"null":"a"}`, `{"null":1}`, `{"":"a"}`, `{"true":1}`, `{"1.5":"a"}`, `{"01":"a"}`, `{"300":true}`, "{\"\xff\":\"\xfe\"}", `{"a":"aGVsbG8="}`, `{"A":"x","c":3}`, `{"c":1,"c":null,"A":null}`,
		`{"a":["b",null]}`, `{"a":{"c":1},"b":null}`, `{"a":{"A":"x"},"a":{"c":2}}`, `{"a":[1,2],"a":[3]}`, `{"a":[[],{}],"a":{"b":2}}`, " null ", `{"a" 1}`,
	}
}

// Mutated returns a text in which about one value in every is changed: replaced, given again with
// another value, before or behind, with its name in other letters, or joined by an unknown one.
func Mutated(r *rand.Rand, text []byte, every int) []byte {
	m := mutation{Rand: r, every: every, values: Values()}
	m.copy(decoderOf(text))
	return m.out.Bytes()
}

type mutation struct {
	*rand.Rand
	every  int
	values []string
	out    bytes.Buffer
}

func decoderOf(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

func (m *mutation) any() string { return m.values[m.Intn(len(m.values))] }

// copy copies a value.
func (m *mutation) copy(from *jsontext.Decoder) {
	if m.Intn(m.every) == 0 {
		must(from.SkipValue())
		m.out.WriteString(m.any())
		return
	}
	switch kind := from.PeekKind(); kind {
	case '{', '[':
		m.copyAll(from, kind == '{')
	default:
		m.out.Write(valueOf(from))
	}
}

// copyAll copies an object or an array.
func (m *mutation) copyAll(from *jsontext.Decoder, named bool) {
	opening := valueOfToken(from)
	m.out.WriteString(opening)
	for first := true; from.PeekKind() != ']' && from.PeekKind() != '}'; first = false {
		if !first {
			m.out.WriteByte(',')
		}
		if named {
			m.copyMember(from)
		} else {
			m.copy(from)
		}
	}
	m.out.WriteString(valueOfToken(from))
}

func (m *mutation) copyMember(from *jsontext.Decoder) {
	name := valueOf(from)
	switch m.Intn(4 * m.every) {
	case 0:
		name = bytes.ToUpper(name)
	case 1:
		fmt.Fprintf(&m.out, `%s:%s,`, name, m.any())
	case 2:
		fmt.Fprintf(&m.out, `"unknown":%s,`, m.any())
	case 3:
		value := valueOf(from)
		fmt.Fprintf(&m.out, "%s:%s,%s:%s,\n%s:", name, value, name, m.any(), name)
		m.copy(decoderOf(value))
		return
	}
	m.out.Write(name)
	m.out.WriteByte(':')
	m.copy(from)
}

func valueOf(from *jsontext.Decoder) []byte {
	value, err := from.ReadValue()
	must(err)
	return bytes.Clone(value)
}

func valueOfToken(from *jsontext.Decoder) string {
	token, err := from.ReadToken()
	must(err)
	return token.String()
}

// must is for what only a text that is no JSON breaks.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
