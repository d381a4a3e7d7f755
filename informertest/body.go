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
	// gzipThreshold is the size in bytes that a response must exceed to be compressed.
	gzipThreshold = 128 << 10
	// gzipLevel costs the least time.
	gzipLevel = 1
)

// body is the answer to a list, a get or a write. Whether it is compressed shows at its first write: that is the whole
// of it, or more than the threshold.
type body struct {
	w           http.ResponseWriter
	code        int
	contentType string
	begun       bool

	mayZip bool         // the client accepts gzip
	zip    *gzip.Writer // nil: not compressed
}

var zippers = sync.Pool{New: func() any {
	zip, err := gzip.NewWriterLevel(nil, gzipLevel)
	if err != nil {
		panic(err) // it is for levels that do not exist
	}
	return zip
}}

// respond answers with what write writes. Its error means that nothing was written yet. Later, when the status is on
// its way, only a broken connection tells the client that the answer is not whole: then it panics.
func respond(w http.ResponseWriter, req *http.Request, code int, contentType string, write func(out *bufio.Writer) error) error {
	b := &body{w: w, code: code, contentType: contentType, mayZip: acceptsGzip(req)}
	defer b.release()
	size := writeBuffer
	if b.mayZip {
		size = gzipThreshold + 1
	}
	out := bufio.NewWriterSize(b, size)
	err := write(out)
	if err == nil {
		err = out.Flush()
	}
	if err == nil && b.zip != nil {
		err = b.zip.Close()
	}
	if err != nil && b.begun {
		panic(http.ErrAbortHandler)
	}
	return err
}

func (b *body) Write(p []byte) (int, error) {
	if !b.begun {
		b.begin(len(p) > gzipThreshold)
	}
	if b.zip != nil {
		return b.zip.Write(p)
	}
	return b.w.Write(p)
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
