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

// acceptGzip is the Accept-Encoding of a list or a watch. Because it is said explicitly, net/http
// leaves the answer compressed: its own gzip takes more CPU than the one here, and keeps the memory
// of a decompressor for as long as a watch waits.
const acceptGzip = "gzip"

// decompress replaces the body of an answer to e with one that decompresses it, if it came
// compressed.
func decompress(response *http.Response, e *exchange) {
	e.zipped = nil // that of an answer before, which asked to try again elsewhere
	encoding := response.Header.Get("Content-Encoding")
	if encoding == "" || strings.EqualFold(encoding, "identity") {
		return
	}
	if !strings.EqualFold(encoding, acceptGzip) || !e.unzips {
		response.Body = &strangeBody{response.Body, encoding}
		return
	}
	e.zipped = &Zipped{Body: response.Body, arrived: e.Arrived}
	response.Body = e.zipped
	response.Header.Del("Content-Encoding")
	response.Header.Del("Content-Length")
	response.ContentLength, response.Uncompressed = -1, true
}

// strangeBody is a body in an encoding that was not asked for.
type strangeBody struct {
	io.ReadCloser
	encoding string
}

func (b *strangeBody) Read([]byte) (int, error) {
	return 0, fmt.Errorf("the answer has the Content-Encoding %q, which was not asked for", b.encoding)
}

// Zipped decompresses a body, member by member of the gzip format. A kube-apiserver from 1.37 on
// compresses watch-lists, and makes a member for each piece that it sends: for the initial events,
// and then for each event. So Zipped has an unzipper from the first byte of a member until its end,
// and goes on with it if the next member has come by then. A watch that waits for a member has
// none. The unzipper is also given back after a failure, and by Close, which may be called during a
// read.
type Zipped struct {
	// Body is what comes over the connection.
	Body    io.ReadCloser
	arrived func(bytes int)
	unzip   *unzipper
	// err ended the body.
	err error
	// unread is that of Unread. It belongs to the reader.
	unread int
	state  atomic.Int32
}

// The states of a Zipped. The unzipper belongs to whoever has left atRest.
const (
	atRest int32 = iota
	inRead
	closed
)

// FirstBytes is the most that a read takes of a member before it has an unzipper.
const FirstBytes = 64

// Read waits, and decompresses.
func (b *Zipped) Read(p []byte) (n int, err error) {
	if b.BeginWait() {
		n, err = b.Body.Read(p[:min(len(p), FirstBytes)])
		return b.GoOn(p, n, err)
	}
	if !b.state.CompareAndSwap(atRest, inRead) {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err = b.read(p)
	return b.end(n, err)
}

// BeginWait begins a read that has to wait for the first byte of a member, and reports
// whether there is one to wait for. An idle watch waits there, with little on its stack: its reader
// itself reads FirstBytes from Body at most, into the memory that it reads to, and then calls GoOn.
//
//go:noinline
func (b *Zipped) BeginWait() bool {
	if !b.state.CompareAndSwap(atRest, inRead) {
		return false
	}
	if b.unzip != nil && b.unzip.ended && b.unzip.unread() == 0 {
		b.release()
	}
	if b.err == nil && b.unzip == nil {
		return true
	}
	b.leave()
	return false
}

// GoOn ends a read that BeginWait has begun, when n compressed bytes have come in p. An error that
// came with some comes again with the next read.
//
//go:noinline
func (b *Zipped) GoOn(p []byte, n int, err error) (int, error) {
	if n > 0 {
		b.received(n)
		b.unzip = unzippers.Get().(*unzipper)
		b.unzip.take(b, p[:n])
		n, err = b.read(p)
	}
	return b.end(n, err)
}

// Unread is how many compressed bytes had come behind what the last read has returned.
func (b *Zipped) Unread() int { return b.unread }

// read reads from the members whose first byte has come. It returns nothing, and no error, if
// they are empty.
func (b *Zipped) read(p []byte) (n int, err error) {
	for err = b.err; n == 0 && err == nil && len(p) > 0; {
		if b.unzip.ended {
			if b.unzip.unread() == 0 {
				break
			}
			err = b.unzip.begin()
		}
		if err == nil {
			n, err = b.unzip.out.Read(p)
		}
		if b.unzip.ended = err == io.EOF; b.unzip.ended {
			err = nil
		}
	}
	return n, nameGzip(err)
}

// end ends a read.
func (b *Zipped) end(n int, err error) (int, error) {
	b.err, b.unread = err, b.unzip.unread()
	if err != nil {
		b.release()
	}
	b.leave()
	return n, err
}

// leave is for a reader that may have been closed meanwhile.
func (b *Zipped) leave() {
	if !b.state.CompareAndSwap(inRead, atRest) {
		b.release()
	}
}

// received says how many compressed bytes have come.
func (b *Zipped) received(n int) {
	if n > 0 && b.arrived != nil {
		b.arrived(n)
	}
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
func (b *Zipped) Close() error {
	err := b.Body.Close()
	if b.state.Swap(closed) == atRest {
		b.release()
	}
	return err
}

// release gives the unzipper back.
func (b *Zipped) release() {
	if b.unzip != nil {
		b.unzip.take(nil, nil) // it must not keep the body
		unzippers.Put(b.unzip)
		b.unzip = nil
	}
}

// unzipper has the memory of one decompression, about 64 KiB. It reads what is compressed: first
// the bytes that its body has waited for, then what the body receives.
type unzipper struct {
	body  *Zipped
	first []byte
	// memory is that of first.
	memory [FirstBytes]byte
	// in is the bufio.Reader that flate knows, and which it reads without a call for each byte.
	in  *bufio.Reader
	out *gzip.Reader
	// ended tells that out is between two members.
	ended bool
}

// zippedBuffer is how many compressed bytes are read at once.
const zippedBuffer = 16 << 10

// unzippers are those that no body has. The garbage collector takes them after a while, so that
// idle informers keep none.
var unzippers = sync.Pool{New: func() any {
	return &unzipper{in: bufio.NewReaderSize(nil, zippedBuffer), out: new(gzip.Reader)}
}}

// take has the unzipper read a body whose first bytes have come. It is where a member begins.
func (u *unzipper) take(body *Zipped, first []byte) {
	u.body, u.ended = body, true
	u.first = append(u.memory[:0], first...)
	u.in.Reset(u)
}

// begin begins a member.
func (u *unzipper) begin() error {
	u.ended = false
	err := u.out.Reset(u.in)
	u.out.Multistream(false)
	if err == io.EOF { // within a name of the header
		err = io.ErrUnexpectedEOF
	}
	return err
}

// unread is how many compressed bytes have come and are not decompressed.
func (u *unzipper) unread() int {
	if u == nil {
		return 0
	}
	return len(u.first) + u.in.Buffered()
}

// Read reads what is compressed.
func (u *unzipper) Read(p []byte) (n int, err error) {
	if len(u.first) == 0 {
		n, err = u.body.Body.Read(p)
		u.body.received(n)
		return n, err
	}
	n = copy(p, u.first)
	u.first = u.first[n:]
	return n, nil
}
