package servers_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/internal/testkit/selfsigned"
	"github.com/rvinformer/informer/tests/harness"
)

// guarded is a simulated server behind TLS. It knows the proof of each request: the token, or the
// name of the client's certificate. Its own certificate, and the proofs that it takes, can be
// replaced.
type guarded struct {
	*harness.World
	dir      string
	listener *pipeListener
	http     *http.Server

	mu          sync.Mutex
	certificate tls.Certificate
	names       map[[sha256.Size]byte]string // of clients' certificates
	accepts     func(proof string) bool
	asked       []proven
}

// proven is a request, and what the client has proven itself with.
type proven struct {
	at    time.Time
	proof string
	watch bool
	list  bool // of the set, and not of one object to know the server by
}

// inGuarded runs test in a bubble, with a server whose certificate is in the file "ca".
func inGuarded(t *testing.T, test func(t *testing.T, g *guarded)) {
	t.Helper()
	var backend http.Handler
	wrap := func(server http.Handler) http.Handler {
		backend = server
		return server
	}
	dir := t.TempDir()
	harness.Bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *harness.World) {
		g := &guarded{
			World: w, dir: dir, names: map[[sha256.Size]byte]string{}, accepts: func(string) bool { return true },
			listener: &pipeListener{accept: make(chan net.Conn), closed: make(chan struct{}), open: map[net.Conn]bool{}},
		}
		g.renewAuthority(g.path("ca"))
		g.http = &http.Server{Handler: g.guard(backend), TLSConfig: &tls.Config{
			ClientAuth:             tls.RequestClientCert,
			SessionTicketsDisabled: true, // a write after the handshake would meet that of the client
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				g.mu.Lock()
				defer g.mu.Unlock()
				certificate := g.certificate
				return &certificate, nil
			},
		}, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 100}, ErrorLog: log.New(io.Discard, "", 0)}
		served := make(chan error, 1)
		go func() { served <- g.http.ServeTLS(g.listener, "", "") }()
		defer func() {
			require.NoError(t, g.http.Close())
			g.listener.cut()
			require.ErrorIs(t, <-served, http.ErrServerClosed)
		}()
		test(t, g)
	})
}

func (g *guarded) guard(backend http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		p := proven{
			at: time.Now(), proof: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), watch: query.Has("watch"),
			list: strings.HasSuffix(r.URL.Path, "/pods") && !query.Has("watch") && query.Get("limit") != "1",
		}
		g.mu.Lock()
		if len(r.TLS.PeerCertificates) > 0 {
			p.proof = g.names[sha256.Sum256(r.TLS.PeerCertificates[0].Raw)]
		}
		g.asked = append(g.asked, p)
		accepted := g.accepts(p.proof)
		g.mu.Unlock()
		if !accepted {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	})
}

// config is a configuration that has the authority in a file.
func (g *guarded) config() *rest.Config {
	return &rest.Config{
		Host:            "https://localhost",
		QPS:             -1,
		Dial:            g.listener.dial,
		TLSClientConfig: rest.TLSClientConfig{CAFile: g.path("ca")},
	}
}

func (g *guarded) path(name string) string { return filepath.Join(g.dir, name) }

// renewAuthority gives the server a certificate of another authority, which it writes to the file.
func (g *guarded) renewAuthority(file string) {
	g.T.Helper()
	certificate, authority, err := selfsigned.Certificate()
	require.NoError(g.T, err)
	g.mu.Lock()
	g.certificate = certificate
	g.mu.Unlock()
	g.write(file, authority)
}

// issue returns a new certificate for a client, and its key.
func (g *guarded) issue(name string) (cert, key []byte) {
	g.T.Helper()
	certificate, cert, err := selfsigned.Certificate()
	require.NoError(g.T, err)
	der, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	require.NoError(g.T, err)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.names[sha256.Sum256(certificate.Certificate[0])] = name
	return cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// write replaces a file as a whole.
func (g *guarded) write(file string, content []byte) {
	g.T.Helper()
	require.NoError(g.T, os.WriteFile(file+".new", content, 0o600))
	require.NoError(g.T, os.Rename(file+".new", file))
}

// accept makes the server accept these proofs only.
func (g *guarded) accept(proofs ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.accepts = func(proof string) bool { return slices.Contains(proofs, proof) }
}

// since returns the requests from a moment on.
func (g *guarded) since(from time.Time) (asked []proven) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.asked {
		if !p.at.Before(from) {
			asked = append(asked, p)
		}
	}
	return asked
}

// requireOnly requires that all requests from a moment on have a proof, and that n of them are
// watches and none is a list.
func (g *guarded) requireOnly(from time.Time, n int, proof string) {
	g.T.Helper()
	watches := 0
	for _, p := range g.since(from) {
		require.Equal(g.T, proof, p.proof, "%v after", p.at.Sub(from))
		require.False(g.T, p.list, "a list, %v after", p.at.Sub(from))
		if p.watch {
			watches++
		}
	}
	require.Equal(g.T, n, watches)
}

// pipeListener hands over connections inside the process.
type pipeListener struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once

	mu   sync.Mutex
	open map[net.Conn]bool
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.accept <- server:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open[server] = true
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// cut cuts all connections.
func (l *pipeListener) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		_ = c.Close()
	}
	clear(l.open)
}
