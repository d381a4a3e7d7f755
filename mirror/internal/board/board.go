// Package board shows a mirror to those who operate it: a status page with health checks, and
// metrics.
package board

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rvinformer/informer/metrics"
	"github.com/rvinformer/informer/registry"
	"github.com/rvinformer/informer/statuspage"
)

// Board serves the page and its health checks at the root, and the metrics at /metrics. What it
// shows may be added while it is served.
type Board struct {
	// Informers are those on the page and in the metrics.
	Informers *registry.Registry
	page      *statuspage.Page
	metrics   *prometheus.Registry
	mux       *http.ServeMux
}

// New returns a board without informers.
func New() *Board {
	informers := registry.New()
	b := &Board{Informers: informers, page: statuspage.Of(informers), metrics: prometheus.NewRegistry(), mux: http.NewServeMux()}
	b.page.Title = "mirror"
	b.Add(metrics.Of(informers))
	b.Add(collectors.NewGoCollector())
	b.Add(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	b.mux.Handle("/metrics", promhttp.HandlerFor(b.metrics, promhttp.HandlerOpts{}))
	b.mux.Handle("/", b.page)
	return b
}

// Add adds metrics.
func (b *Board) Add(more prometheus.Collector) { b.metrics.MustRegister(more) }

// Handle adds another page.
func (b *Board) Handle(path string, page http.Handler) { b.mux.Handle(path, page) }

// Serve serves the board on an address until the context ends: then /readyz fails, and stop ends
// the rest. The link is that of the page.
func (b *Board) Serve(ctx context.Context, address string) (link string, stop func() error, err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, fmt.Errorf("--listen %s: %w", address, err)
	}
	server := &http.Server{Handler: b.mux, ReadHeaderTimeout: 10 * time.Second}
	var serving sync.WaitGroup
	var failure error
	serving.Go(func() {
		if served := server.Serve(listener); !errors.Is(served, http.ErrServerClosed) {
			failure = fmt.Errorf("--listen %s: %w", address, served)
		}
	})
	drain := context.AfterFunc(ctx, b.page.Drain)
	stop = func() error {
		drain()
		closed := server.Close() // nobody waits for a status page of a process that ends
		serving.Wait()
		return errors.Join(failure, closed)
	}
	return "http://" + listener.Addr().String() + "/", stop, nil
}
