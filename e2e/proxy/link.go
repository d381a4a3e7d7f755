package proxy

import (
	"context"
	"io"
	"net"
	"sync"
)

// chunk is the most bytes that are handed on at once.
const chunk = 16 << 10

// stream is a TCP connection, or one of a Unix socket.
type stream interface {
	net.Conn
	CloseWrite() error
}

// link is one connection through the proxy.
type link struct {
	client, server stream
	ctx            context.Context // ends when the link is cut
	cancel         context.CancelFunc
}

func newLink(client, server stream) *link {
	l := &link{client: client, server: server}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// cut ends the link at once, for both sides.
func (l *link) cut() {
	l.cancel()
	reset(l.client)
	reset(l.server)
}

// reset closes a connection so that the other side fails to read what
// it has not read yet. An error that it was closed already has no reader.
func reset(conn stream) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// run hands on, both ways, until both sides have ended or the link is cut.
func (l *link) run(p *Proxy) {
	var wg sync.WaitGroup
	wg.Go(func() { l.hand(p, Client, l.client, l.server) })
	wg.Go(func() { l.hand(p, Server, l.server, l.client) })
	wg.Wait()
	l.cancel()
	_ = l.client.Close() // both have ended, or it is cut
	_ = l.server.Close()
}

// hand hands on what comes from one side until that ends, and its end too.
func (l *link) hand(p *Proxy, from Side, source, sink stream) {
	buffer := make([]byte, chunk)
	for {
		n, err := source.Read(buffer)
		if !l.admit(p, from) {
			return
		}
		if n > 0 {
			p.handed[from].Add(int64(n))
			if _, err := sink.Write(buffer[:n]); err != nil {
				l.cut()
				return
			}
		}
		switch {
		case err == io.EOF:
			_ = sink.CloseWrite() // an end that cannot be told has gone
			return
		case err != nil:
			l.cut()
			return
		}
	}
}

// admit returns true when the weather lets a piece pass, and false when the link is
// cut before.
func (l *link) admit(p *Proxy, from Side) bool {
	for l.ctx.Err() == nil {
		weather, changed := p.now()
		if weather.admit(l.ctx, from, changed) {
			return true
		}
	}
	return false
}
