package wire

// Message walks the fields of a protobuf message that is held whole, as the generated Unmarshal
// methods read it.
//
//	m := wire.NewMessage(message)
//	for m.Next() {
//		if m.Number() == 3 {
//			use(m.Data())
//		}
//	}
//	return m.Err()
type Message struct {
	f    fields
	from int
}

// NewMessage returns the walk of a message, before its first field. The message must not be
// changed.
func NewMessage(message []byte) Message { return Message{f: fields{b: message}} }

// Next goes to the next field. It is false at the end and on an error.
func (m *Message) Next() bool {
	m.from = m.f.i
	return m.f.next()
}

// Err returns why Next did not come to the end, or what was wrong with the type of a field.
func (m *Message) Err() error { return m.f.err }

// Number returns the number of the field.
func (m *Message) Number() int32 { return m.f.num }

// Span returns where the field is in the message, with its tag. Before the first Next it is the
// empty beginning, and behind the last one the empty end. After an error it ends at the fault.
func (m *Message) Span() (from, to int) { return m.from, m.f.i }

// Within returns the walk of the message that the field is. Its spans are those in this message. The
// field must be length-delimited, otherwise the walk begins with the error that says so.
func (m *Message) Within() Message {
	m.f.bytes()
	at := m.f.dataAt()
	return Message{f: fields{b: m.f.b[:m.f.i], i: at, err: m.f.err}, from: at}
}

// Data returns the data of a field that must be length-delimited, lent by the message. Otherwise
// Err says so.
func (m *Message) Data() []byte { return m.f.bytes() }

// Varint returns the value of a field that must be a varint. Otherwise Err says so.
func (m *Message) Varint() uint64 {
	if m.f.typ != varint && m.f.err == nil {
		m.f.err = errProtoType
	}
	return m.f.n
}

// Fixed returns the value of a field that must have 8 bytes, or 4 if bits is 32. Otherwise Err says
// so.
func (m *Message) Fixed(bits int) uint64 {
	typ := fixed64
	if bits == 32 {
		typ = fixed32
	}
	if m.f.typ != typ {
		if m.f.err == nil {
			m.f.err = errProtoType
		}
		return 0
	}
	var v uint64
	for i := range bits / 8 {
		v |= uint64(m.f.b[m.f.i-bits/8+i]) << (8 * i)
	}
	return v
}
