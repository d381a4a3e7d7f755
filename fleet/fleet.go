package fleet

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/registry"
)

// Fleet follows groups of resources in many clusters. Its methods may be called at any time, from
// any goroutine. New makes one.
type Fleet struct {
	config Config
	groups []*group
	slots  slots
	// registry has what operates: the informers, the discoveries and the budget.
	registry registry.Registry

	// mu is never held while a server, Configure or a handler is waited for.
	mu       sync.Mutex
	clusters map[string]*cluster
	// changed is closed and replaced when clusters come or go.
	changed chan struct{}
	// moved is closed and replaced when something begins or ends that WaitForSync looks at.
	moved chan struct{}
}

// New returns a fleet without clusters. The error says what is wrong with config.
func New(config Config) (*Fleet, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	groups, err := newGroups(config.Groups)
	if err != nil {
		return nil, err
	}
	f := &Fleet{
		config:   config,
		groups:   groups,
		slots:    make(slots, maxDiscoveries),
		clusters: map[string]*cluster{},
		changed:  make(chan struct{}),
		moved:    make(chan struct{}),
	}
	f.registry.AddFactory(f.config.Factory)
	f.registry.AddBudget("fleet", f.config.Budget)
	return f, nil
}

// Add adds a cluster. The name is UTF-8 without "/" and control characters. The config is copied.
// Add does not wait for the server.
//
// The error is a *ClusterError, of ErrClusterExists if the cluster was added before. After Remove
// it may be added again, also with another config, and even before the channel of Remove is closed:
// an informer of the new cluster starts when that of the same target has ended.
func (f *Fleet) Add(name string, config *rest.Config) error {
	if err := f.add(name, config); err != nil {
		return &ClusterError{Cluster: name, Err: err}
	}
	return nil
}

func (f *Fleet) add(name string, config *rest.Config) error {
	if name == "" || strings.Contains(name, "/") || !isText(name) {
		return errors.New("a name is required, in UTF-8, without a slash and control characters")
	}
	c, err := f.newCluster(name, config)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.clusters[name] != nil {
		return ErrClusterExists
	}
	if c.release, err = f.config.Factory.UseServer(name, c.host); err != nil {
		return err
	}
	f.clusters[name] = c
	c.hide = f.registry.Add(c.discoveryLabels(), discoverySource{c})
	broadcast(&f.changed)
	return nil
}

// Update gives a cluster another configuration, which is copied: another address, other certificates
// or credentials, a token for instance. It does not wait for the server. New requests are made with
// it. Watches that are open go on until they end, and what follows them goes on from where they were,
// so nothing is listed. QPS and content types stay as they were.
//
// At another address, the cluster must be the same, which the UID of its namespace kube-system tells.
// Another one is noticed when a watch is opened there, as one that takes the place of another at the
// same address: it is listed, and handlers are told all that differs.
//
// The error is a *ClusterError: of ErrNoCluster, or of what is wrong with config. The former
// configuration stays then.
func (f *Fleet) Update(name string, config *rest.Config) error {
	if err := f.update(name, config); err != nil {
		return &ClusterError{Cluster: name, Err: err}
	}
	return nil
}

func (f *Fleet) update(name string, config *rest.Config) error {
	f.mu.Lock()
	c := f.clusters[name]
	f.mu.Unlock()
	if c == nil {
		return ErrNoCluster
	}
	apply, err := c.server.Reconfigure(config) // without the lock, because it may read files
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.clusters[name] != c {
		return ErrNoCluster
	}
	if config.Host != c.host {
		c.release()
		release, err := f.config.Factory.UseServer(name, config.Host)
		if err != nil {
			c.release, _ = f.config.Factory.UseServer(name, c.host) // others use it still
			return err
		}
		c.release, c.host = release, config.Host
	}
	apply()
	return nil
}

// Remove removes a cluster. It does not wait. The channel is closed when its informers have ended:
// the last call of a handler has returned. Handlers are told nothing of it, and may not wait for
// it. It is closed already if there is no such cluster.
func (f *Fleet) Remove(name string) (ended <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.clusters[name]
	if c == nil {
		none := make(chan struct{})
		close(none)
		return none
	}
	delete(f.clusters, name)
	c.hide()
	c.release()
	c.removeLocked()
	broadcast(&f.changed)
	broadcast(&f.moved)
	return c.ended
}

// Units returns the units of the fleet: the shards of each group in each cluster, sorted.
func (f *Fleet) Units() []Unit {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unitsLocked()
}

func (f *Fleet) unitsLocked() []Unit {
	units := make([]Unit, 0, len(f.clusters)*len(f.groups))
	for name := range f.clusters {
		for _, g := range f.groups {
			for _, s := range g.shards {
				units = append(units, Unit{Cluster: name, Group: g.name, Shard: s})
			}
		}
	}
	slices.SortFunc(units, Unit.Compare)
	return units
}

// Changed returns a channel that is closed when a cluster is added or removed. To miss nothing, ask
// for it before Units. A cluster that was removed and added again has the same units as before:
// RunUnit returns ErrRemoved then.
func (f *Fleet) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// groupOf returns the group of a unit, nil if no cluster has such a unit.
func (f *Fleet) groupOf(u Unit) *group {
	for _, g := range f.groups {
		if g.name == u.Group && slices.Contains(g.shards, u.Shard) {
			return g
		}
	}
	return nil
}

// isText reports whether a name can be stored and shown.
func isText(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// broadcast wakes those that wait for the channel. It needs the lock that guards it.
func broadcast(c *chan struct{}) {
	close(*c)
	*c = make(chan struct{})
}
