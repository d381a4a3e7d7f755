// Command example keeps the pods of a cluster in a PostgreSQL database, a row for each.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/sqlsink"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config := &rest.Config{Host: "http://127.0.0.1:8001"} // kubectl proxy
	if err := follow(ctx, config, os.Getenv("DATABASE")); err != nil {
		log.Fatal(err)
	}
}

// follow keeps the database in step with the cluster until ctx ends.
func follow(ctx context.Context, config *rest.Config, address string) (err error) {
	sink, err := sqlsink.Open(ctx, sqlsink.Config{Address: address, Columns: []sqlsink.Column{
		{Name: "node", Path: "spec.nodeName"},
		{Name: "app", Path: `metadata.labels.app\.kubernetes\.io/name`}, // a dot within a name
		{Name: "created", Path: "metadata.creationTimestamp", Type: sqlsink.Timestamp},
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sink.Close()) }()
	factory, err := informer.NewDynamicListerWatcherFactory(config)
	if err != nil {
		return err
	}
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	place := sink.Place("production", pods) // the name of the cluster is yours
	storage, err := place.Storage(ctx)      // what the rows say that was seen
	if err != nil {
		return err
	}
	i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
		ListerWatcher: factory.ForResource("", pods),
		ExampleObject: &informer.RawObject{}, // JSON as it comes, not decoded
		Storage:       storage,
		BatchHandler:  place.Handler(),    // a batch is a transaction
		Checkpoint:    place.Checkpoint(), // in the database too
	})
	i.RunWithContext(sink.Context(ctx)) // until ctx ends, or another program takes the database
	return sink.Err()
}
