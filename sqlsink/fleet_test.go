package sqlsink_test

import (
	"context"
	"testing"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
)

// newFleet is the block of docs/sqlsink.md.
func newFleet(sink *sqlsink.Sink) (*fleet.Fleet, error) {
	return fleet.New(fleet.Config{
		Configure: func(ctx context.Context, t fleet.Target) (informer.InformerConfig, error) {
			place := sink.Target(t)
			storage, err := place.Storage(ctx)
			return informer.InformerConfig{
				ExampleObject: &informer.RawObject{},
				Storage:       storage,
				BatchHandler:  place.Handler(),
				Checkpoint:    place.Checkpoint(),
			}, err
		},
		Known: sink.Known, // so that the rows of a resource that is gone are deleted
	})
}

// A fleet follows all resources of clusters, and removes the rows of a resource that is gone, also
// if that went while nothing ran.
func TestFleetFollowsAllResources(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		east, west := newCluster(t, 5), newCluster(t, 7)
		run := func(until func(sink *sqlsink.Sink) bool) {
			t.Helper()
			sink := open(t, sqlsink.Config{Address: address})
			f, err := newFleet(sink)
			require.NoError(t, err)
			for name, cluster := range map[string]*informertest.Server{"east": east, "west": west} {
				require.NoError(t, f.Add(name, cluster.Config()))
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				f.Run(ctx)
			}()
			require.Eventually(t, func() bool { return until(sink) }, soon, 10*time.Millisecond)
			cancel()
			<-ended
			require.NoError(t, sink.Close())
		}
		count := func(sink *sqlsink.Sink, cluster string) int { return len(stored(t, sink.Place(cluster, pods))) }
		run(func(sink *sqlsink.Sink) bool { return count(sink, "east") == 5 && count(sink, "west") == 7 })
		east.RemoveResource(pods)
		run(func(sink *sqlsink.Sink) bool { return count(sink, "east") == 0 && count(sink, "west") == 7 })
	})
}
