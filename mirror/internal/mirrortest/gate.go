package mirrortest

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// Gate stands before a server, at an address that stays the same while it is shut and opened again.
type Gate struct {
	t       testing.TB
	address string

	mu       sync.Mutex
	behind   string       // the address of the server
	listener net.Listener // nil while the gate is shut
	conns    map[net.Conn]bool
	going    sync.WaitGroup
}

func NewGate(t testing.TB, c Cluster) *Gate {
	g := &Gate{t: t, address: freeAddress(t), conns: map[net.Conn]bool{}}
	g.Lead(c)
	g.Open()
	t.Cleanup(g.Shut)
	return g
}

// gates counts those of this process.
var gates atomic.Int64

// freeAddress is one from below the range of ports that outgoing connections use: one of those could
// get the port while the gate is shut. Processes whose numbers follow each other begin apart.
func freeAddress(t testing.TB) string {
	t.Helper()
	const lowest, highest, apart, tries = 20000, 32000, 64, 100
	var err error
	for range tries {
		address := fmt.Sprint("127.0.0.1:", lowest+(os.Getpid()*apart+int(gates.Add(1)))%(highest-lowest))
		var listener net.Listener
		if listener, err = net.Listen("tcp", address); err == nil {
			require.NoError(t, listener.Close())
			return address
		}
	}
	require.NoError(t, err)
	return ""
}

func (g *Gate) Config() *rest.Config { return &rest.Config{Host: "http://" + g.address} }

func (g *Gate) Open() {
	listener, err := net.Listen("tcp", g.address)
	require.NoError(g.t, err)
	g.mu.Lock()
	g.listener, g.address = listener, listener.Addr().String()
	g.mu.Unlock()
	g.going.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // shut
			}
			g.pass(listener, conn)
		}
	})
}

// Lead cuts all connections, and lets new ones lead to a cluster. The gate keeps its port meanwhile,
// which another process could get.
func (g *Gate) Lead(to Cluster) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.behind = strings.TrimPrefix(to.Server.URL(), "http://")
	g.cutLocked()
}

func (g *Gate) cutLocked() {
	for conn := range g.conns {
		conn.Close()
	}
	clear(g.conns)
}

// pass connects the two sides until either ends, unless the gate was shut meanwhile, or leads to
// another cluster.
func (g *Gate) pass(through net.Listener, conn net.Conn) {
	g.mu.Lock()
	behind := g.behind
	g.mu.Unlock()
	server, err := net.Dial("tcp", behind)
	if err != nil {
		conn.Close()
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener != through || g.behind != behind {
		conn.Close()
		server.Close()
		return
	}
	for from, to := range map[net.Conn]net.Conn{conn: server, server: conn} {
		g.conns[from] = true
		g.going.Go(func() {
			io.Copy(to, from)
			to.Close()
			from.Close()
		})
	}
}

// Shut refuses and cuts all connections.
func (g *Gate) Shut() {
	g.mu.Lock()
	if g.listener == nil {
		g.mu.Unlock()
		return
	}
	g.listener.Close()
	g.listener = nil
	g.cutLocked()
	g.mu.Unlock()
	g.going.Wait()
}
