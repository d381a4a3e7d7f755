package wire

import "errors"

// wireType is how a protobuf field is delimited.
type wireType uint8

const (
	varint wireType = iota
	fixed64
	lengthDelimited
	groupStart
	groupEnd
	fixed32
)

var (
	errProtoCut       = errors.New("a field runs over the end of its message")
	errProtoCutVarint = errors.New("cut within a varint")
	errProtoVarint    = errors.New("a varint of more than 10 bytes")
	errProtoTag       = errors.New("an illegal tag")
	errProtoType      = errors.New("a field of the wrong wire type")
)

// fields walks one protobuf message that is held whole. It accepts what the generated Unmarshal
// methods of Kubernetes accept; protowire is stricter (10th byte of a varint, field numbers within
// groups), and would lose items that the ordinary decoders read.
type fields struct {
	b   []byte
	i   int
	err error

	// The message is only the beginning of one, so a length-delimited field may be cut: it is given
	// as far as it goes.
	partial bool

	num  int32
	typ  wireType
	data []byte // of a length-delimited field
	n    uint64 // of a varint
}

// next goes to the next field. At the end, and on an error (err), it is false.
func (f *fields) next() bool {
	// Most fields have a tag of one byte, and a length of one or two.
	if rest := f.b[f.i:]; len(rest) > 2 && rest[0] >= 1<<3 && rest[0] < 0x80 && rest[0]&7 == byte(lengthDelimited) && f.err == nil {
		length, at := int(rest[1]), 2
		if length >= 0x80 {
			length, at = length&0x7F|int(rest[2])<<7, 3
		}
		if (at == 2 || rest[2] < 0x80) && length <= len(rest)-at {
			f.num, f.typ, f.data, f.n = int32(rest[0]>>3), lengthDelimited, rest[at:at+length:at+length], 0
			f.i += at + length
			return true
		}
	}
	return f.nextOther()
}

// nextOther is next for any field.
func (f *fields) nextOther() bool {
	if f.err != nil || f.i >= len(f.b) {
		return false
	}
	tag := f.uvarint()
	f.num, f.typ, f.data, f.n = int32(tag>>3), wireType(tag&7), nil, 0
	switch {
	case f.err != nil:
	case f.num <= 0 || f.typ == groupEnd:
		f.err = errProtoTag
	case f.typ == groupStart:
		f.group()
	default:
		f.payload(f.typ)
	}
	return f.err == nil
}

func (f *fields) payload(typ wireType) {
	switch typ {
	case varint:
		f.n = f.uvarint()
	case fixed64:
		f.take(8)
	case fixed32:
		f.take(4)
	case lengthDelimited:
		if length := f.uvarint(); f.err == nil {
			f.data = f.take(length)
		}
	default:
		f.err = errProtoTag
	}
}

// group passes a group whose start tag has been read. What is in it does not matter, field numbers
// included.
func (f *fields) group() {
	for depth := 1; depth > 0 && f.err == nil; {
		switch typ := wireType(f.uvarint() & 7); {
		case f.err != nil:
		case typ == groupStart:
			depth++
		case typ == groupEnd:
			depth--
		default:
			f.payload(typ)
		}
	}
	f.data, f.n = nil, 0
}

func (f *fields) take(n uint64) []byte {
	rest := f.b[f.i:]
	if n > uint64(len(rest)) {
		if !f.partial {
			f.err = errProtoCut
			return nil
		}
		n = uint64(len(rest))
	}
	f.i += int(n)
	return rest[:n:n]
}

func (f *fields) uvarint() (v uint64) {
	for shift := 0; shift < 64; shift += 7 {
		if f.i >= len(f.b) {
			f.err = errProtoCutVarint
			return 0
		}
		c := f.b[f.i]
		f.i++
		v |= uint64(c&0x7F) << shift
		if c < 0x80 {
			return v
		}
	}
	f.err = errProtoVarint
	return 0
}

// bytes is the data of a field that must be length-delimited.
func (f *fields) bytes() []byte {
	if f.typ != lengthDelimited && f.err == nil {
		f.err = errProtoType
	}
	return f.data
}

// dataAt is where data begins in the message.
func (f *fields) dataAt() int { return f.i - len(f.data) }
