package prune

// How a protobuf field is delimited.
const (
	varint = iota
	fixed64
	lengthDelimited
	groupStart
	groupEnd
	fixed32
)

// protoFields walks a protobuf message, from pos to the end of b. It takes what
// the generated Unmarshal methods take, as its sibling in package wire does,
// which cannot be had from here.
type protoFields struct {
	b   []byte
	pos int // behind the field
	err error

	within string // of errors: what the message is

	start int // of the field
	num   int32
	typ   uint8
	size  int // of its data, if it is length-delimited
}

// next goes to the next field. At the end, and on an error (err), it is false.
func (f *protoFields) next() bool {
	if f.err != nil || f.pos >= len(f.b) {
		return false
	}
	f.start = f.pos
	tag := f.uvarint()
	f.num, f.typ, f.size = int32(tag>>3), uint8(tag&7), 0
	switch {
	case f.err != nil:
	case f.num <= 0:
		f.broken("an illegal tag")
	case f.typ == groupStart:
		f.group()
	default:
		f.payload(f.typ)
	}
	return f.err == nil
}

// broken keeps the first error.
func (f *protoFields) broken(detail string) {
	if f.err == nil {
		f.err = &MalformedError{Offset: f.pos, Detail: f.within + detail}
	}
}

func (f *protoFields) payload(typ uint8) {
	switch typ {
	case varint:
		f.uvarint()
	case fixed64:
		f.pass(8)
	case fixed32:
		f.pass(4)
	case lengthDelimited:
		n := f.uvarint()
		f.pass(n)
		f.size = int(n)
	default:
		f.broken("an illegal tag")
	}
}

// group passes a group whose start tag has been read. What is in it does not
// matter, field numbers included.
func (f *protoFields) group() {
	for depth := 1; depth > 0 && f.err == nil; {
		switch typ := uint8(f.uvarint() & 7); {
		case f.err != nil:
		case typ == groupStart:
			depth++
		case typ == groupEnd:
			depth--
		default:
			f.payload(typ)
		}
	}
}

func (f *protoFields) pass(n uint64) {
	if n > uint64(len(f.b)-f.pos) {
		f.broken("a field runs over the end of its message")
		return
	}
	f.pos += int(n)
}

func (f *protoFields) uvarint() (v uint64) {
	for shift := 0; shift < 64; shift += 7 {
		if f.pos >= len(f.b) {
			f.broken("cut within a varint")
			return 0
		}
		c := f.b[f.pos]
		f.pos++
		if v |= uint64(c&0x7F) << shift; c < 0x80 {
			return v
		}
	}
	f.broken("a varint of more than 10 bytes")
	return 0
}

// dataAt is where the data of the field begins, which must be length-delimited.
func (f *protoFields) dataAt() int {
	if f.typ != lengthDelimited {
		f.broken("a field of the wrong wire type")
	}
	return f.pos - f.size
}

// entryKey is the key of the entry of a map that the field is: the last one if
// there are more, empty if there is none.
func (f *protoFields) entryKey() (key []byte) {
	entry := protoFields{b: f.b[:f.pos], pos: f.dataAt(), within: "in an entry of a map: "}
	for entry.next() {
		if entry.num == entryKey {
			key = entry.b[entry.dataAt():entry.pos]
		}
	}
	if f.err == nil {
		f.err = entry.err
	}
	return key
}
