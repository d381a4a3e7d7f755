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
type Demo []*Cluster

// Cluster is one simulated API server, and the objects that are in it.
type Cluster struct {
	Name   string
	Server *informertest.Server
	Stock  []*Stock // one per kind of object
}

// Names are those of the clusters of a demo.
func Names() []string { return []string{"demo-amsterdam", "demo-berlin", "demo-cordoba"} }

// New starts the clusters, and fills them with so many objects in all.
func New(ctx context.Context, objects int) (d Demo, err error) {
	filling, ctx := errgroup.WithContext(ctx)
	for i, name := range Names() {
		share := objects*(i+1)/len(Names()) - objects*i/len(Names())
		c := &Cluster{Name: name, Server: informertest.NewServer(informertest.Options{})}
		d = append(d, c)
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
	percent := 0 // of the kinds so far
	for _, kind := range Kinds() {
		n := objects*(percent+kind.percent)/100 - objects*percent/100
		percent += kind.percent
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

// Close ends the servers.
func (d Demo) Close() {
	for _, c := range d {
		c.Server.Close()
	}
}
