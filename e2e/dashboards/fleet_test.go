package dashboards_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/fleet/shards"
	"github.com/rvinformer/informer/informertest"
)

// fleetFaults are those of replicas that share a fleet, for each alert that is for one.
var fleetFaults = map[string]func(w *sharedWork){
	"FleetUnitUncovered": func(w *sharedWork) {
		w.refused.Store(true)
		w.set(fleet.Unit{Cluster: "west", Group: "all"}, fleet.Unit{Cluster: "east", Group: "all"})
	},
	"FleetRangeUncovered": func(w *sharedWork) {
		w.set(fleet.Unit{Cluster: "east", Group: "all", Shard: informer.Shard{Key: informer.ShardByUID, End: 1 << 63}})
	},
	"FleetUnitFailing":       func(w *sharedWork) { close(w.failing) },
	"FleetReplicaMayNotWork": func(w *sharedWork) { w.away.Store(true) },
}

// sharedWork is the work of one replica, and the way to its Leases.
type sharedWork struct {
	// refused is that no new Lease can be made, and away that the server of the Leases cannot be
	// reached.
	refused, away atomic.Bool
	// failing is closed when RunUnit fails.
	failing chan struct{}

	mu      sync.Mutex
	units   []fleet.Unit
	changed chan struct{}
}

func (w *sharedWork) Units() []fleet.Unit {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.units
}

func (w *sharedWork) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

func (w *sharedWork) set(units ...fleet.Unit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.units = units
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *sharedWork) RunUnit(ctx context.Context, _ fleet.Unit) error {
	select {
	case <-ctx.Done():
		return nil
	case <-w.failing:
		return errors.New("the database is away")
	}
}

// over is the way to the Leases.
func (w *sharedWork) over(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		switch {
		case w.away.Load():
			return nil, errors.New("the network is away")
		case w.refused.Load() && r.Method == http.MethodPost:
			return &http.Response{
				StatusCode: http.StatusForbidden, Header: http.Header{}, Request: r, Body: io.NopCloser(strings.NewReader("not allowed")),
			}, nil
		}
		return next.RoundTrip(r)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// playFleet is play for a replica of a fleet.
func playFleet(t *testing.T, begin func(w *sharedWork)) (seen scrapes, began time.Time) {
	synctest.Test(t, func(t *testing.T) {
		leases := informertest.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, Kind: "Lease", Namespaced: true}
		server := informertest.NewServer(informertest.Options{InMemory: true, Resources: []informertest.Resource{leases}})
		w := &sharedWork{failing: make(chan struct{}), units: []fleet.Unit{{Cluster: "east", Group: "all"}}, changed: make(chan struct{})}
		config := rest.CopyConfig(server.Config())
		config.Wrap(w.over)
		client, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		replica, err := shards.New(shards.Config{Client: client.CoordinationV1(), Namespace: "fleet", Name: "mirror", Identity: "one", Work: w})
		require.NoError(t, err)
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(replica)
		ctx, stop := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { _ = replica.Run(ctx) })
		pass := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); {
				time.Sleep(scrapeEvery)
				synctest.Wait()
				seen.scrape(t, registry)
			}
		}
		pass(wellFor)
		began = time.Now()
		begin(w)
		pass(brokenFor)
		stop()
		running.Wait()
		server.Close()
	})
	return seen, began
}
