package informertest

import (
	"bufio"
	"compress/gzip"
	"net/http"
	"strings"
	"sync"
)

const (
	// writeBuffer is how much of a response is gathered before it goes to the socket.
	writeBuffer = 32 << 10
	// gzipThreshold is the size in bytes that a response must exceed to be compressed, where
	// Options.GzipAbove says nothing else.
	gzipThreshold = 128 << 10
	// gzipLevel costs the least time.
	gzipLevel = 1
)

// body is the answer to a list, a get or a write. Whether it is compressed shows at its first
// write: that is the whole of it, or more than the threshold.
type body struct {
	w           http.ResponseWriter
	code        int
	contentType string
	begun       bool

	mayZip bool         // the client accepts gzip
	above  int          // the size that it must exceed to be compressed
	zip    *gzip.Writer // nil: not compressed

	// spoils has what faults do to the compressed bytes.
	spoils
}

// spoils are what faults do to compressed bytes.
type spoils struct {
	corrupt bool
	left    int  // of a body to be corrupted: the bytes of content that pass before that
	wrong   bool // its end
}

// What follows a block of compressed data to spoil it.
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

var zippers = sync.Pool{New: func() any {
	zip, err := gzip.NewWriterLevel(nil, gzipLevel)
	if err != nil {
		panic(err) // it is for levels that do not exist
	}
	return zip
}}

// respond answers with what write writes. Its error means that nothing was written yet. Later, when
// the status is on its way, only a broken connection tells the client that the answer is not whole:
// then it panics.
func respond(w http.ResponseWriter, req *http.Request, code int, contentType string, write func(out *bufio.Writer) error) error {
	b := &body{w: w, code: code, contentType: contentType, mayZip: acceptsGzip(req), above: gzipThreshold}
	if x, ok := w.(*exchange); ok {
		b.above, b.spoils = x.gzipAbove, x.spoils()
	}
	defer b.release()
	size := writeBuffer
	if b.mayZip {
		size = max(size, b.above+1)
	}
	out := bufio.NewWriterSize(b, size)
	err := write(out)
	if err == nil {
		err = out.Flush()
	}
	if err == nil && b.zip != nil {
		err = b.endZip()
	}
	if err != nil && b.begun {
		panic(http.ErrAbortHandler)
	}
	return err
}

func (b *body) Write(p []byte) (int, error) {
	if !b.begun {
		b.begin(len(p) > b.above)
	}
	switch {
	case b.zip == nil:
		return b.w.Write(p)
	case b.corrupt && b.left < len(p):
		if _, err := b.zip.Write(p[:b.left]); err != nil {
			return 0, err
		}
		if err := b.breakZip(noBlock); err != nil {
			return 0, err
		}
		panic(endedCleanly{})
	}
	b.left -= len(p)
	return b.zip.Write(p)
}

// endZip ends a compressed body.
func (b *body) endZip() error {
	if b.wrong {
		return b.breakZip(wrongEnd)
	}
	return b.zip.Close()
}

// breakZip ends the block of compressed data that was begun, and writes what is to follow in place
// of the next one.
func (b *body) breakZip(next []byte) error {
	if err := b.zip.Flush(); err != nil {
		return err
	}
	_, err := b.w.Write(next)
	return err
}

func (b *body) begin(large bool) {
	b.begun = true
	header := b.w.Header()
	header.Set("Content-Type", b.contentType)
	if b.mayZip && large {
		header.Set("Content-Encoding", "gzip")
		header.Add("Vary", "Accept-Encoding")
		b.zip = zippers.Get().(*gzip.Writer)
		b.zip.Reset(b.w)
	}
	b.w.WriteHeader(b.code)
}

func (b *body) release() {
	if b.zip != nil {
		// It must not keep the response alive in the pool.
		b.zip.Reset(nil)
		zippers.Put(b.zip)
	}
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
