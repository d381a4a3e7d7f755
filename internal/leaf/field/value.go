package field

import (
	"encoding/json"
	"math"
	"strconv"
	"unsafe"
)

// Kind is what a value is in JSON.
type Kind uint8

// The kinds of values.
const (
	Absent Kind = iota
	String
	Int
	Float
	Bool
	Object
	Array
)

func (k Kind) String() string {
	return [...]string{"absent", "string", "int", "float", "bool", "object", "array"}[k]
}

// Reason is why a field has no value.
type Reason uint8

const (
	// Found tells that the field has a value.
	Found Reason = iota
	// Missing tells that the object does not have the field, or has null there.
	Missing
	// BadPath tells that a name of the path is empty.
	BadPath
	// UnknownType tells that the path leads into a part whose Go type is not known, or cannot be
	// read.
	UnknownType
	// UnknownField tells that the Go type has no such field.
	UnknownField
	// Malformed tells that the object cannot be read on the way of the path, or the value cannot.
	Malformed
)

// Value is the value of a field.
type Value struct {
	kind   Kind
	number uint64
	bytes  []byte
}

func (v Value) Kind() Kind { return v.kind }

// Bytes returns the content of a string, or an object or array as it came: in JSON its text; in
// protobuf the message of an object, and for an array or a map the message around it with this
// field alone. They must not be written to.
func (v Value) Bytes() []byte { return v.bytes }

// Int returns an Int, of others 0.
func (v Value) Int() int64 {
	if v.kind != Int {
		return 0
	}
	return int64(v.number)
}

// Float returns a Float or an Int, of others 0.
func (v Value) Float() float64 {
	switch v.kind {
	case Float:
		return math.Float64frombits(v.number)
	case Int:
		return float64(int64(v.number))
	default:
		return 0
	}
}

// Bool reports whether the value is true.
func (v Value) Bool() bool { return v.kind == Bool && v.number != 0 }

// String returns a string with memory of its own, and numbers and booleans as JSON has them. It is
// empty for others.
func (v Value) String() string {
	switch v.kind {
	case String:
		return string(v.bytes)
	case Int:
		return strconv.FormatInt(v.Int(), 10)
	case Float:
		text, _ := json.Marshal(v.Float()) // it came from JSON, which has no number that fails
		return string(text)
	case Bool:
		return strconv.FormatBool(v.Bool())
	default:
		return ""
	}
}

func stringValue(content []byte) (Value, Reason) { return Value{kind: String, bytes: content}, Found }

// Text returns the value of a string that is not in the object, Missing if it is empty.
func Text(s string) (Value, Reason) {
	if s == "" {
		return Value{}, Missing
	}
	return stringValue(unsafe.Slice(unsafe.StringData(s), len(s)))
}

func intValue(n int64) (Value, Reason) { return Value{kind: Int, number: uint64(n)}, Found }

func boolValue(b bool) (Value, Reason) {
	v := Value{kind: Bool}
	if b {
		v.number = 1
	}
	return v, Found
}

// floatValue returns what comes back of a number that was written to JSON: an Int, if that needs
// neither a point nor an exponent.
func floatValue(f float64, bits int) (Value, Reason) {
	var written interface{} = f
	if bits == 32 {
		written = float32(f)
	}
	text, err := json.Marshal(written)
	if err != nil {
		return Value{}, Malformed // JSON has no such number
	}
	return numberValue(text)
}

// numberValue returns the value of a JSON number, an Int if it has neither a point nor an exponent,
// and is one.
func numberValue(text []byte) (Value, Reason) {
	whole := true
	for _, c := range text {
		whole = whole && c != '.' && c != 'e' && c != 'E'
	}
	if whole {
		if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			return intValue(n)
		}
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return Value{}, Malformed
	}
	return Value{kind: Float, number: math.Float64bits(f)}, Found
}

// naturalValue returns a number that may be too large for an Int.
func naturalValue(n uint64) (Value, Reason) {
	var digits [20]byte
	return numberValue(strconv.AppendUint(digits[:0], n, 10))
}
