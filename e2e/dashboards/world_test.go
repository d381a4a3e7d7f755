package dashboards_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/metrics"
)

const (
	scrapeEvery = 30 * time.Second
	// wellFor is for how long both informers are well, and brokenFor for how long one of them is
	// not.
	wellFor, brokenFor = 30 * time.Minute, 3 * time.Hour
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// fault is what goes wrong with an informer.
type fault struct {
	// config changes the informer from its beginning.
	config func(w *world, c *informer.InformerConfig)
	// quiet tells that nothing changes at its server.
	quiet bool
	// begin begins the fault.
	begin func(w *world)
}

// world has the informer that breaks and its server.
type world struct {
	t *testing.T
	*informertest.Server
	backup    *informertest.Backup
	collector *metrics.Collector
	// failing and hanging tell how the handler is, and full that nothing can be saved.
	failing, full atomic.Bool
	hanging       chan struct{}
	pods          int
	storage       *informer.ResourceVersionStorage
	// stop ends the informer that breaks. A standby is not started.
	stop    context.CancelFunc
	standby bool
}

// play has two informers run, each of a cluster of its own. The one of the cluster "broken" meets
// the fault after a while. It returns what Prometheus sees, and when the fault began.
func play(t *testing.T, f fault) (seen scrapes, began time.Time) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, collector: metrics.NewCollector(), hanging: make(chan struct{}), storage: informer.NewResourceVersionStorage()}
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(w.collector)
		ctx, stop := context.WithCancel(context.Background())
		var informers sync.WaitGroup
		run := func(ctx context.Context, cluster string, change func(c *informer.InformerConfig)) *informertest.Server {
			server := informertest.NewServer(informertest.Options{InMemory: true})
			create(t, server, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "Namespace", "", "kube-system")
			for i := range 20 {
				create(t, server, pods, "Pod", "default", fmt.Sprint("pod-", i))
			}
			lw, err := informer.NewDynamicListerWatcherFactory(server.Config())
			require.NoError(t, err)
			c := informer.InformerConfig{
				ListerWatcher: lw.ForResource("", pods), ListMode: informer.ListModePaged, Checkpoint: &disk{}, CheckpointInterval: time.Minute,
				BatchHandler: informer.BatchHandlerFunc(func(context.Context, []informer.Event) error { return nil }),
				ErrorHandler: func(*informer.Reflector, error) {},
			}
			change(&c)
			i := informer.NewResourceVersionInformer(cluster, c)
			w.collector.Add(metrics.Labels{Cluster: cluster, Version: "v1", Resource: "pods", Informer: "mirror"}, i)
			if cluster != "broken" || !w.standby {
				informers.Go(func() { i.RunWithContext(ctx) })
			}
			return server
		}
		well := run(ctx, "well", func(*informer.InformerConfig) {})
		broken, stopBroken := context.WithCancel(ctx)
		w.stop = stopBroken
		w.Server = run(broken, "broken", func(c *informer.InformerConfig) {
			c.BatchHandler, c.Checkpoint = informer.BatchHandlerFunc(w.handle), &disk{full: &w.full}
			if f.config != nil {
				f.config(w, c)
			}
		})
		w.backup = w.Backup()
		pass := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); {
				time.Sleep(scrapeEvery)
				w.change(well)
				if !f.quiet {
					w.change(w.Server)
				}
				synctest.Wait()
				seen.scrape(t, registry)
			}
		}
		pass(wellFor)
		began = time.Now()
		if f.begin != nil {
			f.begin(w)
		}
		pass(brokenFor)
		w.failing.Store(false)
		close(w.hanging)
		stop()
		informers.Wait()
		well.Close()
		w.Close()
	})
	return seen, began
}

// change has a pod come, and each third one go.
func (w *world) change(server *informertest.Server) {
	w.pods++
	name := fmt.Sprint("later-", w.pods)
	create(w.t, server, pods, "Pod", "default", name)
	if w.pods%3 == 0 {
		require.NoError(w.t, server.Delete(pods, "default", name))
	}
}

func create(t *testing.T, server *informertest.Server, of schema.GroupVersionResource, kind, namespace, name string) {
	metadata := map[string]interface{}{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	_, err := server.Create(of, &unstructured.Unstructured{Object: map[string]interface{}{"apiVersion": "v1", "kind": kind, "metadata": metadata}})
	require.NoError(t, err)
}

// handle is the handler of the informer that breaks.
func (w *world) handle(context.Context, []informer.Event) error {
	if w.failing.Load() {
		return errors.New("the database is away")
	}
	return nil
}

// transform is a Transform that fails when it is told to.
func (w *world) transform(obj interface{}) (interface{}, error) {
	if w.failing.Load() {
		return nil, errors.New("an unknown field")
	}
	return obj, nil
}

// hang is a handler that does not return any more when it is told to.
func (w *world) hang(ctx context.Context, _ []informer.Event) error {
	if !w.failing.Load() {
		return nil
	}
	select {
	case <-w.hanging:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// disk is a checkpoint in memory that may be full.
type disk struct{ full *atomic.Bool }

func (d *disk) Load(context.Context) (io.ReadCloser, error) { return nil, fs.ErrNotExist }

func (d *disk) Save(_ context.Context, write func(io.Writer) error) error {
	if d.full != nil && d.full.Load() {
		return errors.New("no space left on device")
	}
	return write(io.Discard)
}
