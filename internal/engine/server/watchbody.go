package server

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// isWatch reports whether request is a watch.
func isWatch(request *http.Request) bool {
	watch, _ := strconv.ParseBool(request.URL.Query().Get("watch"))
	return watch
}

// watchBody is the answer to a watch that may be ended before the server ends it.
type watchBody struct {
	io.ReadCloser
	renewal *renewal
	cancel  context.CancelFunc
	ended   atomic.Bool
}

// newWatchBody returns a watch, and the request to open it with.
func newWatchBody(r *renewal, request *http.Request) (*watchBody, *http.Request) {
	ctx, cancel := context.WithCancel(request.Context())
	return &watchBody{renewal: r, cancel: cancel}, request.WithContext(ctx)
}

// endSoon ends the watch within endWithin.
func (b *watchBody) endSoon() {
	time.AfterFunc(rand.N(endWithin), func() {
		b.ended.Store(true)
		b.cancel()
	})
}

// Read returns io.EOF when the watch was ended here. It may be in the midst of an event, which
// comes again with the next watch.
func (b *watchBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && b.ended.Load() {
		err = io.EOF
	}
	return n, err
}

func (b *watchBody) Close() error {
	b.renewal.closed(b)
	defer b.release()
	return b.ReadCloser.Close()
}

// release frees what the request holds.
func (b *watchBody) release() {
	if b != nil {
		b.cancel()
	}
}
