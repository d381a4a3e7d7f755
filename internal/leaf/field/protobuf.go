package field

import (
	"encoding/base64"
	"math"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rvinformer/informer/internal/leaf/fieldpath"
	"github.com/rvinformer/informer/internal/leaf/wire"
)

// Numbers of the fields of messages that have a JSON of their own.
const (
	entryKey, entryValue = 1, 2
	quantityNumber       = 1
	rawNumber            = 1
)

// InProtobuf finds a field of an object's message, without its envelope. The message has no kind
// and no apiVersion.
func (t *Type) InProtobuf(message []byte, path string) (Value, Reason) {
	if !fieldpath.Valid(path) {
		return Value{}, BadPath
	}
	return t.value(found{data: message}, path)
}

// found is a field of a message. The zero value stands for one that is absent.
type found struct {
	count int
	// data and number are those of the last one, but messages are merged.
	data   []byte
	number uint64
	// span is the message around with this field alone.
	span []byte
}

// find looks for a field, which is of type t.
func (t *Type) find(message []byte, number int32) (found, Reason) {
	var f found
	from, to := 0, 0
	for m := wire.NewMessage(message); ; {
		if !m.Next() {
			if m.Err() != nil {
				return f, Malformed
			}
			break
		}
		if m.Number() != number {
			continue
		}
		if t.take(&f, &m); m.Err() != nil {
			return f, Malformed
		}
		switch a, b := m.Span(); {
		case f.count == 0:
			from, to = a, b
			f.span = message[from:to:to]
		case a == to:
			to = b
			f.span = message[from:to:to]
		default: // others are between them
			from, to = -1, -1
			f.span = append(f.span, message[a:b]...)
		}
		f.count++
	}
	if f.count == 0 {
		return f, Missing
	}
	return f, Found
}

// take reads the field that m is at into f.
func (t *Type) take(f *found, m *wire.Message) {
	switch t.shape {
	case integer, natural, boolean:
		f.number = m.Varint()
	case double:
		f.number = m.Fixed(t.of.Bits())
	case text, blob, instant, microInstant:
		f.data = m.Data()
	case list, mapping: // what is in the span counts
	default:
		if data := m.Data(); f.count == 0 {
			f.data = data[:len(data):len(data)]
		} else {
			f.data = append(f.data, data...)
		}
	}
}

// value returns the value to which the path leads from a value of type t. An empty path is that
// value itself.
func (t *Type) value(f found, path string) (Value, Reason) {
	if path == "" {
		return t.whole(f)
	}
	switch name, rest, _ := fieldpath.Cut(path); t.shape {
	case structure:
		return t.field(f.data, name, rest)
	case mapping:
		return t.entry(f.span, name, rest)
	case rawJSON:
		return f.inText(path)
	case opaque:
		return Value{}, UnknownType
	default:
		return Value{}, UnknownField
	}
}

// field is value for a field of a struct.
func (t *Type) field(message []byte, name, rest string) (Value, Reason) {
	m := t.member(fieldpath.Unescape(name))
	switch {
	case m == nil:
		return Value{}, UnknownField
	case m.shape == opaque:
		return Value{}, UnknownType
	}
	last := len(m.numbers) - 1
	for _, number := range m.numbers[:last] {
		inlined, why := t.find(message, number)
		if why != Found {
			return Value{}, why
		}
		message = inlined.data
	}
	f, why := m.find(message, m.numbers[last])
	if why != Found {
		return Value{}, why
	}
	if rest == "" && m.omitEmpty && m.isEmpty(f) {
		return Value{}, Missing
	}
	return m.value(f, rest)
}

// isEmpty reports whether encoding/json calls the value empty.
func (t *Type) isEmpty(f found) bool {
	switch t.shape {
	case text, blob, wrapped:
		return len(f.data) == 0
	case integer, natural, boolean:
		return t.integer(f) == 0
	case double:
		return t.float(f) == 0
	default:
		return false
	}
}

// entry is value for an entry of a map. The last one with the key counts.
func (t *Type) entry(entries []byte, name, rest string) (Value, Reason) {
	var value found
	why := Missing
	m := wire.NewMessage(entries)
	for m.Next() {
		entry := m.Data()
		key, ok := entryName(entry)
		if !ok {
			return Value{}, Malformed
		}
		if !fieldpath.Matches(name, key) {
			continue
		}
		if value, why = t.elem().find(entry, entryValue); why == Malformed {
			return Value{}, Malformed
		}
		why = Found // without a value, it is the zero value
	}
	switch {
	case m.Err() != nil:
		return Value{}, Malformed
	case why != Found:
		return Value{}, why
	default:
		return t.elem().value(value, rest)
	}
}

