package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
)

// acceptGzip is the Accept-Encoding of a list. Because it is said explicitly, net/http leaves the
// answer compressed: its own gzip takes more CPU than the one here.
const acceptGzip = "gzip"

// decompress replaces the body of an answer to e with one that decompresses it, if it came
// compressed. It is for lists. A watch must not keep the memory of a decompressor while it waits,
// and no kube-apiserver compresses one.
func decompress(response *http.Response, e *exchange) {
	encoding := response.Header.Get("Content-Encoding")
	if encoding == "" || strings.EqualFold(encoding, "identity") {
		return
	}
	if !strings.EqualFold(encoding, acceptGzip) || !e.unzips {
		response.Body = &strangeBody{response.Body, encoding}
		return
	}
	response.Body = &zippedBody{body: response.Body, arrived: e.Arrived}
	response.Header.Del("Content-Encoding")
	response.Header.Del("Content-Length")
	response.ContentLength, response.Uncompressed = -1, true
	e.zipped = true
}

// strangeBody is a body in an encoding that was not asked for.
type strangeBody struct {
	io.ReadCloser
	encoding string
}

func (b *strangeBody) Read([]byte) (int, error) {
	return 0, fmt.Errorf("the answer has the Content-Encoding %q, which was not asked for", b.encoding)
}

// zippedBody decompresses a body. It has an unzipper from its first read until its end, a failure,
// or Close, which may be called while it is read.
type zippedBody struct {
	body    io.ReadCloser
	arrived func(bytes int)
	unzip   *unzipper
	// err ended the body.
	err   error
	state atomic.Int32
}

// The states of a zippedBody. The unzipper belongs to whoever has left atRest.
const (
	atRest int32 = iota
	inRead
	closed
)

func (b *zippedBody) Read(p []byte) (n int, err error) {
	if !b.state.CompareAndSwap(atRest, inRead) {
		return 0, http.ErrBodyReadAfterClose
	}
	if b.err == nil {
		n, b.err = b.read(p)
	}
	err = b.err
	if err != nil {
		b.release()
	}
	if !b.state.CompareAndSwap(inRead, atRest) {
		b.release()
	}
	return n, err
}

func (b *zippedBody) read(p []byte) (n int, err error) {
	if b.unzip == nil {
		b.unzip = unzippers.Get().(*unzipper)
		b.unzip.in.Reset(arriving{b})
		err = b.unzip.out.Reset(b.unzip.in)
	}
	if err == nil {
		n, err = b.unzip.out.Read(p)
	}
	return n, nameGzip(err)
}

// nameGzip tells an error of the compressed data from those of the connection, which it returns as
// they are.
func nameGzip(err error) error {
	var corrupt flate.CorruptInputError
	if errors.As(err, &corrupt) || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		return fmt.Errorf("decompressing it (Content-Encoding gzip): %w", err)
	}
	return err
}

// Close ends a Read that is under way, because it closes the connection's body first.
func (b *zippedBody) Close() error {
	err := b.body.Close()
	if b.state.Swap(closed) == atRest {
		b.release()
	}
	return err
}

// release gives the unzipper back.
func (b *zippedBody) release() {
	if b.unzip != nil {
		b.unzip.in.Reset(nil) // it must not keep the body
		unzippers.Put(b.unzip)
		b.unzip = nil
	}
}

// arriving is the compressed body. It says how many bytes have come.
type arriving struct{ *zippedBody }

func (a arriving) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	if n > 0 && a.arrived != nil {
		a.arrived(n)
	}
	return n, err
}

// unzipper has the memory of one decompression, about 64 KiB. The bufio.Reader is the one that
// flate knows, and which it reads without a call for each byte.
type unzipper struct {
	in  *bufio.Reader
	out *gzip.Reader
}

// zippedBuffer is how much is read at once of what is compressed.
const zippedBuffer = 16 << 10

// unzippers are those that no body has. The garbage collector takes them after a while, so that
// idle informers keep none.
var unzippers = sync.Pool{New: func() any {
	return &unzipper{bufio.NewReaderSize(nil, zippedBuffer), new(gzip.Reader)}
}}
