package pack

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"
)

// Record is an immutable view of a record. It stays valid without any lock, also after the record
// is dropped or moved, and keeps the bytes in memory that it needs. The zero Record is that of an
// empty object without a head.
type Record struct {
	own, base []byte // they begin with the record and with its base, and may go on behind them
	aids      *aids
}

// ErrDamaged says that the bytes of a record cannot be decoded.
var ErrDamaged = errors.New("pack: damaged record")

// Head returns the bytes that were stored uncompressed. They must not be changed.
func (r Record) Head() []byte {
	if len(r.own) == 0 {
		return nil
	}
	h, start := parse(r.own)
	return r.own[start : start+h.head : start+h.head]
}

// Append appends the object to dst. Its error is ErrDamaged.
func (r Record) Append(dst []byte) ([]byte, error) {
	if len(r.own) == 0 {
		return dst, nil
	}
	h, _ := parse(r.own)
	if h.form == raw && h.code == 0 {
		return append(dst, h.payloadOf(r.own)...), nil
	}
	s := readers.Get().(*reader)
	defer readers.Put(s)
	dict, err := s.dictionary(&r, &h)
	if err != nil {
		return dst, err
	}
	return s.append(dst, r.own, &h, dict, r.aids)
}

// reader is what decoding needs. It keeps the last base, because siblings are often read one after
// the other.
type reader struct {
	coded []byte
	base  []byte // decoded
	of    *byte  // the first byte of the record that base was decoded from; it keeps the record from being freed
	dict  *s2.Dict
}

var readers = sync.Pool{New: func() any { return new(reader) }}

// dictionary returns the dictionary of a record, or nil if it needs none.
func (s *reader) dictionary(r *Record, h *header) (*s2.Dict, error) {
	switch h.form {
	case againstRoot:
		return r.aids.roots[h.root], nil
	case againstBase:
		return s.decodedBase(r)
	}
	return nil, nil
}

func (s *reader) decodedBase(r *Record) (*s2.Dict, error) {
	if s.of == &r.base[0] {
		return s.dict, nil
	}
	h, _ := parse(r.base)
	if h.form == againstBase {
		return nil, fmt.Errorf("%w: its base has a base", ErrDamaged)
	}
	dict, err := s.dictionary(r, &h)
	if err != nil {
		return nil, err
	}
	s.of = nil
	if s.base, err = s.append(s.base[:0], r.base, &h, dict, r.aids); err != nil {
		return nil, err
	}
	s.base = slices.Grow(s.base, dictSpare)
	if s.dict = dictionary(s.base); s.dict == nil {
		return nil, fmt.Errorf("%w: its base has %d bytes", ErrDamaged, len(s.base))
	}
	s.of = &r.base[0]
	return s.dict, nil
}

// append appends what a record is decoded to.
func (s *reader) append(dst, record []byte, h *header, dict *s2.Dict, with *aids) ([]byte, error) {
	b := h.payloadOf(record)
	if h.code != 0 {
		// Each byte takes a bit at least, so this is room enough.
		n := min(8*len(b), maxCoded)
		s.coded = slices.Grow(s.coded[:0], n)
		var err error
		if b, err = with.decoders[h.code].Decompress1X(s.coded[:0:n], b); err != nil {
			return dst, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	if h.form == raw {
		return append(dst, b...), nil
	}
	n, err := s2.DecodedLen(b)
	if err != nil {
		return dst, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if n > maxLength(len(b)) {
		return dst, fmt.Errorf("%w: its %d bytes claim to be %d", ErrDamaged, len(b), n)
	}
	dst = slices.Grow(dst, n)
	at := len(dst)
	// The capacity ends with the object: s2 must not write beyond it.
	if dict != nil {
		_, err = dict.Decode(dst[at:at:at+n], b)
	} else {
		_, err = s2.Decode(dst[at:at:at+n], b)
	}
	if err != nil {
		return dst, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return dst[:at+n], nil
}
