package prune

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/rvinformer/informer/internal/leaf/wire"
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
// leads into is not looked at. On an error, a *wire.MalformedError, dst is returned as it was.
func (t *Type) AppendProtobuf(dst, message []byte) ([]byte, error) {
	if t.rule.within == nil {
		return append(dst, message...), nil
	}
	object := wire.NewMessage(message)
	out, err := t.rule.within.appendMessage(slices.Grow(dst, len(message)), message, &object)
	if err != nil {
		return dst, err
	}
	return out, nil
}

// appendMessage appends the fields of a message, or of an entry of a map, that stay. The message is
// a part of object.
func (t *table) appendMessage(dst, object []byte, m *wire.Message) ([]byte, error) {
	_, done := m.Span()
	for m.Next() {
		r := t.byNumber(m.Number())
		if r.within != nil && r.within.entries != nil {
			key, err := mapKey(m)
			if err != nil {
				return dst, err
			}
			r = r.within.byKey(key)
		}
		if r.stays() {
			continue
		}
		from, to := m.Span()
		dst = append(dst, object[done:from]...)
		if done = to; !r.goes {
			var err error
			if dst, err = r.within.appendField(dst, object, m); err != nil {
				return dst, err
			}
		}
	}
	if err := m.Err(); err != nil {
		return dst, malformed(m, "")
	}
	_, end := m.Span()
	return append(dst, object[done:end]...), nil
}

// appendField appends the field that m is at, which is a message itself.
func (t *table) appendField(dst, object []byte, m *wire.Message) ([]byte, error) {
	from, to := m.Span()
	inner := m.Within()
	at, _ := inner.Span()
	head := len(dst)
	dst = append(dst, object[from:at]...)
	body := len(dst)
	dst, err := t.appendMessage(dst, object, &inner)
	if n := len(dst) - body; err == nil && n < to-at {
		dst = relength(dst, head, body, m.Number())
	}
	return dst, err
}

// mapKey returns the key of the entry of a map that m is at: the last one if there are more, empty
// if there is none.
func mapKey(m *wire.Message) (key []byte, err error) {
	entry := m.Within()
	for entry.Next() {
		if entry.Number() == entryKey {
			key = entry.Data()
		}
	}
	switch {
	case m.Err() != nil:
		return nil, malformed(m, "")
	case entry.Err() != nil:
		return nil, malformed(&entry, "in an entry of a map: ")
	default:
		return key, nil
	}
}

func malformed(m *wire.Message, within string) error {
	_, at := m.Span()
	return fmt.Errorf("prune: %w", &wire.MalformedError{Offset: at, Detail: within + m.Err().Error()})
}

// relength writes a new tag and length of a field, whose old ones are
// dst[head:body]. They take no more bytes.
func relength(dst []byte, head, body int, number int32) []byte {
	var prefix [2 * binary.MaxVarintLen64]byte
	p := binary.AppendUvarint(prefix[:0], uint64(number)<<3|2)
	return slices.Replace(dst, head, body, binary.AppendUvarint(p, uint64(len(dst)-body))...)
}
