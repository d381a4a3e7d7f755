package main

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
	"github.com/rvinformer/informer/fleet/shards"
	"github.com/rvinformer/informer/metrics"
	"github.com/rvinformer/informer/registry"
	"github.com/rvinformer/informer/statuspage"
)

// board shows the informers of a run to those who operate it: a status page with health checks, and
// metrics. What it shows may be added while it is served.
type board struct {
	informers *registry.Registry // which the page and the metrics show
	page      *statuspage.Page
	registry  *prometheus.Registry // of metrics, and more
	mux       *http.ServeMux
}

// newBoard makes a board that serves the page and its health checks at the root, and the metrics at
// /metrics.
func newBoard() *board {
	informers := registry.New()
	b := &board{informers: informers, page: statuspage.Of(informers), registry: prometheus.NewRegistry(), mux: http.NewServeMux()}
	b.page.Title = "mirror"
	b.registry.MustRegister(metrics.Of(informers), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	b.mux.Handle("/metrics", promhttp.HandlerFor(b.registry, promhttp.HandlerOpts{}))
	b.mux.Handle("/", b.page)
	return b
}

// Show adds the informer of a place.
func (b *board) Show(at place, source registry.Source) (remove func()) {
	return b.informers.Add(registry.Labels{
		Cluster: at.cluster, Group: at.resource.Group, Version: at.resource.Version, Resource: at.resource.Resource,
	}, source)
}

// ShowReplica adds a replica, and the units that it shares with others, which /units lists.
func (b *board) ShowReplica(replica *shards.Replica) {
	b.informers.AddFactory(replica.Registry())
	b.registry.MustRegister(replica)
	b.mux.Handle("/units", unitsPage{replica.Status})
}

// ShowDiscovery adds the discovery of a cluster, so that the process is not ready before the
// resources are known.
func (b *board) ShowDiscovery(cluster string, source registry.Source) (remove func()) {
	return b.informers.Add(registry.Labels{Cluster: cluster, Informer: "discovery"}, source)
}

// Serve serves the board on an address until the context ends: then /readyz fails, and stop ends
// the rest. The link is that of the page.
func (b *board) Serve(ctx context.Context, address string) (link string, stop func() error, err error) {
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

// serve serves the board where --listen says, and says so. It returns what ends that.
func (o options) serve(ctx context.Context, on *board, to *screen) (stop func() error, err error) {
	if o.listen == "" {
		return func() error { return nil }, nil
	}
	link, stop, err := on.Serve(ctx, o.listen)
	if err == nil {
		to.Print("status: " + link + ", metrics at " + link + "metrics")
	}
	return stop, err
}
