package shards_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/fleet/shards"
)

// Fleets with shards: one crashes, a cluster is removed and another one added, and the database has
// what the servers have.
func TestFleetsShareTheirClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t, 1)
		defer p.close()
		for range 100 {
			p.write()
		}
		first, second := p.fleetProcess("first"), p.fleetProcess("second")
		p.fleetCovers(time.Minute)
		first.coord.cut()
		first.near.cut()
		first.stop()
		for range 40 {
			p.write()
		}
		time.Sleep(30 * time.Second)
		p.fleetCovers(time.Minute)

		third := p.fleetProcess("third")
		time.Sleep(15 * time.Second)
		for _, x := range []*fleetProcess{second, third} {
			<-x.clusters.Remove("cluster-0")
		}
		for range 40 {
			p.write()
		}
		for _, x := range []*fleetProcess{second, third} {
			require.NoError(t, x.clusters.Add("cluster-0", x.config("cluster-0")))
		}
		p.fleetCovers(time.Minute)
		for _, x := range []*fleetProcess{first, second, third} {
			x.stop()
			<-x.done
		}
	})
}

// fleetProcess is a process with a fleet of all clusters, in two shards each.
type fleetProcess struct {
	*process
	clusters *fleet.Fleet
}

func (p *play) fleetProcess(name string) *fleetProcess {
	x := &fleetProcess{process: &process{p: p, name: name, coord: &network{}, near: &network{}, done: make(chan struct{})}}
	var err error
	x.clusters, err = fleet.New(fleet.Config{
		Groups:    []fleet.Group{{Resources: []string{"configmaps", "widgets.example.com"}, Shards: 2}},
		Configure: x.configure,
	})
	require.NoError(p.t, err)
	for name := range p.data {
		require.NoError(p.t, x.clusters.Add(name, x.config(name)))
	}
	config := p.coord.Config()
	config.Wrap(x.coord.over)
	x.Replica, err = shards.New(shards.Config{
		Client: clientset(p.t, config).CoordinationV1(), Namespace: "fleet", Name: "test", Identity: name, Work: x.clusters,
	})
	require.NoError(p.t, err)
	ctx, stop := context.WithCancel(p.t.Context())
	x.stop = stop
	go func() {
		defer close(x.done)
		_ = x.Run(ctx)
	}()
	return x
}

// config is how the process reaches a cluster.
func (x *fleetProcess) config(cluster string) *rest.Config {
	config := x.p.data[cluster].Config()
	config.Wrap(x.near.over)
	return config
}

// configure has an informer write to the database: each resource of a unit has a table.
func (x *fleetProcess) configure(ctx context.Context, target fleet.Target) (informer.InformerConfig, error) {
	epoch, ok := informer.EpochOf(ctx)
	if !ok {
		return informer.InformerConfig{}, errors.New("there is no epoch")
	}
	of := target.Unit
	of.Group = target.Resource.Resource
	to := &sink{db: x.p.db, unit: of, writer: x.Identity(), epoch: epoch, disk: x.near.disk, appended: -1}
	return informer.InformerConfig{BatchHandler: to, Checkpoint: to, ErrorHandler: func(*informer.Reflector, error) {}}, nil
}

// fleetCovers waits until the tables of all shards together have what the servers have.
func (p *play) fleetCovers(within time.Duration) {
	p.t.Helper()
	different := "not compared"
	for begin := time.Now(); different != "" && time.Since(begin) < within; time.Sleep(time.Second) {
		synctest.Wait()
		different = ""
		for cluster, server := range p.data {
			for _, gvr := range groups {
				want := map[string]row{}
				objects, err := server.List(gvr, "")
				require.NoError(p.t, err)
				for _, o := range objects {
					want[o.GetNamespace()+"/"+o.GetName()] = rowOf(o)
				}
				have := map[string]row{}
				for _, s := range (informer.Shard{Key: informer.ShardByUID}).Split(2) {
					maps.Copy(have, p.db.rowsOf(fleet.Unit{Cluster: cluster, Group: gvr.Resource, Shard: s}))
				}
				if !maps.Equal(want, have) {
					different = fmt.Sprintf("%s of %s: the server has %v, the database %v", gvr.Resource, cluster, want, have)
				}
			}
		}
	}
	require.Empty(p.t, different)
}
