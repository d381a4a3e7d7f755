package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rvinformer/informer/informertest"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

var (
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	configmaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	widgets    = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

// newTestCluster is a simulated cluster that is filled like one of the demo.
func newTestCluster(t *testing.T, name string, objects int, options informertest.Options) *demoCluster {
	c := &demoCluster{name: name, server: informertest.NewServer(options)}
	t.Cleanup(c.server.Close)
	require.NoError(t, c.fill(t.Context(), objects))
	return c
}

func (c *demoCluster) of(t *testing.T, resource schema.GroupVersionResource) *stock {
	for _, s := range c.stock {
		if s.kind.resource == resource {
			return s
		}
	}
	require.FailNow(t, "no such stock", resource)
	return nil
}

func (c *demoCluster) endpoint() endpoint { return endpoint{c.name, c.server.Config()} }

// unreachable is the address of a server that is not there.
func unreachable(t *testing.T) *rest.Config {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return &rest.Config{Host: "http://" + listener.Addr().String()}
}

// writeKubeconfig writes a file with a context per endpoint.
func writeKubeconfig(t *testing.T, endpoints ...endpoint) string {
	config := api.NewConfig()
	for _, e := range endpoints {
		config.Clusters[e.name] = &api.Cluster{Server: e.client.Host}
		config.Contexts[e.name] = &api.Context{Cluster: e.name}
		config.CurrentContext = e.name
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path
}

// forbid answers every request for a resource with 403, but for discovery.
func forbid(resource string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/"+resource) {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"%s is forbidden: not for you"}`, resource)
		})
	}
}

// requireEqual compares the database with a server.
func requireEqual(t *testing.T, db database, c *demoCluster, resources ...schema.GroupVersionResource) {
	t.Helper()
	for _, s := range c.stock {
		if resources != nil && !slices.Contains(resources, s.kind.resource) {
			continue
		}
		rows, differences, err := compare(t.Context(), db, place{cluster: c.name, resource: s.kind.resource}, c.server)
		require.NoError(t, err)
		require.Empty(t, differences, s.kind.resource)
		require.Equal(t, s.next-s.first, rows, s.kind.resource)
	}
}

// gate stands before a server, at an address that stays the same while it is shut and opened again.
type gate struct {
	t       *testing.T
	address string
	behind  string

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	going    sync.WaitGroup
}

func newGate(t *testing.T, c *demoCluster) *gate {
	g := &gate{t: t, address: "127.0.0.1:0", conns: map[net.Conn]bool{}}
	g.lead(c)
	t.Cleanup(g.Shut)
	return g
}

func (g *gate) config() *rest.Config { return &rest.Config{Host: "http://" + g.address} }

func (g *gate) Open() {
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

// lead lets the gate lead to a cluster from now on.
func (g *gate) lead(to *demoCluster) {
	g.Shut()
	g.behind = strings.TrimPrefix(to.server.URL(), "http://")
	g.Open()
}

// pass connects the two sides until either ends, unless the gate was shut meanwhile.
func (g *gate) pass(through net.Listener, conn net.Conn) {
	server, err := net.Dial("tcp", g.behind)
	if err != nil {
		conn.Close()
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener != through {
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
func (g *gate) Shut() {
	g.mu.Lock()
	if g.listener == nil {
		g.mu.Unlock()
		return
	}
	g.listener.Close()
	g.listener = nil
	for conn := range g.conns {
		conn.Close()
	}
	clear(g.conns)
	g.mu.Unlock()
	g.going.Wait()
}

// cutStore is a database that takes so many batches and then nothing any more, like a process that
// was killed.
type cutStore struct {
	store
	batches int
}

func (s *cutStore) Apply(ctx context.Context, changes []change) error {
	if s.batches == 0 {
		return errors.New("power is gone")
	}
	s.batches--
	return s.store.Apply(ctx, changes)
}

func (s *cutStore) SaveCheckpoint(ctx context.Context, of place, server string, write func(io.Writer) error) error {
	if s.batches == 0 {
		return errors.New("power is gone")
	}
	return s.store.SaveCheckpoint(ctx, of, server, write)
}

// ignore never answers a request for a resource.
func ignore(resource string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/"+resource) {
				<-r.Context().Done()
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}
