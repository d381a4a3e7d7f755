package wire

// FieldAt reads the field of a message at an offset, and returns where it ends; 0 if there is none,
// or a group. The tag has the number and the wire type. A varint has a value, and a
// length-delimited field has data.
//
// It is for messages that are decoded field by field: a Message has the field in memory, and
// FieldAt in registers, so that a pod takes a tenth less time. It is stricter than the generated
// code, which has to read what FieldAt does not.
func FieldAt(message []byte, i int) (tag, value uint64, data []byte, end int) {
	tag, i = uvarint(message, i)
	if number := tag >> 3; i == 0 || number == 0 || number > 1<<28 {
		return 0, 0, nil, 0
	}
	switch wireType(tag & 7) {
	case lengthDelimited:
		length, from := uvarint(message, i)
		if from == 0 || length > uint64(len(message)-from) {
			return 0, 0, nil, 0
		}
		end = from + int(length)
		return tag, 0, message[from:end:end], end
	case varint:
		value, end = uvarint(message, i)
		return tag, value, nil, end
	case fixed64:
		end = i + 8
	case fixed32:
		end = i + 4
	}
	if end > len(message) {
		end = 0
	}
	return tag, 0, nil, end
}

// RunOf returns how many fields with the same tag are at the beginning, which are
// length-delimited, and where they end.
func RunOf(tag uint64, fields []byte) (n, end int) {
	for ; ; n++ {
		t, i := uvarint(fields, end)
		if i == 0 || t != tag {
			return n, end
		}
		length, i := uvarint(fields, i)
		if i == 0 || length > uint64(len(fields)-i) {
			return n, end
		}
		end = i + int(length)
	}
}

// uvarint reads a varint at i, and returns where it ends; 0 if it is none.
func uvarint(b []byte, i int) (v uint64, end int) {
	if i < len(b) && b[i] < 0x80 {
		return uint64(b[i]), i + 1
	}
	return longUvarint(b, i)
}

func longUvarint(b []byte, i int) (v uint64, end int) {
	for shift := 0; shift < 64 && i < len(b); shift += 7 {
		c := b[i]
		i++
		v |= uint64(c&0x7F) << shift
		if c < 0x80 {
			return v, i
		}
	}
	return 0, 0
}
