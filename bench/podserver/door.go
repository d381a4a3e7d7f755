package podserver

import (
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// door is the listener of a server that can go away. While it is away, it takes each connection and
// closes it at once, so that the attempts of its clients can be counted.
type door struct {
	net.Listener
	link *slowLink // nil if it is as fast as it can be

	mu       sync.Mutex
	away     bool
	open     map[*passage]bool
	accepted int64
	attempts []time.Time // while it is away
}

func newDoor(listener net.Listener, slow bool) *door {
	d := &door{Listener: listener, open: map[*passage]bool{}}
	if slow {
		d.link = &slowLink{}
	}
	return d
}

// Accept implements net.Listener.
func (d *door) Accept() (net.Conn, error) {
	for {
		conn, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if p := d.admit(conn); p != nil {
			return p, nil
		}
		reset(conn)
	}
}

// admit returns nil while the server is away.
func (d *door) admit(conn net.Conn) *passage {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.away {
		d.attempts = append(d.attempts, time.Now())
		return nil
	}
	p := &passage{Conn: conn, door: d, closed: make(chan struct{})}
	d.open[p] = true
	d.accepted++
	return p
}

// leave breaks all connections, and refuses others until comeBack.
func (d *door) leave() {
	d.mu.Lock()
	d.away, d.attempts = true, nil
	var open []*passage
	for p := range d.open {
		open = append(open, p)
	}
	d.mu.Unlock()
	for _, p := range open {
		reset(p.Conn)
		p.Close()
	}
}

func (d *door) comeBack() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.away = false
}

// counts returns how many connections were accepted, the attempts while the server was away, and
// the most of these within a second.
func (d *door) counts() (accepted int64, attempts, most int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, at := range d.attempts {
		after, _ := slices.BinarySearchFunc(d.attempts, at.Add(time.Second), time.Time.Compare)
		most = max(most, after-i)
	}
	return d.accepted, len(d.attempts), most
}

func (d *door) gone(p *passage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, p)
}

// reset closes a connection without a farewell, as the end of a machine does.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // it may be closed already
	}
	conn.Close()
}

// passage is a connection through a door.
type passage struct {
	net.Conn
	door   *door
	once   sync.Once
	closed chan struct{}
}

func (p *passage) Close() error {
	p.once.Do(func() {
		close(p.closed)
		p.door.gone(p)
	})
	return p.Conn.Close()
}

func (p *passage) Write(b []byte) (written int, err error) {
	if p.door.link == nil {
		return p.Conn.Write(b)
	}
	for len(b) > 0 {
		some := min(len(b), SlowBytes/10)
		if !p.door.link.await(some, p.closed) {
			return written, errors.New("the connection is closed")
		}
		n, err := p.Conn.Write(b[:some])
		if written += n; err != nil {
			return written, err
		}
		b = b[some:]
	}
	return written, nil
}

// slowLink is what the connections of a server share.
type slowLink struct {
	mu   sync.Mutex
	free time.Time
}

// await waits until n bytes may be sent. It returns false if closed is closed before.
func (l *slowLink) await(n int, closed <-chan struct{}) bool {
	l.mu.Lock()
	from := time.Now()
	if l.free.After(from) {
		from = l.free
	}
	l.free = from.Add(time.Duration(n) * time.Second / SlowBytes)
	l.mu.Unlock()
	timer := time.NewTimer(time.Until(from))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-closed:
		return false
	}
}
