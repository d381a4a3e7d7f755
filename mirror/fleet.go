package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/fleet/shards"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// fleetMirror is a run over a fleet: clusters come and go, and so do their resources. It follows
// all units or, where replicas share the work, those that it owns.
type fleetMirror struct {
	fleet    *fleet.Fleet
	replica  *shards.Replica // nil where one mirror does everything
	folder   *folder         // nil without --clusters
	database database
	writer   *writer
	feeds    feedConfig
	board    *board
	screen   *screen
}

// groupName is that of the one group of resources: all that are mirrored.
const groupName = "all"

// newFleetMirror prepares a run with the clusters that there are now.
func newFleetMirror(o options, endpoints []endpoint, to database, on *board, screen *screen) (*fleetMirror, error) {
	m := &fleetMirror{
		database: to,
		writer:   newWriter("database "+to.String(), to, to.Writers(), screen.Say),
		screen:   screen,
		board:    on,
	}
	m.feeds = feedConfig{writer: m.writer, prune: o.prune(), pageSize: o.pageSize, beginAnew: o.beginAnew, budget: informer.NewBudget(maxWaiting)}
	var err error
	m.fleet, err = fleet.New(fleet.Config{
		// By namespace, because a row is found by its name: of an object that is created anew, the
		// shard by UID is another one, whose owner may be faster than the owner that sees the
		// deletion.
		Groups:    []fleet.Group{{Name: groupName, Resources: o.resources, Shards: o.shards, ShardBy: informer.ShardByNamespace}},
		Budget:    m.feeds.budget,
		Configure: m.configure,
		// All of the cluster, also those of other shards: a shard without rows of one has nothing
		// to delete.
		Known: func(ctx context.Context, u fleet.Unit) ([]schema.GroupVersionResource, error) {
			return m.database.Resources(ctx, u.Cluster)
		},
	})
	if err != nil {
		return nil, err
	}
	m.board.informers.AddFactory(m.fleet.Registry())
	for _, e := range endpoints {
		if err := m.add(e.name, e.client); err != nil {
			return nil, err
		}
	}
	if o.clusters != "" {
		m.folder = newFolder(o.clusters, m.add, m.remove, screen.Say)
		if err := m.folder.Look(); err != nil {
			return nil, err
		}
	}
	if o.share == "" {
		return m, nil
	}
	if m.replica, err = o.replica(work{m.fleet, m.writer}); err != nil {
		return nil, err
	}
	m.board.ShowReplica(m.replica)
	return m, nil
}

func (m *fleetMirror) add(name string, client *rest.Config) error {
	client = rest.CopyConfig(client)
	client.UserAgent = userAgent
	client.QPS, client.Burst = clientQPS, clientBurst
	return m.fleet.Add(name, client)
}

// work is what replicas share: the units of the fleet.
type work struct {
	*fleet.Fleet
	writer *writer
}

// RunUnit follows a unit until the context ends. What is not written then, its next owner writes.
func (w work) RunUnit(ctx context.Context, u fleet.Unit) error {
	defer w.writer.Forget(u)
	return w.Fleet.RunUnit(ctx, u)
}

// remove ends what is followed of a cluster. Its rows stay.
func (m *fleetMirror) remove(name string) { m.fleet.Remove(name) }

// Run mirrors until the context ends or the database is found to be unusable. It returns after the
// batches in progress are written, the units are released, and every goroutine has ended.
func (m *fleetMirror) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.database.Sound(), cancel)()

	var beside sync.WaitGroup
	beside.Go(func() { newNews(m.fleet, m.replica, m.screen).Run(ctx) })
	if m.folder != nil {
		beside.Go(func() { m.folder.Run(ctx) })
	}
	var err error
	if m.replica != nil {
		err = m.replica.Run(ctx)
	} else {
		m.fleet.Run(ctx)
	}
	cancel()
	beside.Wait()
	if m.database.Sound().Err() != nil {
		return context.Cause(m.database.Sound())
	}
	return errors.Join(err, m.writer.Unwritten())
}

// configure is what the fleet asks for before it starts an informer, and again after an error: the
// rows have to be known before anything is followed, or those of objects that are gone would stay.
func (m *fleetMirror) configure(ctx context.Context, t fleet.Target) (informer.InformerConfig, error) {
	at := place{cluster: t.Cluster, group: t.Group, shard: t.Shard, resource: t.Resource}
	storage, err := m.known(ctx, at)
	if err != nil {
		return informer.InformerConfig{}, err
	}
	f := &feed{place: at, writer: m.writer, patience: newPatience(0, time.Now())}
	from := &checkpoint{place: at, server: m.server(t.Cluster), database: m.database, writer: m.writer, last: newLastCheckpoint(ctx)}
	return f.config(nil, storage, from, m.feeds), nil // the fleet lists and watches
}

// known claims the unit of a place, and returns what the rows say that was seen. Rows of another
// API version go: what the cluster serves instead is listed.
func (m *fleetMirror) known(ctx context.Context, at place) (*informer.ResourceVersionStorage, error) {
	storage := informer.NewResourceVersionStorage()
	if err := m.database.Seed(ctx, storage, at); err != nil {
		return nil, err
	}
	return storage, m.writer.Write(ctx, change{kind: dropOldVersions, place: at})
}

// server is the address of a cluster.
func (m *fleetMirror) server(name string) string {
	c, _ := m.fleet.Cluster(name)
	return c.Server
}

// mirrorFleet does what the options ask for where clusters come and go, or replicas share them.
func mirrorFleet(ctx context.Context, o options, to *screen) (err error) {
	var endpoints []endpoint
	if o.clusters == "" || len(o.contexts) > 0 {
		if endpoints, err = endpointsOf(o.kubeconfig, o.contexts); err != nil {
			return err
		}
	}
	on := newBoard()
	stop, err := o.serve(ctx, on, to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	opening := o.opening(to.Say)
	opened := on.ShowDatabase(opening)
	db, err := opening.Open(ctx)
	if err != nil {
		return ignoreStop(ctx, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	m, err := newFleetMirror(o, endpoints, db, on, to)
	if err != nil {
		return err
	}
	opened()
	to.Print(fmt.Sprintf("mirroring into %s%s", db, o.sharing(m.replica)))
	began := time.Now()
	err = m.Run(ctx)
	to.Print(fmt.Sprintf("stopped after %s", round(time.Since(began))))
	return err
}
