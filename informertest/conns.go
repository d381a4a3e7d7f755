package informertest

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// conns knows the open connections of a server, and waits for the goroutines that serve them.
type conns struct {
	mu     sync.Mutex
	open   map[net.Conn]*time.Timer // which cuts it, nil without one
	closed bool                     // cut whatever still comes
	// Whether a connection that has just come is reset at once.
	refuses func() bool
	// The open connections and the handlers under way: those of HTTP/2 may outlive their
	// connection. Invariant: once closed is set, no handler is added any more.
	wg sync.WaitGroup
}

// observe is an http.Server's ConnState hook. Every connection passes StateNew before its goroutine
// starts, and one of the other two right before it ends.
func (c *conns) observe(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		if c.open == nil {
			c.open = map[net.Conn]*time.Timer{}
		}
		c.open[conn] = nil
		c.wg.Add(1)
		switch {
		case c.closed:
			cutOne(conn)
		case c.refuses():
			resetOne(conn)
		}
	case http.StateClosed, http.StateHijacked:
		if cutter, ok := c.open[conn]; ok {
			if cutter != nil {
				cutter.Stop()
			}
			delete(c.open, conn)
			c.wg.Done()
		}
	}
}

// handle wraps the handler of all requests, so that wait waits for it.
func (c *conns) handle(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !c.enter() {
			panic(http.ErrAbortHandler)
		}
		defer c.wg.Done()
		next.ServeHTTP(w, req)
	})
}

// enter reports whether a request may be handled.
func (c *conns) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.wg.Add(1)
	}
	return !c.closed
}

// cut closes every connection, those with requests under way too.
func (c *conns) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		cutOne(conn)
	}
}

// cutAfter closes a connection after a while, unless it is to be closed sooner.
func (c *conns) cutAfter(conn net.Conn, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cutter, ok := c.open[conn]; ok && cutter == nil {
		c.open[conn] = time.AfterFunc(d, func() { cutOne(conn) })
	}
}

// cutOne closes a connection. Of TLS it is the one below: the farewell that TLS begins with would
// wait for a client that does not read.
func cutOne(conn net.Conn) {
	_ = below(conn).Close()
}

// resetOne closes a connection so that on a network the other end is told of a reset, not of an
// end.
func resetOne(conn net.Conn) {
	conn = below(conn)
	if tcp, ok := conn.(*net.TCPConn); ok {
		// Without it the connection ends in a friendlier way, which is cut off as well.
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// below is the connection that carries TLS, or the connection itself.
func below(conn net.Conn) net.Conn {
	if secure, ok := conn.(*tls.Conn); ok {
		return secure.NetConn()
	}
	return conn
}

// close cuts every connection, those included that the listener is just handing over: an
// http.Server that closes would miss them, and they would wait for a first request forever.
func (c *conns) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cut()
}

func (c *conns) wait() { c.wg.Wait() }
