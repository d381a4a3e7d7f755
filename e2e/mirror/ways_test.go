package mirror

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/e2e/proxy"
)

// startConnect starts an HTTP proxy that ends with the test, and returns its address. So all
// replicas call a server by the same name, which their checkpoints have, and go to it by ways of
// their own.
func startConnect(t *testing.T) (address string) {
	t.Helper()
	dialer := net.Dialer{Timeout: 10 * time.Second}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server, err := dialer.DialContext(r.Context(), "tcp", r.Host)
		if err != nil || r.Method != http.MethodConnect {
			http.Error(w, fmt.Sprint(r.Method, err), http.StatusBadGateway)
			return
		}
		defer server.Close()
		client, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer client.Close()
		_, _ = io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n") // who has gone gets nothing
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			_, _ = io.Copy(client, server) // until either side ends
			_ = client.Close()
		})
		_, _ = io.Copy(server, buffered)
		_ = server.Close()
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// detour returns the address of a proxy of the replica's own, behind which the HTTP proxy is.
func (r *replica) detour(t *testing.T, connect string, of way) string {
	t.Helper()
	p, err := proxy.Listen(connect)
	require.NoError(t, err)
	r.add(t, of, p)
	return "http://" + p.Addr()
}

// detourToDatabase returns an address of the database at another one, which is on a Unix socket,
// through a proxy of the replica's own.
func (r *replica) detourToDatabase(t *testing.T, address string) string {
	t.Helper()
	const socket = ".s.PGSQL.5432"
	u, err := url.Parse(address)
	require.NoError(t, err)
	query := u.Query()
	own, err := os.MkdirTemp("", "mirror-pg-") // a path of a socket is short
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(own)) })
	p, err := proxy.ListenUnix(filepath.Join(query.Get("host"), socket), filepath.Join(own, socket))
	require.NoError(t, err)
	r.add(t, toDatabase, p)
	query.Set("host", own)
	u.RawQuery = query.Encode()
	return u.String()
}

func (r *replica) add(t *testing.T, of way, p *proxy.Proxy) {
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	r.ways[of] = append(r.ways[of], p)
}
