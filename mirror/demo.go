package main

import (
	"context"
	"fmt"

	"github.com/rvinformer/informer/informertest"
	"golang.org/x/sync/errgroup"
)

// demo is a set of simulated clusters inside this process. They speak real HTTP on the loopback
// device.
type demo struct {
	clusters []*demoCluster
}

// demoCluster is one simulated API server and the objects that are in it.
type demoCluster struct {
	name   string
	server *informertest.Server
	stock  []*stock // one per kind of object
}

func demoNames() []string { return []string{"demo-amsterdam", "demo-berlin", "demo-cordoba"} }

// newDemo starts the clusters and fills them with about so many objects in all.
func newDemo(ctx context.Context, objects int) (*demo, error) {
	d := &demo{}
	filling, ctx := errgroup.WithContext(ctx)
	for i, name := range demoNames() {
		c := &demoCluster{name: name, server: informertest.NewServer(informertest.Options{})}
		d.clusters = append(d.clusters, c)
		share := objects*(i+1)/len(demoNames()) - objects*i/len(demoNames())
		filling.Go(func() error { return c.fill(ctx, share) })
	}
	if err := filling.Wait(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// fill creates the objects, each kind with its part of them.
func (c *demoCluster) fill(ctx context.Context, objects int) error {
	left := objects
	for _, kind := range demoKinds() {
		n := objects * kind.percent / 100
		if kind.percent == 0 {
			n = left // the last kind takes the rest, so that the sum is what was asked for
		}
		left -= n
		s := &stock{kind: kind, server: c.server}
		c.stock = append(c.stock, s)
		if err := s.Fill(ctx, n); err != nil {
			return fmt.Errorf("filling %s: %w", c.name, err)
		}
	}
	return nil
}

// Endpoints returns how to reach the clusters.
func (d *demo) Endpoints() []endpoint {
	var endpoints []endpoint
	for _, c := range d.clusters {
		endpoints = append(endpoints, endpoint{c.name, c.server.Config()})
	}
	return endpoints
}

// Close ends the servers.
func (d *demo) Close() {
	for _, c := range d.clusters {
		c.server.Close()
	}
}
