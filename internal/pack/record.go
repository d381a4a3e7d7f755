package pack

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/huff0"
	"github.com/klauspost/compress/s2"
)

// Record is an immutable view of a record. It stays valid without any lock, also after the record is dropped or moved, and keeps the
// bytes in memory that it needs. The zero Record is that of an empty object without a head.
type Record struct {
	head      []byte
	own, base layer
	root      *s2.Dict
	limit     int
}

// layer is one step of decoding.
type layer struct {
	payload []byte
	decoder *huff0.Decoder // nil if the payload is not coded
	form    form
}

// ErrDamaged says that the bytes of a record cannot be decoded.
var ErrDamaged = errors.New("pack: damaged record")

// Head returns the bytes that were stored uncompressed. They must not be changed.
func (r Record) Head() []byte { return r.head }

// Append appends the object to dst. Its error is ErrDamaged.
func (r Record) Append(dst []byte) ([]byte, error) {
	if r.own.form == raw && r.own.decoder == nil {
		return append(dst, r.own.payload...), nil
	}
	s := readers.Get().(*reader)
	defer readers.Put(s)
	dict := r.root
	if r.own.form == againstBase {
		var err error
		if dict, err = s.dictionary(&r); err != nil {
			return dst, err
		}
	}
	return s.append(dst, r.own, dict, r.limit)
}

// reader is what decoding needs. It keeps the last base, because siblings are often read one after the other.
type reader struct {
	coded []byte
	base  []byte // decoded
	of    *byte  // the first byte of the payload that base was decoded from; it keeps the payload from being freed
	dict  *s2.Dict
}

var readers = sync.Pool{New: func() any { return new(reader) }}

// dictionary returns r's base as a dictionary.
func (s *reader) dictionary(r *Record) (*s2.Dict, error) {
	if len(r.base.payload) == 0 || r.base.form == againstBase {
		return nil, fmt.Errorf("%w: its base is none", ErrDamaged)
	}
	first := &r.base.payload[0]
	if s.of == first {
		return s.dict, nil
	}
	s.of = nil
	var err error
	if s.base, err = s.append(s.base[:0], r.base, r.root, r.limit); err != nil {
		return nil, err
	}
	s.base = slices.Grow(s.base, dictSpare)
	if s.dict = dictionary(s.base); s.dict == nil {
		return nil, fmt.Errorf("%w: its base has %d bytes", ErrDamaged, len(s.base))
	}
	s.of = first
	return s.dict, nil
}

// append appends what l is decoded to. No object is longer than limit.
func (s *reader) append(dst []byte, l layer, dict *s2.Dict, limit int) ([]byte, error) {
	b := l.payload
	if l.decoder != nil {
		// Each byte takes a bit at least, so this is room enough.
		s.coded = slices.Grow(s.coded[:0], min(8*len(b), maxCoded))
		var err error
		if b, err = l.decoder.Decompress1X(s.coded[:0:min(8*len(b), maxCoded)], b); err != nil {
			return dst, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	if l.form == raw {
		return append(dst, b...), nil
	}
	if l.form == alone {
		dict = nil
	} else if dict == nil {
		return dst, fmt.Errorf("%w: no dictionary", ErrDamaged)
	}
	n, err := s2.DecodedLen(b)
	if err != nil {
		return dst, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if n > limit {
		return dst, fmt.Errorf("%w: it claims to be %d bytes, and none is longer than %d", ErrDamaged, n, limit)
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
