package informertest

import (
	"net"
	"net/http"
	"sync"
)

// conns knows the open connections of a server, and waits for the goroutines that serve them.
type conns struct {
	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool // cut whatever still comes
	wg     sync.WaitGroup
}

// observe is an http.Server's ConnState hook. Every connection passes StateNew before its goroutine starts, and one of
// the other two right before it ends.
func (c *conns) observe(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		if c.open == nil {
			c.open = map[net.Conn]struct{}{}
		}
		c.open[conn] = struct{}{}
		c.wg.Add(1)
		if c.closed {
			_ = conn.Close()
		}
	case http.StateClosed, http.StateHijacked:
		if _, ok := c.open[conn]; ok {
			delete(c.open, conn)
			c.wg.Done()
		}
	}
}

// cut closes every connection, in the midst of whatever it carries.
func (c *conns) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		_ = conn.Close()
	}
}

// close cuts every connection, those included that the listener is just handing over: an http.Server that closes
// would miss them, and they would wait for a first request forever.
func (c *conns) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cut()
}

func (c *conns) wait() { c.wg.Wait() }
