package sqlsink_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// identified is a server of a cluster of its own, which serves widgets in a version, with so many of them.
func identified(t *testing.T, version string, number int) *informertest.Server {
	at := widgets
	at.Version = version
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	s := informertest.NewServer(informertest.Options{Resources: []informertest.Resource{
		{GroupVersionResource: namespaces, Kind: "Namespace"},
		{GroupVersionResource: pods, Kind: "Pod", Namespaced: true},
		{GroupVersionResource: at, Kind: "Widget", Namespaced: true, Custom: true},
	}})
	t.Cleanup(s.Close)
	_, err := s.Create(namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}})
	require.NoError(t, err)
	for i := range number {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetAPIVersion(at.GroupVersion().String())
		object.SetKind("Widget")
		object.SetNamespace("ns")
		object.SetName(fmt.Sprint(i))
		_, err := s.Create(at, object)
		require.NoError(t, err)
	}
	return s
}

// following is an informer of a target, which ends with the test or stop.
func following(t *testing.T, sink *sqlsink.Sink, cluster *informertest.Server, target fleet.Target, anew bool) (i informer.ResourceVersionInformer, stop func()) {
	return filling(t, sink.Target(target), informer.InformerConfig{
		ListerWatcher: listing(t, cluster, "", target.Resource), Shard: target.Shard, BeginAnew: anew})
}

func listing(t *testing.T, cluster *informertest.Server, namespace string, resource schema.GroupVersionResource) cache.ListerWatcher {
	lists, err := informer.NewDynamicListerWatcherFactory(cluster.Config())
	require.NoError(t, err)
	return lists.ForResource(namespace, resource)
}

// filling is an informer of a configuration that fills a place, which ends with the test or stop.
func filling(t *testing.T, place sqlsink.Place, config informer.InformerConfig) (i informer.ResourceVersionInformer, stop func()) {
	storage, err := place.Storage(t.Context())
	require.NoError(t, err)
	config.ExampleObject, config.Storage, config.BatchHandler, config.Checkpoint = &informer.RawObject{}, storage, place.Handler(), place.Checkpoint()
	i = informer.NewResourceVersionInformer(place.String(), config)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		i.RunWithContext(ctx)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return i, stop
}

func requireSynced(t *testing.T, i informer.ResourceVersionInformer) {
	t.Helper()
	require.Eventually(t, i.HasSynced, soon, 10*time.Millisecond)
}

// The rows of a cluster stay where another one is at its address, although the place has no checkpoint
// of its own: the resource is of another version there, or new, or is divided into other shards. Where
// that is meant, BeginAnew goes on.
func TestRowsStayWhereAnotherClusterIs(t *testing.T) {
	all := fleet.Target{Unit: fleet.Unit{Cluster: "here", Group: "all"}, Resource: widgets}
	newer, others := all, all
	newer.Resource.Version, others.Resource = "v2", pods
	half := all
	half.Shard = informer.Shard{Key: informer.ShardByUID}.Split(2)[0]
	for name, target := range map[string]fleet.Target{"another version": newer, "another resource": others, "another shard": half} {
		t.Run(name, func(t *testing.T) {
			overBoth(t, func(t *testing.T, address string) {
				if !target.Shard.IsAll() && strings.HasPrefix(address, "sqlite:") {
					t.Skip("a file has no shards")
				}
				sink := opened(t, sqlsink.Config{Address: address})
				i, stop := following(t, sink, identified(t, "v1", 200), all, false)
				requireSynced(t, i)
				stop()
				before := objects(t, sink.Target(all))
				require.Len(t, before, 200)

				another := identified(t, target.Resource.Version, 20)
				i, stop = following(t, sink, another, target, false)
				require.Eventually(t, func() bool {
					return i.HasSynced() || i.Status().CheckpointError != nil
				}, soon, 10*time.Millisecond)
				require.ErrorIs(t, i.Status().CheckpointError, informer.ErrCheckpointSource)
				require.Equal(t, before, objects(t, sink.Target(all)))
				stop()

				i, stop = following(t, sink, another, target, true)
				requireSynced(t, i)
				stop()
				i, stop = following(t, sink, another, target, false)
				requireSynced(t, i)
				stop()
			})
		})
	}
}

// In the same cluster, a place without a checkpoint of its own is listed.
func TestAnotherVersionOfTheSameClusterIsListed(t *testing.T) {
	all := fleet.Target{Unit: fleet.Unit{Cluster: "here", Group: "all"}, Resource: widgets}
	overBoth(t, func(t *testing.T, address string) {
		cluster := identified(t, "v1", 3)
		sink := opened(t, sqlsink.Config{Address: address})
		i, stop := following(t, sink, cluster, all, false)
		requireSynced(t, i)
		stop()
		create(t, cluster, "a")
		others := all
		others.Resource = pods
		i, stop = following(t, sink, cluster, others, false)
		requireSynced(t, i)
		stop()
		require.Len(t, objects(t, sink.Target(others)), 1)
	})
}

// A user who deletes all rows of a cluster may fill it from another one.
func TestAnotherClusterFillsAPlaceWithoutRows(t *testing.T) {
	all := fleet.Target{Unit: fleet.Unit{Cluster: "here", Group: "all"}, Resource: widgets}
	others := all
	others.Resource = pods
	path := filepath.Join(t.TempDir(), "test.db")
	sink := opened(t, sqlsink.Config{Address: "sqlite:" + path})
	i, stop := following(t, sink, identified(t, "v1", 3), all, false)
	requireSynced(t, i)
	stop()
	execute(t, path, "DELETE FROM objects")
	another := identified(t, "v1", 2)
	create(t, another, "a")
	for _, target := range []fleet.Target{others, all} {
		i, stop = following(t, sink, another, target, false)
		requireSynced(t, i)
		stop()
	}
	require.Len(t, objects(t, sink.Target(all)), 2)
}
