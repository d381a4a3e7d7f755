package fleet_test

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/metrics"
	"github.com/rvinformer/informer/statuspage"
)

// The blocks of docs/fleet.md behind its program, with what they take for granted.
func snippets(ctx context.Context, f *fleet.Fleet, sink interface {
	Resources(context.Context, fleet.Unit) ([]schema.GroupVersionResource, error)
}, replaced *rest.Config) error {
	var err error
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
