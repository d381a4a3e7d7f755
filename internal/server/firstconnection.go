package server

import (
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// firstConnection lets one request of a client connect before the others. The informers of a
// server start together. Without it, each would open a connection, and with HTTP/2 all but one
// would be closed again, because the informers can share it.
type firstConnection struct {
	begun atomic.Bool
	made  <-chan struct{}
	// over notes that it was made, or is not waited for any more.
	over func()
}

// firstConnectionMost is how long others wait for it. Then they try themselves.
const firstConnectionMost = time.Second

func newFirstConnection() *firstConnection {
	made := make(chan struct{})
	return &firstConnection{made: made, over: sync.OnceFunc(func() { close(made) })}
}

// await returns the request as it is to be sent, when it may be sent.
func (f *firstConnection) await(request *http.Request) *http.Request {
	ctx := request.Context()
	if f.begun.CompareAndSwap(false, true) {
		time.AfterFunc(firstConnectionMost, f.over)
		trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { f.over() }}
		return request.WithContext(httptrace.WithClientTrace(ctx, trace))
	}
	select {
	case <-f.made:
	case <-ctx.Done():
	}
	return request
}
