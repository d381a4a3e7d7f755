package fleet_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/informertest"
)

func TestClustersComeAndGo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		east, west := serve(t, informertest.Options{}), serve(t, informertest.Options{})
		create(t, east, pods, "a", "b")
		create(t, west, widgets, "w")
		m := newMirror()
		f := newFleet(t, m, fleet.Config{})
		require.NoError(t, f.Add("east", east.Config()))
		stop := start(t, f.Run)
		require.NoError(t, f.WaitForSync(t.Context()))
		m.requireRight(t, "east", east, pods)

		changed := f.Changed()
		require.NoError(t, f.Add("west", west.Config()))
		<-changed
		require.NoError(t, f.WaitForSync(t.Context(), "west"))
		m.requireRight(t, "west", west, widgets)
		require.True(t, f.HasSynced())
		require.Equal(t, []fleet.Unit{{Cluster: "east", Group: "all"}, {Cluster: "west", Group: "all"}}, f.Units())
		clusters := f.Clusters()
		require.Len(t, clusters, 2)
		require.Equal(t, fleet.ClusterKnown, clusters[0].State)
		require.Equal(t, 3, clusters[0].Informers)
		require.Equal(t, 3, clusters[0].SyncedInformers)
		require.NoError(t, clusters[0].LastError)

		m.told("east", pods)
		<-f.Remove("east")
		create(t, east, pods, "c")
		time.Sleep(time.Minute)
		require.Empty(t, m.told("east", pods), "neither deletions nor what is new")
		require.Len(t, f.Clusters(), 1)
		_, err := f.Cluster("east")
		require.False(t, err)
		<-f.Remove("east") // there is none
		stop()
		require.Equal(t, fleet.ClusterIdle, f.Clusters()[0].State)
		require.False(t, f.HasSynced())
	})
}

func TestAddRefuses(t *testing.T) {
	f := newFleet(t, newMirror(), fleet.Config{})
	config := &rest.Config{Host: "https://east.example.com"}
	require.NoError(t, f.Add("east", config))
	var refused *fleet.ClusterError
	for name, err := range map[string]error{"east": f.Add("east", config), "": f.Add("", config), "a/b": f.Add("a/b", config), "\xff": f.Add("\xff", config), "a\n": f.Add("a\n", config), "none": f.Add("none", nil)} {
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, name, refused.Cluster)
	}
	require.ErrorIs(t, f.Add("east", config), fleet.ErrClusterExists)
	require.ErrorIs(t, f.WaitForSync(t.Context(), "north"), fleet.ErrNoCluster)
}

func TestServerOfFactoryIsHeld(t *testing.T) {
	shared := factory.New()
	f := newFleet(t, newMirror(), fleet.Config{Factory: shared})
	require.NoError(t, f.Add("east", &rest.Config{Host: "https://east.example.com"}))
	var conflict *factory.ServerConflictError
	_, err := shared.UseServer("east", "https://other.example.com")
	require.ErrorAs(t, err, &conflict)
	f.Remove("east")
	release, err := shared.UseServer("east", "https://other.example.com")
	require.NoError(t, err)
	require.ErrorAs(t, f.Add("east", &rest.Config{Host: "https://east.example.com"}), &conflict)
	release()
	require.NoError(t, f.Add("east", &rest.Config{Host: "https://east.example.com"}))
}

func TestNewRefuses(t *testing.T) {
	configure := newMirror().configure
	for why, config := range map[string]fleet.Config{
		"Configure is required": {},
		"DiscoverEvery":         {Configure: configure, DiscoverEvery: -1},
		"two groups":            {Configure: configure, Groups: []fleet.Group{{}, {Name: "all"}}},
		"not UTF-8":             {Configure: configure, Groups: []fleet.Group{{Name: "\xff"}}},
		"slash":                 {Configure: configure, Groups: []fleet.Group{{Name: "a/b"}}},
		"-1 shards":             {Configure: configure, Groups: []fleet.Group{{Shards: -1}}},
		"shard key":             {Configure: configure, Groups: []fleet.Group{{Shards: 2, ShardBy: "metadata.name"}}},
		"no pattern":            {Configure: configure, Groups: []fleet.Group{{Resources: []string{"p*"}}}},
		"\".apps\"":             {Configure: configure, Groups: []fleet.Group{{Except: []string{".apps"}}}},
	} {
		_, err := fleet.New(config)
		require.ErrorContains(t, err, why)
	}
}