// entryName returns the key of an entry of a map, as its JSON has it.
func entryName(entry []byte) (key []byte, ok bool) {
	m := wire.NewMessage(entry)
	for m.Next() {
		if m.Number() == entryKey {
			key = m.Data()
		}
	}
	return valid(key), m.Err() == nil
}

// inText is value for JSON text in a message.
func (f found) inText(path string) (Value, Reason) {
	raw, why := rawBytes.find(f.data, rawNumber)
	if why != Found {
		return Value{}, why
	}
	if len(raw.data) == 0 {
		return Value{}, Missing
	}
	text, why := spanInJSON(raw.data, path)
	if why != Found {
		return Value{}, why
	}
	return jsonValue(text)
}

// The types of the fields of messages that have a JSON of their own.
var (
	rawBytes = &Type{shape: blob}
	rawText  = &Type{shape: text}
)

// whole returns the value itself.
func (t *Type) whole(f found) (Value, Reason) {
	switch t.shape {
	case text:
		return stringValue(valid(f.data))
	case blob:
		return stringValue(base64.StdEncoding.AppendEncode(nil, f.data))
	case integer:
		return intValue(t.integer(f))
	case natural:
		return naturalValue(uint64(t.integer(f)))
	case boolean:
		return boolValue(f.number != 0)
	case double:
		return floatValue(t.float(f), t.of.Bits())
	case structure:
		return Value{kind: Object, bytes: f.data}, Found
	case mapping:
		return Value{kind: Object, bytes: f.span}, Found
	case list, wrapped:
		return Value{kind: Array, bytes: f.span}, Found
	case rawJSON:
		return f.inText("")
	default:
		return t.special(f.data)
	}
}

// integer returns a number with as many bits as the Go type has.
func (t *Type) integer(f found) int64 {
	switch {
	case t.shape == boolean || t.of.Bits() == 64:
		return int64(f.number)
	case t.shape == natural:
		return int64(uint32(f.number))
	default:
		return int64(int32(f.number))
	}
}

func (t *Type) float(f found) float64 {
	if t.of.Bits() == 32 {
		return float64(math.Float32frombits(uint32(f.number)))
	}
	return math.Float64frombits(f.number)
}

// special is whole for the messages that have a JSON of their own.
func (t *Type) special(message []byte) (Value, Reason) {
	switch t.shape {
	case instant:
		var at metav1.Time
		return timeValue(&at.Time, at.Unmarshal(message), time.RFC3339)
	case microInstant:
		var at metav1.MicroTime
		return timeValue(&at.Time, at.Unmarshal(message), metav1.RFC3339Micro)
	case duration:
		var d metav1.Duration
		if d.Unmarshal(message) != nil {
			return Value{}, Malformed
		}
		return stringValue([]byte(d.Duration.String()))
	case quantity:
		s, why := rawText.find(message, quantityNumber)
		switch why {
		case Missing:
			return stringValue([]byte("0"))
		case Found:
			return stringValue(s.data)
		}
		return Value{}, why
	case intOrString:
		return intOrStringValue(message)
	default:
		return Value{}, UnknownType
	}
}

// timeValue returns a time that was decoded.
func timeValue(at *time.Time, err error, format string) (Value, Reason) {
	switch {
	case err != nil:
		return Value{}, Malformed
	case at.IsZero():
		return Value{}, Missing
	default:
		return stringValue([]byte(at.UTC().Format(format)))
	}
}

func intOrStringValue(message []byte) (Value, Reason) {
	var v intstr.IntOrString
	switch err := v.Unmarshal(message); {
	case err == nil && v.Type == intstr.Int:
		return intValue(int64(v.IntVal))
	case err == nil && v.Type == intstr.String:
		return stringValue(valid([]byte(v.StrVal)))
	default:
		return Value{}, Malformed
	}
}

// valid returns a string as JSON has it: what is no UTF-8 is replaced.
func valid(s []byte) []byte {
	if utf8.Valid(s) {
		return s
	}
	var replaced []byte
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		replaced, s = utf8.AppendRune(replaced, r), s[n:]
	}
	return replaced
}
