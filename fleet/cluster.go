package fleet

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/engine/server"
	"github.com/rvinformer/informer/registry"
)

// cluster is a cluster from Add to Remove.
type cluster struct {
	fleet *Fleet
	name  string
	// listers list and watch its resources. Server is any of them, by which the server is asked.
	listers informer.DynamicListerWatcherFactory
	server  *server.Resource
	// host is that of the configuration, by which the factory knows the server. It is guarded by the
	// fleet's lock.
	host string
	// release ends the use of the server in the factory, and hide the place in the registry.
	release, hide func()
	// removed is closed by Remove, and ended when no unit runs after it.
	removed, ended chan struct{}
	troubles       troubles

	// The rest is guarded by the fleet's lock.

	// units has those that run.
	units map[Unit]*run
	// uid is that of the namespace kube-system, empty before the server has said it.
	uid string
	// session is there while units run.
	session *session
	gone    bool
	log     log
	// greeted tells that it was logged that the cluster is synced, after it was waited for since
	// awaitedSince.
	greeted      bool
	awaitedSince time.Time
}

func (f *Fleet) newCluster(name string, config *rest.Config) (*cluster, error) {
	listers, err := informer.NewDynamicListerWatcherFactory(config)
	if err != nil {
		return nil, err
	}
	c := &cluster{
		fleet: f, name: name, listers: listers,
		removed: make(chan struct{}), ended: make(chan struct{}),
		units: map[Unit]*run{}, troubles: troubles{cluster: name},
	}
	c.server = server.Of(listers.ForResource("", schema.GroupVersionResource{}))
	c.host = config.Host
	c.log.note(ClusterIdle, nil)
	return c, nil
}

// discoveryLabels are those of what discovers the cluster.
func (c *cluster) discoveryLabels() registry.Labels {
	return registry.Labels{Cluster: c.name, Informer: "discovery"}
}

// removeLocked ends the units.
func (c *cluster) removeLocked() {
	c.gone = true
	close(c.removed)
	for _, r := range c.units {
		r.cancel()
	}
	if len(c.units) == 0 {
		close(c.ended)
	}
}

// enterLocked notes that a unit runs. The first one begins a session.
func (c *cluster) enterLocked(ctx context.Context, r *run) {
	if c.session == nil {
		c.session = newSession(ctx, c)
		c.log.note(ClusterDiscovering, nil)
		c.greeted = true // by the session before
	}
	if c.greeted {
		c.greeted, c.awaitedSince = false, time.Now()
	}
	r.session = c.session
	c.units[r.unit] = r
	broadcast(&c.fleet.moved)
}

// leave notes that a unit does not run any more. The last one waits for the end of the session.
func (c *cluster) leave(r *run) {
	f := c.fleet
	f.mu.Lock()
	delete(c.units, r.unit)
	last := len(c.units) == 0
	if last {
		c.session = nil
		c.log = log{}
		c.log.note(ClusterIdle, nil)
	}
	broadcast(&f.moved)
	f.mu.Unlock()
	if !last {
		return
	}
	r.session.end()
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.session == nil {
		c.server.CloseIdleConnections()
		if c.gone && !closed(c.ended) {
			close(c.ended)
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
