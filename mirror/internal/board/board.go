// Package board shows a mirror to those who operate it: a status page with health checks, and
// metrics.
package board

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rvinformer/informer/metrics"
	"github.com/rvinformer/informer/registry"
	"github.com/rvinformer/informer/statuspage"
	"golang.org/x/sync/errgroup"
)

// Board serves the page and its health checks at the root, and the metrics at /metrics. What it
// shows, and other pages, may be added while it is served.
type Board struct {
	*http.ServeMux
	// Informers are those on the page and in the metrics.
	Informers *registry.Registry
	Metrics   *prometheus.Registry
	page      *statuspage.Page
}

// New returns a board without informers.
func New() *Board {
	informers := registry.New()
	b := &Board{Informers: informers, page: statuspage.Of(informers), Metrics: prometheus.NewRegistry(), ServeMux: http.NewServeMux()}
	b.page.Title = "mirror"
	b.Metrics.MustRegister(metrics.Of(informers), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	b.Handle("/metrics", promhttp.HandlerFor(b.Metrics, promhttp.HandlerOpts{}))
	b.Handle("/", b.page)
	return b
}

// Serve serves the board on an address until the context ends: then /readyz fails, and stop ends
// the rest. The link is that of the page.
func (b *Board) Serve(ctx context.Context, address string) (link string, stop func() error, err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, fmt.Errorf("--listen %s: %w", address, err)
	}
	server := &http.Server{Handler: b, ReadHeaderTimeout: 10 * time.Second}
	var serving errgroup.Group
	serving.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("--listen %s: %w", address, err)
		}
		return nil
	})
	drain := context.AfterFunc(ctx, b.page.Drain)
	stop = func() error {
		drain()
		closed := server.Close() // nobody waits for a status page of a process that ends
		return errors.Join(serving.Wait(), closed)
	}
	return "http://" + listener.Addr().String() + "/", stop, nil
}
