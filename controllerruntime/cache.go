package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/rvinformer/informer"
)

// objectCache is a cache.Cache over informers of package objectcache.
type objectCache struct {
	scheme            *runtime.Scheme
	mapper            meta.RESTMapper
	selections        selections
	settings          settings
	watchErrorHandler toolscache.WatchErrorHandlerWithContext
	listerWatchers    informer.DynamicListerWatcherFactory
	failOnMissing     bool

	// started is closed when Start has begun.
	started chan struct{}
	running sync.WaitGroup

	mu    sync.RWMutex
	kinds map[kindKey]*kind
	// ctx is Start's, nil before.
	ctx context.Context
	// stopped tells that Start waits for its informers, and starts no others.
	stopped bool
}

var (
	_ cache.Cache                    = &objectCache{}
	_ manager.LeaderElectionRunnable = &objectCache{}
)

// NeedLeaderElection implements manager.LeaderElectionRunnable: a cache serves reads before its
// process leads.
func (c *objectCache) NeedLeaderElection() bool { return false }

// Start implements cache.Informers. It returns after all informers.
func (c *objectCache) Start(ctx context.Context) error {
	if err := c.begin(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	c.running.Wait()
	return nil
}

func (c *objectCache) begin(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx != nil {
		return errors.New("informer already started")
	}
	c.ctx = logr.NewContext(ctx, log.Log.WithName("controller-runtime").WithName("cache"))
	for _, m := range c.membersLocked() {
		c.startLocked(m)
	}
	close(c.started)
	return nil
}

func (c *objectCache) startLocked(m *member) {
	if c.stopped {
		close(m.ended)
	}
	if c.ctx == nil || c.stopped {
		return
	}
	c.running.Go(func() { m.run(c.ctx) })
}

func (c *objectCache) membersLocked() (all []*member) {
	for _, k := range c.kinds {
		all = slices.AppendSeq(all, maps.Values(k.members))
	}
	return all
}

// WaitForCacheSync implements cache.Informers.
func (c *objectCache) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-c.started:
	case <-ctx.Done():
		return false
	}
	c.mu.RLock()
	members := c.membersLocked()
	c.mu.RUnlock()
	for _, m := range members {
		if err := m.waitSynced(ctx); err != nil && m.removal.Err() == nil {
			return false // one that was removed is waited for no longer
		}
	}
	return true
}

// GetInformer implements cache.Informers.
func (c *objectCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	gvk, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		return nil, err
	}
	return c.informer(ctx, kindKey{gvk, formOf(obj)}, opts)
}

// GetInformerForKind implements cache.Informers.
func (c *objectCache) GetInformerForKind(ctx context.Context, gvk schema.GroupVersionKind, opts ...cache.InformerGetOption) (cache.Informer, error) {
	obj, err := c.scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	return c.informer(ctx, kindKey{gvk, formOf(obj)}, opts)
}

func (c *objectCache) informer(ctx context.Context, key kindKey, opts []cache.InformerGetOption) (cache.Informer, error) {
	members, err := c.members(key)
	if err != nil {
		return nil, err
	}
	var options cache.InformerGetOptions
	for _, opt := range opts {
		opt(&options)
	}
	if c.hasStarted() && enabled(options.BlockUntilSynced) {
		for _, m := range members {
			if err := m.waitSynced(ctx); err != nil {
				return nil, err
			}
		}
	}
	return c.join(members), nil
}

// RemoveInformer implements cache.Informers. The informers end in their own time.
func (c *objectCache) RemoveInformer(_ context.Context, obj client.Object) error {
	gvk, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		return err
	}
	key := kindKey{gvk, formOf(obj)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.kinds[key]; k != nil {
		for _, m := range k.members {
			m.remove()
		}
		clear(k.members)
	}
	return nil
}

// hasStarted reports whether Start has begun.
func (c *objectCache) hasStarted() bool {
	select {
	case <-c.started:
		return true
	default:
		return false
	}
}

// knownKind returns one form of a kind that was asked for before, nil if it was not.
func (c *objectCache) knownKind(key kindKey) *kind {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.kinds[key]
}

// knownMember returns the informer of a namespace in k's selection, nil before it was made.
func (c *objectCache) knownMember(k *kind, name string) *member {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return k.members[name]
}

// kind returns one form of a kind, which is new at the first request for it.
func (c *objectCache) kind(key kindKey) (*kind, error) {
	if k := c.knownKind(key); k != nil {
		return k, nil
	}
	made, err := c.newKind(key) // asks the server, perhaps
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.kinds[key]; k != nil {
		return k, nil
	}
	c.kinds[key] = made
	return made, nil
}

// members returns the informers of all namespaces of a kind, which are made and started where they
// were not.
func (c *objectCache) members(key kindKey) ([]*member, error) {
	k, err := c.kind(key)
	if err != nil {
		return nil, err
	}
	var all []*member
	for _, name := range slices.Sorted(maps.Keys(k.selection)) {
		m, err := c.member(k, name)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// member returns the informer of a namespace in k's selection.
func (c *objectCache) member(k *kind, name string) (*member, error) {
	if m := c.knownMember(k, name); m != nil {
		return m, nil
	}
	made, err := c.newMember(k, name)
	if err != nil {
		return nil, fmt.Errorf("informer of %v: %w", k.gvk, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := k.members[name]; m != nil {
		return m, nil
	}
	k.members[name] = made
	c.startLocked(made)
	return made, nil
}

// kindToRead is kind, for a reader. The server is not asked for a kind that the reader may not add.
func (c *objectCache) kindToRead(key kindKey) (*kind, error) {
	if c.failOnMissing && c.knownKind(key) == nil {
		return nil, &cache.ErrResourceNotCached{GVK: key.gvk}
	}
	return c.kind(key)
}

// toRead returns the informer of a namespace in k's selection, synced.
func (c *objectCache) toRead(ctx context.Context, k *kind, name string) (*member, error) {
	if c.failOnMissing && c.knownMember(k, name) == nil {
		return nil, &cache.ErrResourceNotCached{GVK: k.gvk}
	}
	m, err := c.member(k, name)
	if err != nil {
		return nil, err
	}
	if !c.hasStarted() {
		return nil, &cache.ErrCacheNotStarted{}
	}
	return m, m.waitSynced(ctx)
}

// itemKind is the kind of the items of a list.
func itemKind(list schema.GroupVersionKind) schema.GroupVersionKind {
	list.Kind = strings.TrimSuffix(list.Kind, "List")
	return list
}

// goUntilStopped calls f beside its caller. Start waits for it. A cache that has stopped calls
// nothing.
func (c *objectCache) goUntilStopped(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		c.running.Go(f)
	}
}
