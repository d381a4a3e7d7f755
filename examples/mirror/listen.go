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
	"github.com/rvinformer/informer/statuspage"
)

// board shows the informers of a run to those who operate it: a status page with health checks, and metrics.
type board struct {
	page    *statuspage.Page
	metrics *metrics.Collector
	replica *shards.Replica // nil where the work is not shared
}

func newBoard() *board {
	b := &board{page: statuspage.New(), metrics: metrics.NewCollector()}
	b.page.Title = "mirror"
	return b
}

// Show adds the informer of a place.
func (b *board) Show(at place, source statuspage.Source) (remove func()) {
	labels := statuspage.Labels{
		Cluster: at.cluster, Group: at.resource.Group, Version: at.resource.Version, Resource: at.resource.Resource,
	}
	offPage, offMetrics := b.page.Add(labels, source), b.metrics.Add(labels, source)
	return func() {
		offPage()
		offMetrics()
	}
}

// ShowReplica adds a replica, and the units that it shares with others.
func (b *board) ShowReplica(replica *shards.Replica) {
	b.replica = replica
	replica.ShowOn(b.page, b.metrics)
}

// ShowDiscovery adds the discovery of a cluster, so that the process is not ready before the resources are known.
func (b *board) ShowDiscovery(cluster string, source statuspage.Source) (remove func()) {
	return b.page.Add(statuspage.Labels{Cluster: cluster, Informer: "discovery"}, source)
}

// handler serves the page and its health checks at the root, the metrics at /metrics, and the units at /units where the work is shared.
func (b *board) handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(b.metrics, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	if b.replica != nil {
		registry.MustRegister(b.replica)
		mux.Handle("/units", unitsPage{b.replica.Status})
	}
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("/", b.page)
	return mux
}

// Serve serves the board on an address until the context ends: then /readyz fails, and stop ends the rest. The link is that of
// the page.
func (b *board) Serve(ctx context.Context, address string) (link string, stop func() error, err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, fmt.Errorf("--listen %s: %w", address, err)
	}
	server := &http.Server{Handler: b.handler(), ReadHeaderTimeout: 10 * time.Second}
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
