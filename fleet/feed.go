package fleet

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/internal/report"
)

// feed is one resource that a unit follows, in one version after the other.
type feed struct {
	stage  stage
	target Target
	// lease is that of the informer; nil while it failed.
	lease *factory.Lease[informer.ResourceVersionInformer]
	// storage is what the handler has acknowledged. It stays from one informer to the next, unless
	// Configure brings another one.
	storage *informer.ResourceVersionStorage
	// owed tells that the handler may know objects that the storage does not have yet.
	owed bool
	// doubt is the first catalog that lacked the resource, nil if none does. Another one has to
	// agree.
	doubt *catalog
	// gone tells that the informer was ended because the server has ceased to serve the resource.
	gone bool
	// released is closed when an informer that is ending has ended.
	released <-chan struct{}
	// err is why there is no informer.
	err error
}

// stage is where a feed is.
type stage int

const (
	// failed: it has no informer, because of err.
	failed stage = iota
	// following: its informer runs.
	following
	// ending: its informer ends. What comes next is decided when it has.
	ending
	// parting: the resource is gone, and an informer tells the handler so.
	parting
)

// ensure starts the informer of a resource that is to be followed and has none.
func (r *run) ensure(ctx context.Context, name schema.GroupResource, want choice, retry bool) {
	fd := r.feeds[name]
	switch {
	case fd == nil:
		r.start(ctx, name, &feed{}, want)
	case fd.stage == failed && retry, fd.stage == ending && closed(fd.released):
		r.start(ctx, name, fd, want)
	}
}

// adjust ends what is not to be followed, or not in this version, and forgets what has ended.
func (r *run) adjust(ctx context.Context, name schema.GroupResource, wanted map[schema.GroupResource]choice, found *catalog, retry bool) {
	fd := r.feeds[name]
	want, is := wanted[name]
	switch fd.stage {
	case failed:
		if !is && retry && r.isGone(ctx, fd, found) {
			r.partOrForget(ctx, name, fd)
		}
	case following:
		if closed(fd.lease.Done()) {
			r.release(fd)
		} else if r.isOver(ctx, fd, want, is, found) {
			fd.gone = !is
			r.release(fd)
		}
	case parting:
		if is || closed(fd.lease.Informer.HasSyncedChecker().Done()) {
			fd.gone = !is
			r.release(fd)
		}
	case ending:
		if !is && closed(fd.released) && (fd.gone || r.isGone(ctx, fd, found)) {
			r.partOrForget(ctx, name, fd)
		}
	}
}

// isOver reports whether the resource is not followed any more as it is.
func (r *run) isOver(ctx context.Context, fd *feed, want choice, is bool, found *catalog) bool {
	current := fd.target.Resource
	if is {
		fd.doubt = nil
		_, broken := found.broken[current.GroupVersion()]
		return want.resource != current && !broken
	}
	return r.isGone(ctx, fd, found)
}

// isGone reports whether the server has ceased to serve a resource. That is believed of two
// complete discoveries that lack it, and of the server's word. Nothing is believed of a core group
// without resources: every server has some, and client-go takes any 404 for such a group.
func (r *run) isGone(ctx context.Context, fd *feed, found *catalog) bool {
	resource := fd.target.Resource
	if !found.complete() || resource.Group == "" && !found.hasCoreGroup() || !r.cluster.isUnknown(ctx, resource) {
		return false
	}
	if fd.doubt == nil {
		fd.doubt = found
		r.session.triggers.see()
	}
	return fd.doubt != found
}

// start starts an informer of a feed that has none.
func (r *run) start(ctx context.Context, name schema.GroupResource, fd *feed, want choice) {
	target := Target{Unit: r.unit, Resource: want.resource, Kind: want.kind, Namespaced: want.namespaced}
	next := &feed{stage: following, target: target, storage: fd.storage}
	if fd.storage != nil && fd.target.Resource != want.resource {
		next.storage = renewed(fd.storage)
	}
	config, err := r.configure(ctx, next)
	if err == nil {
		next.lease, err = r.acquire(ctx, target, config)
	}
	if err != nil {
		next.stage, next.err = failed, &TargetError{Target: target, Err: err}
		next.owed = next.storage == nil && r.cluster.fleet.config.Known != nil
	}
	r.put(name, next)
}

// partOrForget ends a feed: the handler is told that the objects are gone, if it knows any.
func (r *run) partOrForget(ctx context.Context, name schema.GroupResource, fd *feed) {
	if fd.owed || fd.storage != nil && fd.storage.Len() > 0 {
		r.part(ctx, name, fd)
	} else {
		r.put(name, nil)
	}
}

