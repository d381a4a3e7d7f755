package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// dialTimeout is how long the server may take to accept a connection.
const dialTimeout = 10 * time.Second

// Proxy hands on what it gets, as its weather allows. It is safe for concurrent
// use.
type Proxy struct {
	network  string
	target   string
	listener net.Listener
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	wg       sync.WaitGroup  // all that was started
	handed   [2]atomic.Int64 // bytes, by the Side that they came from

	mu      sync.Mutex
	weather weather
	changed chan struct{}      // closed and replaced with the weather
	links   map[*link]struct{} // under way
	failed  error              // why it accepts no more, unless it was closed
}

// Listen starts a proxy to the server at target, on a port of its own of the
// loopback interface. The caller owns it and must Close it.
func Listen(target string) (*Proxy, error) { return listen("tcp", target, "127.0.0.1:0") }

// ListenUnix starts a proxy to the Unix socket at target, on one of its own at path. The caller
// owns it and must Close it.
func ListenUnix(target, path string) (*Proxy, error) { return listen("unix", target, path) }

func listen(network, target, at string) (*Proxy, error) {
	listener, err := net.Listen(network, at)
	if err != nil {
		return nil, fmt.Errorf("proxy to %s: %w", target, err)
	}
	p := &Proxy{
		network:  network,
		target:   target,
		listener: listener,
		weather:  fair{},
		changed:  make(chan struct{}),
		links:    map[*link]struct{}{},
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.wg.Go(p.accept)
	return p, nil
}

// Addr is where the proxy listens: host and port, or a path.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Drop cuts all connections, and each new one as soon as it is made, until the
// next change.
func (p *Proxy) Drop() {
	p.change(dropped{})
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
}

// Delay makes each piece that is handed on, either way, wait for so long.
func (p *Proxy) Delay(d time.Duration) { p.change(delayed{d}) }

// Halve leaves connections half open: nothing more is taken from the given side,
// or handed on to the other, and neither end is told. The other direction goes on.
// When that is healed, what has waited arrives.
func (p *Proxy) Halve(from Side) { p.change(halved{from}) }

// Heal hands on everything at once again.
func (p *Proxy) Heal() { p.change(fair{}) }

// Handed is how many bytes from a side it has handed on, those included that it is handing on.
func (p *Proxy) Handed(from Side) int64 { return p.handed[from].Load() }

// Close cuts all connections, ends the proxy, waits for all that it started, and
// returns why it had stopped to accept connections, if it had. Closing again does
// nothing.
func (p *Proxy) Close() error {
	p.cancel()
	if err := p.listener.Close(); errors.Is(err, net.ErrClosed) {
		return nil
	} else if err != nil {
		return fmt.Errorf("proxy to %s: %w", p.target, err)
	}
	p.wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

func (p *Proxy) change(w weather) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.weather = w
	close(p.changed)
	p.changed = make(chan struct{})
}

// now returns the weather, and a channel that is closed when it changes.
func (p *Proxy) now() (weather, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.weather, p.changed
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if p.ctx.Err() != nil {
			if err == nil {
				_ = conn.Close() // nothing was promised on it
			}
			return
		}
		if err != nil {
			p.mu.Lock()
			p.failed = fmt.Errorf("proxy to %s: %w", p.target, err)
			p.mu.Unlock()
			return
		}
		p.wg.Go(func() { p.serve(conn.(stream)) })
	}
}

// serve hands on what comes on one connection until either side ends it.
func (p *Proxy) serve(client stream) {
	l, err := p.connect(client)
	if err != nil {
		reset(client)
		return
	}
	defer p.forget(l)
	stop := context.AfterFunc(p.ctx, l.cut)
	defer stop()
	l.run(p)
}

// connect begins a link, unless connections are dropped.
func (p *Proxy) connect(client stream) (*link, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	server, err := dialer.DialContext(p.ctx, p.network, p.target)
	if err != nil {
		return nil, err
	}
	l := newLink(client, server.(stream))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.weather == (dropped{}) {
		reset(l.server)
		return nil, net.ErrClosed
	}
	p.links[l] = struct{}{}
	return l, nil
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}
