package servers_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// road is what lies between a client and a server. While it is broken, attempts to connect arrive
// after a time, and come to nothing.
type road struct {
	broken atomic.Bool
	// takes is how long an attempt takes to arrive.
	takes func() time.Duration
	// end is what becomes of a connection.
	end      func(net.Conn) (net.Conn, error)
	arrivals dialLog
	// more is how many attempts within a second the transport adds by itself. It sometimes connects
	// again for a request whose new connection broke before it was used.
	more int
}

func (r *road) install(config *rest.Config) {
	r.arrivals.install(config)
	arrive := config.Dial
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if !r.broken.Load() {
			return arrive(ctx, network, address)
		}
		time.Sleep(r.takes())
		conn, err := arrive(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return r.end(conn)
	}
}

// brittle is a connection that breaks when so many bytes were read, or reads nonsense before that.
type brittle struct {
	net.Conn
	left     int
	nonsense bool
}

func (b *brittle) Read(p []byte) (int, error) {
	if b.nonsense {
		return copy(p, "no TLS"), nil
	}
	if b.left <= 0 {
		b.Close()
		return 0, syscall.ECONNRESET
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// hollow is a connection that breaks when something was sent over it after the handshake of TLS
// 1.3.
type hollow struct {
	net.Conn
	// sent counts the encrypted records. The first one ends the handshake.
	sent atomic.Int32
}

func (h *hollow) Write(p []byte) (int, error) {
	const encrypted = 23
	if p[0] == encrypted && h.sent.Add(1) > 1 {
		h.Close()
		return 0, syscall.ECONNRESET
	}
	return h.Conn.Write(p)
}

// However a server is away, and however long an attempt to connect takes to arrive there, no two
// others arrive within the same second, but for what the transport adds.
func TestAttemptsAtServerThatIsAwayAreFew(t *testing.T) {
	refused := func(conn net.Conn) (net.Conn, error) {
		return nil, errors.Join(conn.Close(), syscall.ECONNREFUSED)
	}
	breaks := func(after int) func(net.Conn) (net.Conn, error) {
		return func(conn net.Conn) (net.Conn, error) { return &brittle{Conn: conn, left: after}, nil }
	}
	atOnce := func() time.Duration { return 0 }
	upTo := func(most time.Duration) func() time.Duration {
		return func() time.Duration { return rand.N(most) }
	}
	for name, r := range map[string]*road{
		"refused":                    {takes: atOnce, end: refused},
		"refused after some time":    {takes: upTo(300 * time.Millisecond), end: refused},
		"refused after a long time":  {takes: upTo(900 * time.Millisecond), end: refused},
		"closed":                     {takes: upTo(500 * time.Millisecond), end: breaks(0)},
		"breaks in the handshake":    {takes: upTo(500 * time.Millisecond), end: breaks(100)},
		"breaks after the handshake": {more: 1, takes: atOnce, end: func(conn net.Conn) (net.Conn, error) { return &hollow{Conn: conn}, nil }},
		"breaks some time after the handshake": {more: 1, takes: upTo(500 * time.Millisecond), end: func(conn net.Conn) (net.Conn, error) {
			return &hollow{Conn: conn}, nil
		}},
		"no TLS": {takes: upTo(500 * time.Millisecond), end: func(conn net.Conn) (net.Conn, error) {
			return &brittle{Conn: conn, nonsense: true}, nil
		}},
	} {
		harness.BubbleRun(t, name, informertest.Options{TLS: true}, func(t *testing.T, w *harness.World) {
			f := startTenants(w, 50, r.install)
			for range 5 {
				left := time.Now()
				r.broken.Store(true)
				w.CloseClientConnections()
				time.Sleep(time.Minute)
				require.Zero(t, f.current())
				attempts := r.arrivals.between(left, time.Now())
				require.LessOrEqual(t, mostInASecond(attempts), 2+r.more)
				require.Greater(t, len(attempts), 60*1000/2500)
				r.broken.Store(false)
				time.Sleep(10 * time.Second)
				require.EqualValues(t, 50, f.current())
				time.Sleep(time.Minute)
			}
		})
	}
}
