package fleet_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/metrics"
	"github.com/rvinformer/informer/statuspage"
)

// The blocks of docs/fleet.md, with what they take for granted.
func snippets(ctx context.Context, sink interface {
	informer.BatchHandler
	For(fleet.Target) informer.BatchHandler
	Resources(context.Context, fleet.Unit) ([]schema.GroupVersionResource, error)
}, east, replaced *rest.Config, dir string) error {
	f, err := fleet.New(fleet.Config{
		Groups: []fleet.Group{{Resources: []string{"*"}, Except: []string{"secrets", "events", "*.events.k8s.io", "leases.coordination.k8s.io"}}},
		Configure: func(ctx context.Context, t fleet.Target) (informer.InformerConfig, error) {
			return informer.InformerConfig{
				ExampleObject: &informer.RawObject{},
				BatchHandler:  sink.For(t),
				Checkpoint:    informer.FileCheckpoint(filepath.Join(dir, url.PathEscape(t.String()))),
			}, nil
		},
	})
	if err != nil {
		return err
	}
	if err := f.Add("east", east); err != nil {
		return err
	}
	go f.Run(ctx)

	err = f.WaitForSync(ctx, "east") // what has not synced when ctx ends, and why, is in the error
	if err != nil {
		return err
	}

	<-f.Remove("east") // no handler of it is called any more
	err = f.Add("east", replaced)
	if err != nil {
		return err
	}

	for _, c := range f.Clusters() {
		fmt.Println(c.Name, c.State, c.Since, c.SyncedInformers, c.Informers, c.Missing, c.LastError)
	}

	for _, i := range f.Informers("east", schema.GroupVersionResource{Group: "apps", Resource: "deployments"}) {
		var keys []string
		for _, letter := range i.DeadLetters() {
			keys = append(keys, letter.Key)
		}
		if len(keys) == 0 {
			continue // no keys would mean all objects
		}
		if err := i.Redeliver(ctx, informer.RedeliverOptions{Keys: keys}); err != nil {
			return fmt.Errorf("%v: %w", i.Target, err)
		}
	}

	page, collector := statuspage.Of(f.Registry()), metrics.Of(f.Registry())
	http.Handle("/", page)
	http.Handle("/metrics", collector.Handler())

	config := fleet.Config{
		Groups: []fleet.Group{
			{Name: "pods", Resources: []string{"pods"}, Shards: 4, ShardBy: informer.ShardByNamespace},
			{Name: "rest", Except: []string{"pods"}},
		},
	}

	config.Known = func(ctx context.Context, u fleet.Unit) ([]schema.GroupVersionResource, error) {
		return sink.Resources(ctx, u) // those that have rows there
	}
	return nil
}

var _ = snippets
