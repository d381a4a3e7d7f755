package informertest

import (
	"context"
	"net"
	"os"
	"sync"
	"syscall"
)

// memoryListener hands over connections that exist only in this process. Both ends block in ways
// that a testing/synctest bubble understands, which a socket's do not.
type memoryListener struct {
	accept  chan net.Conn
	closed  chan struct{}
	refuses func() bool // whether dialling fails
	once    sync.Once
}

func newMemoryListener(refuses func() bool) *memoryListener {
	return &memoryListener{accept: make(chan net.Conn), closed: make(chan struct{}), refuses: refuses}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memoryListener) Addr() net.Addr { return memoryAddr{} }

// dial is the client's side. After Close it fails as a port without a listener does.
func (l *memoryListener) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	if l.refuses() {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: memoryAddr{}, Err: refused()}
	}
	client, server := net.Pipe()
	var err error
	select {
	case l.accept <- server:
		return client, nil
	case <-l.closed:
		err = refused()
	case <-ctx.Done():
		err = ctx.Err()
	}
	_ = client.Close()
	_ = server.Close()
	return nil, &net.OpError{Op: "dial", Net: network, Addr: memoryAddr{}, Err: err}
}

// refused is the error of a port without a listener.
func refused() error { return os.NewSyscallError("connect", syscall.ECONNREFUSED) }

type memoryAddr struct{}

func (memoryAddr) Network() string { return "memory" }
func (memoryAddr) String() string  { return "informertest" }
