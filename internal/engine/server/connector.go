package server

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/failure"
)

// connector lets one request connect before the others. The informers of a server start together,
// and lose their connection together. Without a connector, each would open another one, and with
// HTTP/2 all but one would be closed again, because the informers can share it. If no connection
// can be made, all that wait for it fail with that attempt.
type connector struct {
	presence     *presence
	acquaintance *acquaintance
	// trace tells when the first request has a connection. All have the same one, because a watch
	// keeps its own for hours.
	trace *httptrace.ClientTrace
	// hasLost is the method lost, for all answers.
	hasLost func()
	// ready tells that a connection was there, and that no watch over it has ended since, and
	// nothing failed.
	ready atomic.Bool

	mu sync.Mutex
	// first is the request that connects, nil without one.
	first *attempt
}

// attempt is a request that connects before others.
type attempt struct {
	began time.Time
	// over is closed when the stage is connected or failed.
	over chan struct{}
	// stage belongs to the lock of the connector.
	stage stage
}

// stage is how far an attempt has come.
type stage uint8

const (
	// searching: it has no connection yet.
	searching stage = iota
	// linked: it has one that was made for it. That does not show yet that the server is there, even
	// with TLS: a load balancer may make it, and break it.
	linked
	// relinked: it has one that others had before.
	relinked
	// connected: others may use the connection. It was answered, or the answer takes long.
	connected
	// failed: it has ended without an answer.
	failed
)

func (s stage) isOver() bool { return s >= connected }

// attemptMost is how long others wait for an attempt. Then one of them attempts it too.
const attemptMost = time.Second

func newConnector(p *presence, k *acquaintance) *connector {
	c := &connector{presence: p, acquaintance: k}
	c.trace, c.hasLost = c.newTrace(), c.lost
	return c
}

func (c *connector) newTrace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{GetConn: c.gets, GotConn: c.got}
}

// traced returns a request that tells when it has a connection.
func (c *connector) traced(request *http.Request) *http.Request {
	ctx, trace := request.Context(), c.trace
	if httptrace.ContextClientTrace(ctx) != nil { // the caller's, which is added to this one
		trace = c.newTrace()
	}
	return request.WithContext(httptrace.WithClientTrace(ctx, trace))
}

// await returns the request as it is to be sent, when it may be sent. The attempt is nil unless the
// request connects before others. The error is why no connection can be made.
//
// An asking request needs no leave of the presence, because it has that already.
func (c *connector) await(request *http.Request, asks bool) (*http.Request, *attempt, error) {
	for !c.ready.Load() {
		first, mine, err := c.join(asks)
		switch {
		case err != nil:
			return nil, nil, err
		case mine:
			return c.traced(request), first, nil
		case c.wait(request, first):
			return request, nil, nil
		}
	}
	return request, nil, nil
}

// join returns the attempt under way, or begins one.
func (c *connector) join(asks bool) (first *attempt, mine bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first != nil && time.Since(c.first.began) < attemptMost {
		return c.first, false, nil
	}
	if !asks {
		if err := c.presence.mayConnect(); err != nil {
			return nil, false, err
		}
	}
	c.first = &attempt{began: time.Now(), over: make(chan struct{})}
	return c.first, true, nil
}

// wait waits for an attempt of another request, and reports whether this one may be sent.
func (c *connector) wait(request *http.Request, first *attempt) bool {
	late := time.NewTimer(time.Until(first.began.Add(attemptMost)))
	defer late.Stop()
	select {
	case <-first.over:
	case <-late.C:
	case <-request.Context().Done():
		return true // the transport says what it says then
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if first.stage == linked || first.stage == relinked { // the answer just takes long
		c.end(first, connected)
	}
	return first.stage == connected
}

// gets notes that the request that goes first looks for a connection, perhaps because the one that
// it had was dead.
func (c *connector) gets(string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first != nil {
		c.first.stage = searching
	}
}

// got notes that the request that goes first has a connection, or one that went before it and took
// too long.
func (c *connector) got(got httptrace.GotConnInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.first == nil:
	case got.Reused:
		c.first.stage = relinked
	default:
		c.first.stage = linked
	}
}

// finish notes that the request of an attempt was answered, or has failed with err. It reports
// whether there was a connection. One that was made for the request, and over which nothing came,
// is none.
func (c *connector) finish(first *attempt, request *http.Request, err error) (hadConnection bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.end(first, connected)
		return true
	}
	hadConnection = first.stage == connected || first.stage == relinked
	if !hadConnection && request.Context().Err() == nil && failure.ClassOf(err) != api.ErrorUnauthorized {
		c.presence.failed(err) // before others are let go
	}
	c.end(first, failed)
	return hadConnection
}

// end ends an attempt, unless that was done before.
func (c *connector) end(first *attempt, as stage) {
	if first.stage.isOver() {
		return
	}
	first.stage = as
	if as == connected {
		c.ready.Store(true)
	}
	if c.first == first {
		c.first = nil
	}
	close(first.over)
}

// lost notes that a watch has ended, or that a request or the reading of its answer has failed. The
// connection may be lost with it, so the next request goes first.
func (c *connector) lost() {
	c.ready.Store(false)
	c.acquaintance.lost()
}

// body is an answer that tells when the connection may be lost. It is for callers that do not tell
// themselves.
type body struct {
	io.ReadCloser
	watch bool
	lost  func()
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && (b.watch || err != io.EOF) {
		b.lost()
	}
	return n, err
}
