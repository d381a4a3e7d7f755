package informertest

import (
	"bufio"
	"net/http"
)

// writeBuffer is how much of a response is gathered before it goes to the socket.
const writeBuffer = 32 << 10

// body is the answer to a list, a get or a write.
type body struct {
	w           http.ResponseWriter
	code        int
	contentType string
	begun       bool
}

// respond answers with what write writes. Its error means that nothing was written yet. Later, when the status is on
// its way, only a broken connection tells the client that the answer is not whole: then it panics.
func respond(w http.ResponseWriter, code int, contentType string, write func(out *bufio.Writer) error) error {
	b := &body{w: w, code: code, contentType: contentType}
	out := bufio.NewWriterSize(b, writeBuffer)
	err := write(out)
	if err == nil {
		err = out.Flush()
	}
	if err != nil && b.begun {
		panic(http.ErrAbortHandler)
	}
	return err
}

func (b *body) Write(p []byte) (int, error) {
	if !b.begun {
		b.begin()
	}
	return b.w.Write(p)
}

func (b *body) begin() {
	b.begun = true
	b.w.Header().Set("Content-Type", b.contentType)
	b.w.WriteHeader(b.code)
}
