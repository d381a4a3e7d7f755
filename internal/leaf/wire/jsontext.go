package wire

import (
	"fmt"
	"io"
	"unicode/utf8"
)

// JSONText walks a JSON text that is in memory. It checks the whole grammar, as lists are read.
//
//	text.Reset(object)
//	at, more := text.Enter(text.Space(0), '}')
//	for more {
//		key, value := text.Key(at)
//		at, more = text.Next(text.Skip(value), '}')
//	}
//	return text.Err()
//
// Offsets are in the text. After the first fault, each method returns the end of the text.
type JSONText struct {
	scan jsonScan
	// fault is what is wrong at faultAt, empty if nothing is.
	fault   string
	faultAt int
}

// MalformedError says where a text or message of an object cannot be read.
type MalformedError struct {
	Offset int // of the byte that was not expected
	Detail string
}

func (e *MalformedError) Error() string {
	return fmt.Sprintf("malformed object at byte %d: %s", e.Offset, e.Detail)
}

// Reset begins with a text. It is not changed.
func (t *JSONText) Reset(text []byte) {
	t.scan.window = window{buf: text, end: len(text), keep: -1, stop: io.EOF}
	t.scan.wrecked, t.scan.fault, t.fault = false, nil, ""
}

// Err returns a *MalformedError for the first fault, nil if there was none.
func (t *JSONText) Err() error {
	switch {
	case t.OK():
		return nil
	case t.faultAt >= t.scan.end:
		return &MalformedError{Offset: t.scan.end, Detail: "cut: " + t.fault}
	default:
		return &MalformedError{Offset: t.faultAt, Detail: t.fault}
	}
}

// OK reports whether there was no fault.
func (t *JSONText) OK() bool { return t.fault == "" }

// Fail notes what is wrong at an offset, unless there was a fault before.
func (t *JSONText) Fail(at int, fault string) (end int) {
	if t.OK() {
		t.fault, t.faultAt = fault, at
	}
	return t.scan.end
}

// At returns the byte at an offset, 0 at the end, which begins and ends nothing.
func (t *JSONText) At(at int) byte {
	if at < t.scan.end {
		return t.scan.buf[at]
	}
	return 0
}

// Space passes white space.
func (t *JSONText) Space(at int) (end int) {
	for at < t.scan.end && isSpace(t.scan.buf[at]) {
		at++
	}
	return at
}

// Skip passes the value that begins at the offset.
func (t *JSONText) Skip(at int) (end int) {
	s := &t.scan
	if s.pos, s.depth = at, 0; at >= s.end {
		return t.Fail(s.end, "a value expected")
	}
	switch {
	case s.skip():
		return s.pos
	case s.wrecked:
		return t.Fail(s.pos, s.faultDetail)
	default:
		return t.Fail(s.end, "the end of a value expected")
	}
}

// Enter passes the bracket of an object or array. More tells that there is a member or element:
// end is in front of that. If there is none, it passes the closing bracket too.
func (t *JSONText) Enter(at int, closing byte) (end int, more bool) {
	if behind := t.Space(at + 1); t.At(behind) == closing {
		return behind + 1, false
	}
	return at + 1, true
}

// Next passes the comma behind a member or element, or the closing bracket if no more follow.
func (t *JSONText) Next(at int, closing byte) (end int, more bool) {
	switch at = t.Space(at); t.At(at) {
	case ',':
		return at + 1, true
	case closing:
		return at + 1, false
	default:
		return t.Fail(at, "',' or '"+string(closing)+"' expected"), false
	}
}

// Key returns what the key of a member means, and where its value begins. The key may be lent by
// the text.
func (t *JSONText) Key(at int) (key []byte, value int) {
	if at = t.Space(at); t.At(at) != '"' {
		return nil, t.Fail(at, "a key expected")
	}
	end := t.Skip(at)
	key = t.meaning(at, end, "an invalid key")
	colon := t.Space(end)
	if t.At(colon) != ':' {
		return nil, t.Fail(colon, "':' expected")
	}
	return key, t.Space(colon + 1)
}

// String passes the value that begins at the offset. If it is a string, it returns what that means,
// which may be lent by the text.
func (t *JSONText) String(at int) (meaning []byte, end int) {
	if end = t.Skip(at); t.At(at) == '"' {
		meaning = t.meaning(at, end, "an invalid string")
	}
	return meaning, end
}

// meaning returns what a string means that was passed.
func (t *JSONText) meaning(from, to int, invalid string) []byte {
	if !t.OK() {
		return nil
	}
	meaning, ok := Unescaped(t.scan.buf[from+1 : to-1 : to-1])
	if !ok {
		t.Fail(from, invalid)
	}
	return meaning
}

// Unescaped is AppendUnescaped, but lends the content if it means itself.
func Unescaped(content []byte) (meaning []byte, ok bool) {
	if isPlain(content) || utf8.Valid(content) && !needsUnescaping(content) {
		return content, true
	}
	return AppendUnescaped(nil, content)
}

func needsUnescaping(content []byte) bool {
	for _, c := range content {
		if c < 0x20 || c == '\\' {
			return true
		}
	}
	return false
}
