// Package demo has simulated clusters to try mirror with. They run inside the process, speak HTTP on
// the loopback device, and change.
package demo

import (
	"context"
	"fmt"

	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/mirror/internal/clusters"
	"golang.org/x/sync/errgroup"
)

// Demo is a set of simulated clusters.
type Demo struct {
	Clusters []*Cluster
}

// Cluster is one simulated API server, and the objects that are in it.
type Cluster struct {
	Name   string
	Server *informertest.Server
	Stock  []*Stock // one per kind of object
}

// Names are those of the clusters of a demo.
func Names() []string { return []string{"demo-amsterdam", "demo-berlin", "demo-cordoba"} }

// New starts the clusters, and fills them with so many objects in all.
func New(ctx context.Context, objects int) (*Demo, error) {
	d := &Demo{}
	filling, ctx := errgroup.WithContext(ctx)
	for i, name := range Names() {
		share := objects*(i+1)/len(Names()) - objects*i/len(Names())
		c := &Cluster{Name: name, Server: informertest.NewServer(informertest.Options{})}
		d.Clusters = append(d.Clusters, c)
		filling.Go(func() error { return c.Fill(ctx, share) })
	}
	if err := filling.Wait(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Fill creates objects of all kinds.
func (c *Cluster) Fill(ctx context.Context, objects int) error {
	left := objects
	for _, kind := range Kinds() {
		n := objects * kind.percent / 100
		if kind.percent == 0 {
			n = left // the last kind takes the rest, so that the sum is what was asked for
		}
		left -= n
		s := &Stock{Kind: kind, server: c.Server}
		c.Stock = append(c.Stock, s)
		if err := s.Fill(ctx, n); err != nil {
			return fmt.Errorf("filling %s: %w", c.Name, err)
		}
	}
	return nil
}

// Endpoint is how to reach the cluster.
func (c *Cluster) Endpoint() clusters.Endpoint {
	return clusters.Endpoint{Name: c.Name, Client: c.Server.Config()}
}

// Endpoints are how to reach the clusters.
func (d *Demo) Endpoints() (all []clusters.Endpoint) {
	for _, c := range d.Clusters {
		all = append(all, c.Endpoint())
	}
	return all
}

// Close ends the servers.
func (d *Demo) Close() {
	for _, c := range d.Clusters {
		c.Server.Close()
	}
}
