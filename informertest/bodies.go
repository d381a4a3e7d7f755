package informertest

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// readBodies is the transport of clients of a server in memory. A body that is closed while it is
// read ends its request first, and is closed when the Read has returned.
//
// From Go 1.27 on, net/http reads what is left of a body of HTTP/1 that is closed early, so that its
// connection can be used again. If a Read is under way, that waits for a mutex. A testing/synctest
// bubble does not count this as waiting, so that its time would stand still.
type readBodies struct{ http.RoundTripper }

// WrappedRoundTripper is for client-go, which looks for an *http.Transport in it.
func (t readBodies) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

func (t readBodies) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(request.Context())
	response, err := t.RoundTripper.RoundTrip(request.WithContext(ctx))
	if err != nil || response == nil {
		cancel()
		return response, err
	}
	response.Body = &readBody{ReadCloser: response.Body, cancel: cancel}
	return response, nil
}

// readBody is the body of an answer.
type readBody struct {
	io.ReadCloser
	// cancel ends the request.
	cancel context.CancelFunc
	// reading is held while a Read is under way.
	reading sync.Mutex
}

func (b *readBody) Read(p []byte) (int, error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	return b.ReadCloser.Read(p)
}

func (b *readBody) Close() error {
	if !b.reading.TryLock() {
		b.cancel()
		b.reading.Lock()
	}
	defer b.reading.Unlock()
	defer b.cancel()
	return b.ReadCloser.Close()
}
