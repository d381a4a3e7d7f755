package informertest

import (
	"compress/gzip"
	"net/http"
	"strings"
	"sync"
)

// gzipLevel costs the least time.
const gzipLevel = 1

// zipper compresses an answer. A list is one member of the gzip format. A watch has one for all
// that is sent at a time.
type zipper struct {
	w http.ResponseWriter
	// member is nil between two members.
	member *gzip.Writer
	spoils
}

// newZipper begins a compressed answer: its head is not written yet.
func newZipper(w http.ResponseWriter, s spoils) *zipper {
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Add("Vary", "Accept-Encoding")
	return &zipper{w: w, spoils: s}
}

func (z *zipper) Write(p []byte) (int, error) {
	if z.member == nil {
		z.member = zippers.Get().(*gzip.Writer)
		z.member.Reset(z.w)
	}
	if z.corrupt && z.left < len(p) {
		if _, err := z.member.Write(p[:z.left]); err != nil {
			return 0, err
		}
		if err := z.breakOff(noBlock); err != nil {
			return 0, err
		}
		panic(endedCleanly{})
	}
	z.left -= len(p)
	return z.member.Write(p)
}

// end ends the member, if one was begun.
func (z *zipper) end() (err error) {
	if z.member == nil {
		return nil
	}
	defer z.release()
	if z.wrong {
		return z.breakOff(wrongEnd)
	}
	return z.member.Close()
}

// breakOff ends the block of compressed data that was begun, and writes what is to follow in place
// of the next one.
func (z *zipper) breakOff(next []byte) error {
	if err := z.member.Flush(); err != nil {
		return err
	}
	_, err := z.w.Write(next)
	return err
}

// release lets go of the member.
func (z *zipper) release() {
	if z.member != nil {
		z.member.Reset(nil) // it must not keep the response alive in the pool
		zippers.Put(z.member)
		z.member = nil
	}
}

var zippers = sync.Pool{New: func() any {
	zip, err := gzip.NewWriterLevel(nil, gzipLevel)
	if err != nil {
		panic(err) // it is for levels that do not exist
	}
	return zip
}}

// spoils are what faults do to compressed bytes.
type spoils struct {
	corrupt bool
	left    int  // the bytes of content that pass before the corruption
	wrong   bool // the checksum and the length of a member
}

// The bytes that spoil a compressed answer. They follow one of its blocks.
var (
	// noBlock begins a block of the one type that does not exist.
	noBlock = []byte{0b111}
	// wrongEnd is the last block, an empty one, and a checksum and length of zero.
	wrongEnd = []byte{1, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0}
)

// spoils finds what faults do to the compressed bytes of its answer.
func (x *exchange) spoils() (s spoils) {
	var e Effect
	if e, s.corrupt = x.find(effectCorrupt); s.corrupt {
		s.left = e.n
	}
	s.wrong = x.has(effectWrongChecksum)
	return s
}

// acceptsGzip reads the header as a kube-apiserver does: a weight is not understood.
func acceptsGzip(req *http.Request) bool {
	for token := range strings.SplitSeq(req.Header.Get("Accept-Encoding"), ",") {
		if strings.TrimSpace(token) == "gzip" {
			return true
		}
	}
	return false
}
