package factory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/informertest"
)

// Two hundred clusters are followed, and let go of, in five parts each: no call takes any time,
// though one in four hangs, one in four refuses connections and one in four forbids; and the others
// sync as if there were no more of them.
func TestCallsTakeNoTimeWithManyClusters(t *testing.T) {
	alone(t, func(t *testing.T, f *factory.Factory) {
		var servers []*informertest.Server
		every := informertest.Match{Verbs: []string{"list", "watch", "watch-list", "get"}}
		for _, fault := range []*informertest.Fault{nil, {Match: every, Effect: informertest.Hang()}, {Effect: informertest.Refuse()}, {Match: every, Effect: informertest.Status(403)}} {
			s := informertest.NewServer(informertest.Options{InMemory: true})
			defer s.Close()
			create(t, s, pods, "web")
			if fault != nil {
				s.Inject(*fault)
			}
			servers = append(servers, s)
		}
		told := &tally{}
		budget := informer.NewBudget(16 << 20)
		var leases []*factory.Lease[informer.ResourceVersionInformer]
		begin := time.Now()
		for cluster := range 200 {
			lws, err := informer.NewDynamicListerWatcherFactory(servers[cluster%4].Config())
			require.NoError(t, err)
			for part := range 5 {
				opts := factory.InformerOptions{Cluster: fmt.Sprint(cluster), LabelSelector: fmt.Sprint("part!=", part)}
				lease, err := f.AcquireResourceVersion(pods, opts, func() informer.ResourceVersionInformer {
					return informer.NewResourceVersionInformer("pods", informer.InformerConfig{
						ListerWatcher: lws.ForResource("", pods), Handler: told, Budget: budget, ErrorHandler: func(*informer.Reflector, error) {},
					})
				})
				require.NoError(t, err)
				require.NoError(t, lease.Start())
				leases = append(leases, lease)
			}
		}
		require.Zero(t, time.Since(begin), "of Acquire and Start")
		time.Sleep(2 * time.Second)
		require.EqualValues(t, 50*5, told.added.Load())
		for n, lease := range leases {
			require.Equal(t, n/5%4 == 0, lease.Informer.HasSynced(), "cluster %d", n/5)
		}

		begin = time.Now()
		var ended []<-chan struct{}
		for cluster := range 100 {
			ended = append(ended, f.StopCluster(fmt.Sprint(cluster)))
		}
		for _, lease := range leases {
			ended = append(ended, lease.Release())
		}
		require.Zero(t, time.Since(begin), "of StopCluster and Release")
		for _, c := range ended {
			ends(t, c, "the end of an informer")
		}
		require.Less(t, time.Since(begin), time.Second)
		require.Empty(t, f.Statuses())
		require.Zero(t, budget.InUse())
	})
}
