package race

import (
	"context"
	"net"
	"sync/atomic"
	"time"
)

// meter counts the bytes that come off the sockets of a process: what the server sends, as it sends
// it, with what HTTP and TLS add. A nil one counts nothing.
type meter struct{ received atomic.Int64 }

// Dialer is what dials for a rest.Config.
type Dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// dial returns a function that dials as client-go does by default, and counts; nil for a nil meter.
func (m *meter) dial() Dialer {
	if m == nil {
		return nil
	}
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &meteredConn{conn, m}, nil
	}
}

// total is how many bytes have come so far.
func (m *meter) total() int64 {
	if m == nil {
		return 0
	}
	return m.received.Load()
}

type meteredConn struct {
	net.Conn
	meter *meter
}

func (c *meteredConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.meter.received.Add(int64(n))
	return n, err
}
