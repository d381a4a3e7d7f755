package main

import (
	"context"
	"errors"

	"github.com/rvinformer/informer/bench/race"
	"github.com/rvinformer/informer/e2e/cluster"
)

// realPadding makes the harness's pods about as large as the simulated ones.
const realPadding = 3400

// startRealServer builds and starts a kube-apiserver and an etcd, and creates
// pods.
func startRealServer(ctx context.Context, pods int) (_ *server, err error) {
	binaries, err := cluster.Build(ctx, "")
	if err != nil {
		return nil, err
	}
	c, err := cluster.Start(ctx, cluster.Options{Binaries: binaries})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	namespace, err := c.CreateNamespace(ctx, "bench")
	if err != nil {
		return nil, err
	}
	objects, err := c.Pods(namespace)
	if err != nil {
		return nil, err
	}
	objects.Padding = realPadding
	if err := objects.Fill(ctx, pods); err != nil {
		return nil, err
	}
	config := c.Config()
	return &server{
		target: race.Target{Host: config.Host, CA: config.CAData, Token: config.BearerToken, Objects: pods},
		stop:   c.Close,
	}, nil
}
