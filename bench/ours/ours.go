// Package ours makes contestants of this library's informers.
package ours

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/bench/race"
)

// Way is how a set is read.
type Way struct {
	Mode informer.ListMode
	// Plain asks for nothing that is compressed.
	Plain bool
}

// Contestant is one form of objects and one mode to read a set.
func Contestant(name, floor string, example runtime.Object, contentType string, mode informer.ListMode, scenarios ...race.Scenario) race.Contestant {
	return ContestantIn(Way{Mode: mode}, name, floor, example, contentType, scenarios...)
}

// ContestantIn is one form of objects and one way to read a set.
func ContestantIn(way Way, name, floor string, example runtime.Object, contentType string, scenarios ...race.Scenario) race.Contestant {
	return race.Contestant{Entry: race.Entry{Name: name, Floor: floor, Scenarios: scenarios}, Connect: func(t *race.Target) (race.Source, error) {
		config := t.Config()
		config.ContentType, config.DisableCompression = contentType, way.Plain
		if t.Control != "" {
			rename(config)
		}
		factory, err := informer.NewDynamicListerWatcherFactory(config)
		return &source{name: name, factory: factory, example: example, way: way}, err
	}}
}

// rename gives all simulated servers one name, for a checkpoint is of one server: the
// set a while later is on another one.
func rename(config *rest.Config) {
	address := strings.TrimPrefix(config.Host, "https://")
	config.Host, config.ServerName = "https://podserver", "127.0.0.1"
	dial := config.Dial
	config.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dial(ctx, network, address)
	}
}

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

type source struct {
	name    string
	factory informer.DynamicListerWatcherFactory
	example runtime.Object
	way     Way
	errors  atomic.Int64
}

// report shows the first failure: there should be none.
func (s *source) report(_ *informer.Reflector, err error) {
	if err != nil && s.errors.Add(1) <= 3 {
		fmt.Fprintf(os.Stderr, "%s: %v\n", s.name, err)
	}
}

func (s *source) Follow(ctx context.Context, f race.Follow) *race.Following {
	config := informer.InformerConfig{
		ListerWatcher:     s.factory.ForResource(f.Namespace, pods),
		Shard:             f.Shard,
		Storage:           f.Storage,
		ExampleObject:     s.example,
		ListMode:          s.way.Mode,
		WatchListPageSize: race.PageSize,
		ErrorHandler:      s.report,
		Handler:           f.Handler(),
	}
	if f.Checkpoint != "" {
		config.Checkpoint = informer.FileCheckpoint(f.Checkpoint)
	}
	if f.Handlers > 0 {
		return s.share(ctx, config, f.Handlers)
	}
	i := informer.NewResourceVersionInformer(s.name, config)
	var running sync.WaitGroup
	running.Go(func() { i.RunWithContext(ctx) })
	audit := func(ctx context.Context) error {
		report, err := i.Audit(ctx, informer.AuditOptions{BytesPerSecond: -1})
		if err == nil && report.Differences() > 0 {
			err = fmt.Errorf("%d differences, where there are none", report.Differences())
		}
		return err
	}
	return &race.Following{Synced: i.HasSyncedChecker().Done(), Wait: running.Wait, Audit: audit}
}

// share follows with n handlers of one informer. The first is the one of config. The others do
// nothing.
func (s *source) share(ctx context.Context, config informer.InformerConfig, n int) *race.Following {
	told := config.Handler
	config.Handler = nil
	i := informer.NewSharedResourceVersionInformer(s.name, config)
	for h := range n {
		handler := informer.ResourceEventHandler(informer.ResourceEventHandlerFuncs{})
		if h == 0 {
			handler = told
		}
		if _, err := i.AddEventHandler(handler); err != nil {
			panic(err) // the configuration is this program's
		}
	}
	var running sync.WaitGroup
	running.Go(func() { i.RunWithContext(ctx) })
	return &race.Following{Synced: i.HasSyncedChecker().Done(), Wait: running.Wait}
}
