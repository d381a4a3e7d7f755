package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// silence is how long nothing has to come where nothing may.
const silence = 100 * time.Millisecond

// echo starts a server that says each line back, and a proxy to it.
func echo(t *testing.T) *Proxy { return echoOver(t, "tcp", "127.0.0.1:0", Listen) }

func echoOver(t *testing.T, network, address string, listen func(target string) (*Proxy, error)) *Proxy {
	t.Helper()
	listener, err := net.Listen(network, address)
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	p, err := listen(listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, p.Close())
		require.NoError(t, listener.Close())
		wg.Wait()
	})
	return p
}

// caller is a client of echo.
type caller struct {
	net.Conn
	lines *bufio.Reader
}

func call(t *testing.T, p *Proxy) *caller {
	t.Helper()
	conn, err := net.Dial(p.network, p.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &caller{conn, bufio.NewReader(conn)}
}

func (c *caller) say(t *testing.T, line string) {
	t.Helper()
	_, err := fmt.Fprintln(c, line)
	require.NoError(t, err)
}

func (c *caller) hear(t *testing.T, line string) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	heard, err := c.lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, line+"\n", heard)
}

func (c *caller) hearNothing(t *testing.T) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(silence)))
	_, err := c.lines.ReadByte()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

func (c *caller) hearEnd(t *testing.T) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err := c.lines.ReadByte()
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}

// requireNoAnswer connects, and sees the connection end, now or before it is made.
func requireNoAnswer(t *testing.T, p *Proxy) {
	t.Helper()
	conn, err := net.Dial(p.network, p.Addr())
	if err != nil {
		require.ErrorIs(t, err, syscall.ECONNRESET)
		return
	}
	defer conn.Close()
	(&caller{conn, bufio.NewReader(conn)}).hearEnd(t)
}

func TestDroppedConnectionsEnd(t *testing.T) { dropAndHeal(t, echo(t)) }

func TestDroppedConnectionsOfUnixSocketsEnd(t *testing.T) {
	dir := t.TempDir()
	dropAndHeal(t, echoOver(t, "unix", filepath.Join(dir, "server"), func(target string) (*Proxy, error) {
		return ListenUnix(target, filepath.Join(dir, "proxy"))
	}))
}

func dropAndHeal(t *testing.T, p *Proxy) {
	t.Helper()
	c := call(t, p)
	c.say(t, "one")
	c.hear(t, "one")
	require.EqualValues(t, len("one\n"), p.Handed(Client))
	require.EqualValues(t, len("one\n"), p.Handed(Server))
	p.Drop()
	c.hearEnd(t)
	requireNoAnswer(t, p)
	p.Heal()
	c = call(t, p)
	c.say(t, "two")
	c.hear(t, "two")
}

func TestDelayedPiecesComeLater(t *testing.T) {
	p := echo(t)
	c := call(t, p)
	p.Delay(silence)
	before := time.Now()
	c.say(t, "one")
	c.hear(t, "one")
	require.GreaterOrEqual(t, time.Since(before), 2*silence)
	p.Delay(time.Hour)
	c.say(t, "two")
	c.hearNothing(t)
	p.Heal()
	c.hear(t, "two")
}

func TestHalfOpenConnectionsAreSilent(t *testing.T) {
	for _, from := range []Side{Client, Server} {
		t.Run(from.String(), func(t *testing.T) {
			p := echo(t)
			c := call(t, p)
			p.Halve(from)
			c.say(t, "one")
			c.hearNothing(t)
			late := call(t, p)
			late.say(t, "two")
			late.hearNothing(t)
			p.Heal()
			c.hear(t, "one")
			late.hear(t, "two")
		})
	}
}

func TestHalfOpenConnectionsCanBeDropped(t *testing.T) {
	p := echo(t)
	c := call(t, p)
	p.Halve(Server)
	c.say(t, "one")
	c.hearNothing(t)
	p.Drop()
	c.hearEnd(t)
}

func TestTheEndIsHandedOn(t *testing.T) {
	p := echo(t)
	c := call(t, p)
	c.say(t, "one")
	require.NoError(t, c.Conn.(*net.TCPConn).CloseWrite())
	c.hear(t, "one")
	_, err := c.lines.ReadByte()
	require.ErrorIs(t, err, io.EOF)
}

func TestCloseEndsWhatWaits(t *testing.T) {
	p := echo(t)
	c := call(t, p)
	p.Halve(Client)
	c.say(t, "one")
	c.hearNothing(t)
	require.NoError(t, p.Close())
	c.hearEnd(t)
}

func TestProxyWithoutServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	p, err := Listen(listener.Addr().String())
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	requireNoAnswer(t, p)
}
