package wire

import (
	"encoding/binary"
	"errors"
)

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

// Message walks the fields of a protobuf message that is held whole.
//
//	m := wire.NewMessage(message)
//	for m.Next() {
//		if m.Number() == 3 {
//			use(m.Data())
//		}
//	}
//	return m.Err()
//
// It accepts what the generated Unmarshal methods of Kubernetes accept; protowire is stricter (10th
// byte of a varint, field numbers within groups), and would lose items that the ordinary decoders
// read.
type Message struct {
	b    []byte
	from int // where the field begins
	i    int // where it ends
	err  error

	// The message is only the beginning of one, so a length-delimited field may be cut: it is given
	// as far as it goes.
	partial bool

	num  int32
	typ  wireType
	data []byte // of a length-delimited field
	n    uint64 // of a varint; anything if it is none
}

// NewMessage returns the walk of a message, before its first field. The message must not be
// changed.
func NewMessage(message []byte) Message { return Message{b: message} }

// Next goes to the next field. It is false at the end and on an error.
func (m *Message) Next() bool {
	m.from = m.i
	// Most fields have a tag of one byte, and a length of one or two.
	if rest := m.b[m.i:]; len(rest) > 2 && rest[0] >= 1<<3 && rest[0] < 0x80 && rest[0]&7 == byte(lengthDelimited) && m.err == nil {
		length, at := int(rest[1]), 2
		if length >= 0x80 {
			length, at = length&0x7F|int(rest[2])<<7, 3
		}
		if (at == 2 || rest[2] < 0x80) && length <= len(rest)-at {
			m.num, m.typ, m.data = int32(rest[0]>>3), lengthDelimited, rest[at:at+length:at+length]
			m.i += at + length
			return true
		}
	}
	return m.nextOther()
}

// nextOther is Next for any field.
func (m *Message) nextOther() bool {
	if m.err != nil || m.i >= len(m.b) {
		return false
	}
	tag := m.uvarint()
	m.num, m.typ, m.data = int32(tag>>3), wireType(tag&7), nil
	switch {
	case m.err != nil:
	case m.num <= 0 || m.typ == groupEnd:
		m.err = errProtoTag
	case m.typ == groupStart:
		m.group()
	default:
		m.payload(m.typ)
	}
	return m.err == nil
}

func (m *Message) payload(typ wireType) {
	switch typ {
	case varint:
		m.n = m.uvarint()
	case fixed64:
		m.take(8)
	case fixed32:
		m.take(4)
	case lengthDelimited:
		if length := m.uvarint(); m.err == nil {
			m.data = m.take(length)
		}
	default:
		m.err = errProtoTag
	}
}

// group passes a group whose start tag has been read. What is in it does not matter, field numbers
// included.
func (m *Message) group() {
	for depth := 1; depth > 0 && m.err == nil; {
		switch typ := wireType(m.uvarint() & 7); {
		case m.err != nil:
		case typ == groupStart:
			depth++
		case typ == groupEnd:
			depth--
		default:
			m.payload(typ)
		}
	}
	m.data = nil
}

func (m *Message) take(n uint64) []byte {
	rest := m.b[m.i:]
	if n > uint64(len(rest)) {
		if !m.partial {
			m.err = errProtoCut
			return nil
		}
		n = uint64(len(rest))
	}
	m.i += int(n)
	return rest[:n:n]
}

func (m *Message) uvarint() (v uint64) {
	for shift := 0; shift < 64; shift += 7 {
		if m.i >= len(m.b) {
			m.err = errProtoCutVarint
			return 0
		}
		c := m.b[m.i]
		m.i++
		v |= uint64(c&0x7F) << shift
		if c < 0x80 {
			return v
		}
	}
	m.err = errProtoVarint
	return 0
}

// Err returns why Next did not come to the end, or what was wrong with the type of a field.
func (m *Message) Err() error { return m.err }

// Number returns the number of the field.
func (m *Message) Number() int32 { return m.num }

// Span returns where the field is in the message, with its tag. Before the first Next it is the
// empty beginning, and behind the last one the empty end. After an error it ends at the fault.
func (m *Message) Span() (from, to int) { return m.from, m.i }

// Within returns the walk of the message that the field is. Its spans are those in this message.
// The field must be length-delimited, otherwise the walk begins with the error that says so.
func (m *Message) Within() Message {
	m.must(lengthDelimited)
	at := m.dataAt()
	return Message{b: m.b[:m.i], from: at, i: at, err: m.err}
}

// Data returns the data of a field that must be length-delimited, lent by the message. Otherwise
// Err says so.
func (m *Message) Data() []byte {
	m.must(lengthDelimited)
	return m.data
}

// dataAt is where data begins in the message.
func (m *Message) dataAt() int { return m.i - len(m.data) }

// Varint returns the value of a field that must be a varint. Otherwise Err says so.
func (m *Message) Varint() uint64 {
	m.must(varint)
	return m.n
}

// Fixed returns the value of a field that must have 8 bytes, or 4 if bits is 32. Otherwise Err says
// so.
func (m *Message) Fixed(bits int) uint64 {
	if bits == 32 {
		if m.must(fixed32) {
			return uint64(binary.LittleEndian.Uint32(m.b[m.i-4:]))
		}
	} else if m.must(fixed64) {
		return binary.LittleEndian.Uint64(m.b[m.i-8:])
	}
	return 0
}

// must notes an error if the field is of another type.
func (m *Message) must(typ wireType) bool {
	if m.typ != typ && m.err == nil {
		m.err = errProtoType
	}
	return m.typ == typ
}
