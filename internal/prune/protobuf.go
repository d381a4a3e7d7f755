package prune

import (
	"encoding/binary"
	"slices"
)

const (
	entryKey   = 1 // in an entry of a map
	entryValue = 2
)

// AppendProtobuf appends the protobuf message of one object, without the k8s
// envelope, to dst, without the fields that do not stay. What is left is as it was, byte for
// byte, but for the tag and the length of a field that has lost some of its own. dst must not
// overlap message. It allocates only to grow dst, to where all of message has room.
//
// The message must be of the type; if InProtobuf is false, the result is of no use. What no path
// leads into is not looked at. On an error, a *MalformedError, dst is returned as it was.
func (t *Type) AppendProtobuf(dst, message []byte) ([]byte, error) {
	if t.rule.within == nil {
		return append(dst, message...), nil
	}
	object := protoFields{b: message}
	out := t.rule.within.appendMessage(slices.Grow(dst, len(message)), &object)
	if object.err != nil {
		return dst, object.err
	}
	return out, nil
}

// appendMessage appends the fields of a message, or of an entry of a map, that stay.
func (t *table) appendMessage(dst []byte, message *protoFields) []byte {
	done := message.pos
	for message.next() {
		r := t.byNumber(message.num)
		if r.within != nil && r.within.entries != nil {
			r = r.within.byKey(message.entryKey())
		}
		if r.stays() {
			continue
		}
		dst = append(dst, message.b[done:message.start]...)
		if done = message.pos; !r.goes {
			dst = r.within.appendField(dst, message)
		}
	}
	return append(dst, message.b[done:]...)
}

// appendField appends the field that message is at, which is a message itself.
func (t *table) appendField(dst []byte, message *protoFields) []byte {
	inner := protoFields{b: message.b[:message.pos], pos: message.dataAt()}
	head, size := len(dst), message.pos-inner.pos
	dst = append(dst, message.b[message.start:inner.pos]...)
	body := len(dst)
	dst = t.appendMessage(dst, &inner)
	if message.err == nil {
		message.err = inner.err
	}
	if n := len(dst) - body; n < size {
		return relength(dst, head, body, message.num)
	}
	return dst
}

// relength writes a new tag and length of a field, whose old ones are
// dst[head:body]. They take no more bytes.
func relength(dst []byte, head, body int, number int32) []byte {
	var prefix [2 * binary.MaxVarintLen64]byte
	p := binary.AppendUvarint(prefix[:0], uint64(number)<<3|lengthDelimited)
	return slices.Replace(dst, head, body, binary.AppendUvarint(p, uint64(len(dst)-body))...)
}