// A cluster that is added again has another server, while the informers of the former one may still
// end.
func TestClusterAddedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		first, second := serve(t, informertest.Options{}), serve(t, informertest.Options{})
		create(t, first, pods, "a")
		create(t, second, pods, "b")
		m := newMirror()
		under := make(chan struct{}, 100)
		hold := make(chan struct{})
		m.block = func(context.Context, fleet.Target) error {
			under <- struct{}{}
			<-hold
			return nil
		}
		f := newFleet(t, m, fleet.Config{})
		require.NoError(t, f.Add("east", first.Config()))
		start(t, f.Run)
		<-under
		ended := f.Remove("east")
		require.NoError(t, f.Add("east", second.Config()))
		time.Sleep(time.Minute)
		select {
		case <-ended:
			t.Fatal("a handler has not returned")
		default:
		}
		require.Empty(t, m.told("east", pods))
		close(hold)
		<-ended
		require.NoError(t, f.WaitForSync(t.Context()))
		require.Equal(t, []string{"Added default/a", "Added default/b"}, m.told("east", pods), "nothing of a removed cluster is told deleted")
	})
}

func TestRunUnit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		east := serve(t, informertest.Options{})
		create(t, east, pods, "a")
		m := newMirror()
		f := newFleet(t, m, fleet.Config{Groups: []fleet.Group{{Name: "core", Resources: []string{"pods"}}, {Name: "rest", Except: []string{"pods"}}}})
		core := fleet.Unit{Cluster: "east", Group: "core"}
		require.ErrorIs(t, f.RunUnit(t.Context(), core), fleet.ErrNoUnit)
		require.NoError(t, f.Add("east", east.Config()))
		require.ErrorIs(t, f.RunUnit(t.Context(), fleet.Unit{Cluster: "east", Group: "all"}), fleet.ErrNoUnit)
		require.ErrorIs(t, f.RunUnit(t.Context(), fleet.Unit{Cluster: "east", Group: "core", Shard: informer.Shard{}.Split(2)[0]}), fleet.ErrNoUnit)

		var err error
		stop := start(t, func(ctx context.Context) { err = f.RunUnit(informer.WithEpoch(ctx, 7), core) })
		require.NoError(t, f.WaitForSync(t.Context()))
		require.ErrorIs(t, f.RunUnit(t.Context(), core), fleet.ErrUnitRunning)
		require.Equal(t, map[int64]bool{7: true}, m.epochs)
		require.EqualValues(t, 7, m.configuredBy)
		require.Equal(t, map[fleet.Target]int{{Unit: core, Resource: pods, Kind: "Pod", Namespaced: true}: 1}, m.targets)
		stop()
		require.NoError(t, err)
		create(t, east, pods, "b")
		m.told("east", pods)
		start(t, func(ctx context.Context) { err = f.RunUnit(ctx, core) })
		synctest.Wait()
		require.NoError(t, f.WaitForSync(t.Context()))
		m.requireRight(t, "east", east, pods)
		<-f.Remove("east")
		synctest.Wait()
		require.ErrorIs(t, err, fleet.ErrRemoved)
	})
}

// Shards of a group are followed apart. Together they are the whole set.
func TestShardsOfGroup(t *testing.T) {
	for _, sharded := range []bool{false, true} {
		bubbleRun(t, fmt.Sprint("the server knows shards: ", sharded), func(t *testing.T) {
			east := serve(t, informertest.Options{ShardedListAndWatch: sharded, Resources: append(small(), served(nodes))})
			for i := range 30 {
				create(t, east, pods, fmt.Sprint("pod-", i))
			}
			m := newMirror()
			f := newFleet(t, m, fleet.Config{Groups: []fleet.Group{{Resources: []string{"pods"}, Shards: 3}}})
			require.NoError(t, f.Add("east", east.Config()))
			units := f.Units()
			require.Len(t, units, 3)
			for i, u := range units {
				before := len(m.keys("east", pods))
				start(t, func(ctx context.Context) { require.NoError(t, f.RunUnit(ctx, u)) })
				synctest.Wait()
				require.NoError(t, f.WaitForSync(t.Context()))
				part := len(m.keys("east", pods)) - before
				require.Positive(t, part)
				require.Less(t, part, 30, "shard %d", i)
			}
			m.requireRight(t, "east", east, pods)
			require.Len(t, m.told("east", pods), 30, "each is in one shard")

			east.RemoveResource(pods)
			time.Sleep(10 * time.Minute)
			require.Empty(t, m.keys("east", pods))
			require.Len(t, m.told("east", pods), 30)
		})
	}
}