// part starts an informer that tells the handler that all objects of a resource are gone.
func (r *run) part(ctx context.Context, name schema.GroupResource, fd *feed) {
	next := &feed{stage: parting, target: fd.target, storage: fd.storage, doubt: fd.doubt}
	config, err := r.configure(ctx, next)
	if err == nil {
		config.ListerWatcher, err = nothingOf(fd.target, r.cluster.config.Host)
	}
	if err == nil {
		config.ListMode = informer.ListModePaged
		next.lease, err = r.acquire(ctx, fd.target, config)
	}
	if err != nil { // it is tried again later
		next.stage, next.owed, next.err = failed, fd.owed, &TargetError{Target: fd.target, Err: err}
		r.put(name, next)
		return
	}
	r.put(name, next)
	synced, ended := next.lease.Informer.HasSyncedChecker().Done(), next.lease.Done()
	r.waits.Go(func() {
		select {
		case <-synced:
		case <-ended:
		}
		r.wake()
	})
}

// release ends the informer of a feed.
func (r *run) release(fd *feed) {
	f := r.cluster.fleet
	f.mu.Lock()
	fd.stage, fd.released = ending, fd.lease.Release()
	f.mu.Unlock()
	r.waits.Go(func() {
		<-fd.released
		r.wake()
	})
}

func (r *run) wake() {
	select {
	case r.awake <- struct{}{}:
	default:
	}
}

// put sets the feed of a resource, or forgets it if fd is nil.
func (r *run) put(name schema.GroupResource, fd *feed) {
	f := r.cluster.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	if fd == nil {
		delete(r.feeds, name)
	} else {
		r.feeds[name] = fd
	}
}

// configure returns the configuration of the informer of a feed, and sets the storage of the feed.
func (r *run) configure(ctx context.Context, fd *feed) (config informer.InformerConfig, err error) {
	f, c := r.cluster.fleet, r.cluster
	err = report.Guard(ctx, func(error) {}, func() error {
		config, err = f.config.Configure(ctx, fd.target)
		return err
	})
	if err != nil {
		return config, err
	}
	if config.ListerWatcher == nil {
		config.ListerWatcher = c.listers.ForResource("", fd.target.Resource)
	}
	if config.Shard.IsAll() {
		config.Shard = fd.target.Shard
	}
	if config.Budget == nil {
		config.Budget = f.config.Budget
	}
	switch {
	case config.Storage != nil:
		fd.storage = config.Storage
	case fd.storage == nil:
		fd.storage = informer.NewResourceVersionStorage()
	}
	config.Storage = fd.storage
	return config, nil
}

// acquire makes and starts an informer. It runs with the values of ctx.
func (r *run) acquire(ctx context.Context, t Target, config informer.InformerConfig) (*factory.Lease[informer.ResourceVersionInformer], error) {
	made, err := newInformer(t.String(), config)
	if err != nil {
		return nil, err
	}
	opts := factory.InformerOptions{Cluster: t.Cluster, Variant: t.Group, Shard: t.Shard}
	lease, err := r.cluster.fleet.config.Factory.AcquireResourceVersion(t.Resource, opts, func() informer.ResourceVersionInformer { return made })
	if err != nil {
		return nil, err
	}
	if lease.Informer != made {
		lease.Release()
		return nil, errors.New("the factory has an informer for it that is not the fleet's")
	}
	if err := lease.StartWithContext(ctx); err != nil {
		lease.Release()
		return nil, err
	}
	return lease, nil
}

// newInformer makes an informer. The error is what is wrong with config.
func newInformer(name string, config informer.InformerConfig) (i informer.ResourceVersionInformer, err error) {
	defer func() {
		if wrong := recover(); wrong != nil {
			err = fmt.Errorf("%v", wrong)
		}
	}()
	return informer.NewResourceVersionInformer(name, config), nil
}

// renewed returns a storage with the keys of another one, each in a version that no object has. So
// an informer delivers all objects that are there, and the deletion of the others.
func renewed(storage *informer.ResourceVersionStorage) *informer.ResourceVersionStorage {
	const none = "0"
	versions := make(map[string]any, storage.Len())
	for key := range storage.All() {
		versions[key] = none
	}
	fresh := informer.NewResourceVersionStorage()
	if err := fresh.Replace(versions); err != nil { // not possible: the keys are those of a storage
		panic(fmt.Sprintf("fleet: keys of a storage: %v", err))
	}
	return fresh
}
