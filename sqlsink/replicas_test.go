package sqlsink_test

import (
	"context"
	"testing"
	"time"

	"github.com/rvinformer/informer/fleet/shards"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// replicate is the block of docs/sqlsink.md.
func replicate(ctx context.Context, address string, coordinating kubernetes.Interface, configs map[string]*rest.Config) error {
	sink, err := sqlsink.Open(ctx, sqlsink.Config{Address: address, Shards: 1}) // one part for each cluster
	if err != nil {
		return err
	}
	defer sink.Close()
	clusters, err := newFleet(sink)
	if err != nil {
		return err
	}
	for name, config := range configs {
		if err := clusters.Add(name, config); err != nil {
			return err
		}
	}
	replica, err := shards.New(shards.Config{
		Client:    coordinating.CoordinationV1(), // a clientset of the coordinating cluster
		Namespace: "mirror",
		Name:      "mirror",
		Work:      clusters,
	})
	if err != nil {
		return err
	}
	return replica.Run(ctx) // until ctx ends
}

// Two processes share two clusters, and a database.
func TestReplicasShareADatabase(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	coordinator, east, west := newCluster(t, 0), newCluster(t, 3), newCluster(t, 4)
	coordinator.AddResource(informertest.Resource{GroupVersionResource: coordinationv1.SchemeGroupVersion.WithResource("leases"), Kind: "Lease", Namespaced: true})
	config := coordinator.Config()
	config.QPS = -1
	coordinating, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	configs := map[string]*rest.Config{"east": east.Config(), "west": west.Config()}

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for range 2 {
		go func() { ended <- replicate(ctx, address, coordinating, configs) }()
	}
	reader := opened(t, sqlsink.Config{Address: address, Shards: 1})
	count := func(cluster string) int { return len(stored(t, reader.Place(cluster, pods))) }
	require.Eventually(t, func() bool { return count("east") == 3 && count("west") == 4 }, soon, 10*time.Millisecond)
	cancel()
	for range 2 {
		require.NoError(t, <-ended)
	}
}
