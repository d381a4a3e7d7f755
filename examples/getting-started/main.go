// Command getting-started mirrors the ConfigMaps of a cluster into a directory, a file for each.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config := &rest.Config{Host: "http://127.0.0.1:8001"} // kubectl proxy
	if err := mirror(ctx, config, "mirror"); err != nil {
		log.Fatal(err)
	}
}

// mirror keeps dir in step with the cluster until ctx ends.
func mirror(ctx context.Context, config *rest.Config, dir string) error {
	factory, err := informer.NewDynamicListerWatcherFactory(config)
	if err != nil {
		return err
	}
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	i := informer.NewResourceVersionInformer("configmaps", informer.InformerConfig{
		ListerWatcher: factory.ForResource("", configMaps),          // "": all namespaces
		ExampleObject: &informer.RawObject{},                        // bytes, not decoded
		BatchHandler:  informer.IgnoreSynced(directory(dir)),        // unchanged objects are skipped
		Checkpoint:    informer.FileCheckpoint(dir + ".checkpoint"), // where the next process goes on
	})
	i.RunWithContext(ctx) // lists, watches and retries; returns after its last goroutine
	return nil
}

// directory is a BatchHandler.
type directory string

func (d directory) OnBatch(_ context.Context, events []informer.Event) error {
	for _, event := range events {
		if err := d.apply(event); err != nil {
			return err // nothing is acknowledged: the batch comes again
		}
	}
	return nil // everything is acknowledged: the checkpoint moves
}

// apply can be repeated, because an event may come twice.
func (d directory) apply(event informer.Event) error {
	file := filepath.Join(string(d), event.Key+".json") // the key is namespace/name
	if event.Type == informer.Deleted {
		return os.RemoveAll(file)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file+"~", event.Object.(*informer.RawObject).Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(file+"~", file)
}
