// Command fleet mirrors all resources of some clusters into a directory, a file for each object.
package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/statuspage"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	f, err := newFleet("clusters")
	if err != nil {
		log.Fatal(err)
	}
	for _, arg := range os.Args[1:] { // east=http://127.0.0.1:8001
		name, host, _ := strings.Cut(arg, "=")
		if err := f.Add(name, &rest.Config{Host: host}); err != nil { // also later, while the fleet runs
			log.Fatal(err)
		}
	}
	go func() { log.Print(http.ListenAndServe("localhost:8080", statuspage.Of(f.Registry()))) }()
	f.Run(ctx) // returns when the last handler has returned and all checkpoints are saved
}

// newFleet returns a fleet that keeps dir in step with its clusters.
func newFleet(dir string) (*fleet.Fleet, error) {
	return fleet.New(fleet.Config{
		Groups: []fleet.Group{{
			Resources: []string{"*"},
			Except:    []string{"secrets", "events", "*.events.k8s.io", "leases.coordination.k8s.io"},
		}},
		// Configure is called for each resource of each cluster.
		Configure: func(_ context.Context, t fleet.Target) (informer.InformerConfig, error) {
			place := filepath.Join(dir, t.Cluster, t.Resource.GroupResource().String())
			return informer.InformerConfig{
				ExampleObject: &informer.RawObject{}, // bytes, not decoded
				BatchHandler:  informer.IgnoreSynced(directory(place)),
				Checkpoint:    informer.FileCheckpoint(filepath.Join(place, "."+t.Resource.Version+".checkpoint")),
			}, os.MkdirAll(place, 0o755)
		},
	})
}

// directory is a BatchHandler. An event may come twice, so each write can be repeated.
type directory string

func (d directory) OnBatch(_ context.Context, events []informer.Event) error {
	for _, event := range events {
		if err := d.apply(event); err != nil {
			return err // nothing is acknowledged: the batch comes again
		}
	}
	return nil // everything is acknowledged: the checkpoint moves
}

func (d directory) apply(event informer.Event) error {
	file := filepath.Join(string(d), event.Key+".json") // the key is namespace/name, or name
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
