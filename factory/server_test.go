package factory_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/informertest"
)

// No function of a factory waits for a server, whatever it does: no time passes in them. What is
// told to stop ends.
func TestNothingWaitsForAServer(t *testing.T) {
	for _, effect := range []informertest.Effect{informertest.Hang(), informertest.Refuse(), informertest.Reset(), informertest.Status(503), informertest.Status(403), informertest.Slow(1)} {
		t.Run(effect.String(), func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server, f *factory.Factory) {
				create(t, s, pods, "web")
				s.Inject(informertest.Fault{Effect: effect})
				begin := time.Now()
				opts := factory.InformerOptions{Cluster: "dead"}
				var ended []<-chan struct{}
				for range 3 {
					shared, err := f.Acquire(pods, opts, dynamicFunc(t, s, pods))
					require.NoError(t, err)
					versions, err := f.AcquireResourceVersion(pods, opts, versionsFunc(t, s, pods, &tally{}))
					require.NoError(t, err)
					one := f.InformerFor(configMaps, opts, dynamicFunc(t, s, configMaps))
					require.NoError(t, shared.Start())
					require.NoError(t, f.StartOne(versions.Key(), nil))
					one.Start(nil)
					f.Start(nil)
					require.Zero(t, time.Since(begin))

					time.Sleep(45 * time.Second)
					begin = time.Now()
					require.False(t, f.WaitForCacheSync(closedChannel()))
					require.Len(t, f.WaitForCacheSyncWithContext(endedContext()).Unsynced, 3)
					require.Len(t, f.Statuses(), 3)
					ended = append(ended, shared.Release(), f.Stop(versions.Key()), f.StopCluster("dead"))
					versions.Release()
					require.Zero(t, time.Since(begin))
				}
				for _, ended := range ended {
					ends(t, ended, "a stop")
				}
				require.Empty(t, f.Statuses())
			})
		})
	}
}

// An informer that keeps versions goes on where the former of its key has ended, if newFunc brings
// its storage along.
func TestNextInformerGoesOnFromTheStorage(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server, f *factory.Factory) {
		create(t, s, pods, "one")
		told := &tally{}
		config := versionsConfig(t, s, pods, told)
		config.Storage = informer.NewResourceVersionStorage()
		newFunc := func() informer.ResourceVersionInformer { return informer.NewResourceVersionInformer("pods", config) }
		for range 3 {
			lease, err := f.AcquireResourceVersion(pods, factory.InformerOptions{}, newFunc)
			require.NoError(t, err)
			require.NoError(t, lease.Start())
			ends(t, lease.Informer.HasSyncedChecker().Done(), "the first list")
			lease.Release()
		}
		require.Equal(t, []int32{1, 2}, []int32{told.added.Load(), told.synced.Load()})
	})
}

// NewFunc may also return the very informer that has ended: it can run again.
func TestResourceVersionInformerRunsAgain(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server, f *factory.Factory) {
		create(t, s, pods, "one")
		told := &tally{}
		same := versionsFunc(t, s, pods, told)()
		for round := range int32(3) {
			lease, err := f.AcquireResourceVersion(pods, factory.InformerOptions{}, func() informer.ResourceVersionInformer { return same })
			require.NoError(t, err)
			require.NoError(t, lease.Start())
			time.Sleep(time.Minute)
			require.Equal(t, []int32{1, round}, []int32{told.added.Load(), told.synced.Load()})
			require.Equal(t, informer.PhaseWatching, lease.Status().Phase)
			lease.Release()
		}
	})
}

func TestResourceVersionInformerIsShared(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server, f *factory.Factory) {
		a, err := f.AcquireResourceVersion(pods, factory.InformerOptions{LabelSelector: "a=1,b=2"}, versionsFunc(t, s, pods, &tally{}))
		require.NoError(t, err)
		b, err := f.AcquireResourceVersion(pods, factory.InformerOptions{LabelSelector: "b=2,a=1", InformerType: factory.MetadataInformer}, neverVersions(t))
		require.NoError(t, err)
		require.Same(t, a.Informer, b.Informer)
		require.Equal(t, factory.ResourceVersionInformer, b.Key().InformerType)
		ends(t, a.Release(), "the first release")
		require.NoError(t, b.Start())
		require.True(t, f.WaitForCacheSync(nil))
		ends(t, b.Release(), "the last release")
		require.Equal(t, informer.PhaseStopped, b.Informer.Status().Phase)
	})
}

func neverVersions(t *testing.T) factory.NewResourceVersionInformerFunc {
	return func() informer.ResourceVersionInformer {
		require.FailNow(t, "newFunc is called")
		return nil
	}
}
