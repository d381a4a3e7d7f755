package informertest

import (
	"bufio"
	"net/http"
)

const (
	// writeBuffer is how much of a response is gathered before it goes to the socket.
	writeBuffer = 32 << 10
	// gzipThreshold is the size in bytes that a response must exceed to be compressed, where
	// Options.GzipAbove says nothing else.
	gzipThreshold = 128 << 10
)

// body is the answer to a list, a get or a write. Whether it is compressed shows at its first
// write: that is the whole of it, or more than the threshold.
type body struct {
	w           http.ResponseWriter
	code        int
	contentType string // "" for none
	begun       bool

	mayZip bool    // the client accepts gzip
	above  int     // the size that it must exceed to be compressed
	zip    *zipper // nil: not compressed

	// spoils has what faults do to the compressed bytes.
	spoils
}

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
		err = b.zip.end()
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
	if b.zip == nil {
		return b.w.Write(p)
	}
	return b.zip.Write(p)
}

func (b *body) begin(large bool) {
	b.begun = true
	setContentType(b.w.Header(), b.contentType)
	if b.mayZip && large {
		b.zip = newZipper(b.w, b.spoils)
	}
	b.w.WriteHeader(b.code)
}

func (b *body) release() {
	if b.zip != nil {
		b.zip.release()
	}
}
