// Command demo keeps the ConfigMaps of a simulated cluster in a stream while they change. The NATS
// server runs in the same process, with its data in a temporary directory.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"os"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/examples/stream"
	"github.com/rvinformer/informer/informertest"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func main() {
	dir, err := os.MkdirTemp("", "stream")
	if err == nil {
		err = errors.Join(demo(os.Stdout, dir), os.RemoveAll(dir))
	}
	if err != nil {
		log.Fatal(err)
	}
}

// demo changes ConfigMaps, and then compares the table of a consumer with the cluster.
func demo(out io.Writer, dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cluster := informertest.NewServer(informertest.Options{})
	defer cluster.Close()
	js, stop, err := startNATS(dir)
	if err != nil {
		return err
	}
	defer stop()
	i, err := newInformer(ctx, js, jetstream.StreamConfig{Name: "configmaps"}, cluster.Config(), time.Second)
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { defer close(ended); i.RunWithContext(ctx) }()
	defer func() { cancel(); <-ended }()

	const changes = 2000
	for range changes {
		if err := change(cluster, 300, rand.IntN); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	if err := i.WaitUntil(ctx, cluster.ResourceVersion()); err != nil {
		return err
	}
	versions, err := consume(ctx, js)
	if err != nil {
		return err
	}
	objects, err := cluster.ResourceVersions(configMaps, "")
	if err != nil {
		return err
	}
	if !maps.Equal(objects, versions) {
		return fmt.Errorf("the stream has %v, and the cluster %v", versions, objects)
	}
	_, err = fmt.Fprintf(out, "After %d changes, a consumer of the stream and the cluster have the same %d ConfigMaps.\n", changes, len(objects))
	return err
}

// newInformer returns an informer that delivers to the stream.
func newInformer(ctx context.Context, js jetstream.JetStream, config jetstream.StreamConfig, cluster *rest.Config, saveEvery time.Duration) (informer.ResourceVersionInformer, error) {
	sink, err := stream.Open(ctx, js, config)
	if err != nil {
		return nil, err
	}
	factory, err := informer.NewDynamicListerWatcherFactory(cluster)
	if err != nil {
		return nil, err
	}
	return informer.NewResourceVersionInformer("configmaps", informer.InformerConfig{
		ListerWatcher:      factory.ForResource("", configMaps),
		ExampleObject:      &informer.RawObject{},
		BatchHandler:       informer.IgnoreSynced(sink),
		Storage:            sink.Known,
		Checkpoint:         sink,
		CheckpointInterval: saveEvery,
	}), nil
}

// consume returns the resource versions of the objects in the stream, by their keys.
func consume(ctx context.Context, js jetstream.JetStream) (map[string]string, error) {
	s, err := js.Stream(ctx, "configmaps")
	if err != nil {
		return nil, err
	}
	table, err := stream.Read(ctx, s, false)
	versions := map[string]string{}
	for key, c := range table {
		if !c.Deleted {
			versions[key] = c.ResourceVersion
		}
	}
	return versions, err
}

// change deletes, updates or creates one of so many ConfigMaps.
func change(cluster *informertest.Server, objects int, dice func(int) int) error {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("settings-", dice(objects))}}
	if dice(4) == 0 {
		if err := cluster.Delete(configMaps, o.Namespace, o.Name); !apierrors.IsNotFound(err) {
			return err
		}
	}
	o.Data = map[string]string{"value": fmt.Sprint(dice(1 << 30))}
	_, err := cluster.Update(configMaps, o)
	if apierrors.IsNotFound(err) {
		_, err = cluster.Create(configMaps, o)
	}
	return err
}
