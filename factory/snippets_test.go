package factory_test

import (
	"context"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
)

// A block of docs/which-informer.md, with what it takes for granted.
func snippetOfALease(ctx context.Context, registry *factory.Factory, east informer.DynamicListerWatcherFactory, handler informer.ResourceEventHandler) error {
	lease, err := registry.AcquireSharedResourceVersion(pods, factory.InformerOptions{Cluster: "east"}, informer.InformerConfig{
		ListerWatcher: east.ForResource("", pods),
	})
	if err != nil {
		return err
	}
	defer lease.Release() // the last lease ends the informer
	registration, err := lease.Informer.AddEventHandler(handler)
	if err != nil {
		return err
	}
	defer lease.Informer.RemoveHandler(registration)
	if err := lease.Start(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

var _ = snippetOfALease
