package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/internal/leaf/failure"
)

// subscription is one resource that a unit follows, in one version after the other.
type subscription struct {
	stage  stage
	target Target
	// lease is that of the informer; nil while it failed.
	lease *factory.Lease[informer.ResourceVersionInformer]
	// detach cancels the release of the lease at the end of the context of the run.
	detach func() bool
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
	// err is why there is no informer, or why the end of a resource that is not served is not told.
	err error
}

// stage is where a subscription is.
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
	sub := r.subscriptions[name]
	switch {
	case sub != nil && sub.isOther(want): // the handler is told first that it is gone
	case sub == nil:
		r.start(ctx, name, &subscription{}, want)
	case sub.stage == failed && retry, sub.stage == ending && closed(sub.released):
		r.start(ctx, name, sub, want)
	}
}

// adjust ends what is not to be followed, or not in this version, and forgets what has ended.
func (r *run) adjust(ctx context.Context, name schema.GroupResource, wanted map[schema.GroupResource]choice, found *catalog, retry bool) {
	sub := r.subscriptions[name]
	want, is := wanted[name]
	other := is && sub.isOther(want)
	is = is && !other
	switch sub.stage {
	case failed:
		if !is && retry && (other || r.isGone(ctx, sub, found)) {
			r.partOrForget(ctx, name, sub)
		}
	case following:
		if closed(sub.lease.Done()) {
			r.release(sub)
		} else if other && r.isReplaced(ctx, sub, found) || !other && r.isOver(ctx, sub, want, is, found) {
			sub.gone = !is
			r.release(sub)
		}
	case parting:
		if is || closed(sub.lease.Informer.HasSyncedChecker().Done()) {
			sub.gone = !is
			r.release(sub)
		}
	case ending:
		if !is && closed(sub.released) && (sub.gone || other || r.isGone(ctx, sub, found)) {
			r.partOrForget(ctx, name, sub)
		}
	}
}

// isOther reports whether what is to be followed is something else under the name of the resource: of
// another kind, or of another scope.
func (s *subscription) isOther(want choice) bool {
	return s.target.Kind != "" && (s.target.Kind != want.kind || s.target.Namespaced != want.namespaced)
}

// isReplaced reports whether something else has taken the place of the resource. That is believed of
// two discoveries that agree.
func (r *run) isReplaced(ctx context.Context, sub *subscription, found *catalog) bool {
	if _, broken := found.broken[sub.target.Resource.GroupVersion()]; broken {
		return false
	}
	return r.agrees(ctx, sub, found)
}

// agrees notes a catalog that lacks the resource, and reports whether one before it has lacked it, and
// both are of the cluster that is followed.
func (r *run) agrees(ctx context.Context, sub *subscription, found *catalog) bool {
	if sub.doubt == nil {
		sub.doubt = found
		r.session.triggers.see()
	}
	if sub.doubt == found {
		return false
	}
	err := r.cluster.checkSame(ctx)
	r.note(sub, err)
	return err == nil
}

// note notes why the end of a resource is not told, nil if nothing is in the way.
func (r *run) note(sub *subscription, err error) {
	f := r.cluster.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	if sub.err = nil; err != nil {
		sub.err = &TargetError{Target: sub.target, Err: err}
	}
}

// isOver reports whether the resource is not followed any more as it is.
func (r *run) isOver(ctx context.Context, sub *subscription, want choice, is bool, found *catalog) bool {
	current := sub.target.Resource
	if is {
		sub.doubt = nil
		r.note(sub, nil)
		_, broken := found.broken[current.GroupVersion()]
		return want.resource != current && !broken
	}
	return r.isGone(ctx, sub, found)
}

// isGone reports whether the server has ceased to serve a resource. That is believed of two
// complete discoveries that lack it, and of the server's word. Nothing is believed of a core group
// without resources: every server has some, and client-go takes any 404 for such a group.
func (r *run) isGone(ctx context.Context, sub *subscription, found *catalog) bool {
	resource := sub.target.Resource
	if !found.complete() || resource.Group == "" && !found.hasCoreGroup() || !r.cluster.isUnknown(ctx, resource) {
		return false
	}
	return r.agrees(ctx, sub, found)
}

// start starts an informer of a subscription that has none.
func (r *run) start(ctx context.Context, name schema.GroupResource, sub *subscription, want choice) {
	target := Target{Unit: r.unit, Resource: want.resource, Kind: want.kind, Namespaced: want.namespaced}
	next := &subscription{stage: following, target: target, storage: sub.storage}
	if sub.storage != nil && sub.target.Resource != want.resource {
		next.storage = renewed(sub.storage)
	}
	config, err := r.configure(ctx, next)
	if err == nil {
		err = r.acquire(ctx, next, config)
	}
	if err != nil {
		next.stage, next.err = failed, &TargetError{Target: target, Err: err}
		next.owed = next.storage == nil && r.cluster.fleet.config.Known != nil
	}
	r.put(name, next)
}

// partOrForget ends a subscription: the handler is told that the objects are gone, if it knows any.
func (r *run) partOrForget(ctx context.Context, name schema.GroupResource, sub *subscription) {
	if sub.owed || sub.storage != nil && sub.storage.Len() > 0 {
		r.part(ctx, name, sub)
	} else {
		r.put(name, nil)
	}
}

// part starts an informer that tells the handler that all objects of a resource are gone.
func (r *run) part(ctx context.Context, name schema.GroupResource, sub *subscription) {
	next := &subscription{stage: parting, target: sub.target, storage: sub.storage, doubt: sub.doubt}
	config, err := r.configure(ctx, next)
	if err == nil {
		config.ListerWatcher, err = nothingOf(config.ListerWatcher)
	}
	if err == nil {
		config.ListMode = informer.ListModePaged
		err = r.acquire(ctx, next, config)
	}
	if err != nil { // it is tried again later
		next.stage, next.owed, next.err = failed, sub.owed, &TargetError{Target: sub.target, Err: err}
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

// release ends the informer of a subscription.
func (r *run) release(sub *subscription) {
	f := r.cluster.fleet
	sub.detach()
	f.mu.Lock()
	sub.stage, sub.released = ending, sub.lease.Release()
	f.mu.Unlock()
	r.waits.Go(func() {
		<-sub.released
		r.wake()
	})
}

func (r *run) wake() {
	select {
	case r.awake <- struct{}{}:
	default:
	}
}

// put sets the subscription of a resource, or forgets it if sub is nil.
func (r *run) put(name schema.GroupResource, sub *subscription) {
	f := r.cluster.fleet
	f.mu.Lock()
	was := r.subscriptions[name]
	if sub == nil {
		delete(r.subscriptions, name)
	} else {
		r.subscriptions[name] = sub
	}
	f.mu.Unlock()
	r.logConfigure(was, sub)
}

// logConfigure logs that a subscription has begun to fail to get an informer, or fails no more. Either
// may be nil.
func (r *run) logConfigure(was, is *subscription) {
	if was != nil && was.stage == failed && (is == nil || is.stage != failed || is.target != was.target) {
		r.cluster.troubles.end(r.ctx, was.target.name(), time.Now())
	}
	if is == nil || is.stage != failed {
		return
	}
	var why *TargetError
	if errors.As(is.err, &why) {
		r.cluster.troubles.begin(r.ctx, is.target.name(), reasonConfigure, why.Err.Error(), time.Now())
	}
}

// configure returns the configuration of the informer of a subscription, and sets the storage of
// the subscription.
func (r *run) configure(ctx context.Context, sub *subscription) (config informer.InformerConfig, err error) {
	f, c := r.cluster.fleet, r.cluster
	err = failure.Guard(ctx, func(error) {}, func() error {
		config, err = f.config.Configure(ctx, sub.target)
		return err
	})
	if err != nil {
		return config, err
	}
	if config.ListerWatcher == nil {
		config.ListerWatcher = c.listers.ForResource("", sub.target.Resource)
	}
	if config.Shard.IsAll() {
		config.Shard = sub.target.Shard
	}
	if config.Budget == nil {
		config.Budget = f.config.Budget
	}
	switch {
	case config.Storage != nil:
		sub.storage = config.Storage
	case sub.storage == nil:
		sub.storage = informer.NewResourceVersionStorage()
	}
	config.Storage = sub.storage
	return config, nil
}

// acquire makes and starts the informer of a subscription. It runs with the values of ctx, and ends
// with it, also while the run waits for Configure of another target.
func (r *run) acquire(ctx context.Context, sub *subscription, config informer.InformerConfig) error {
	t := sub.target
	made, err := newInformer(t.name(), config)
	if err != nil {
		return err
	}
	lease, err := r.cluster.fleet.config.Factory.AcquireResourceVersion(t.Resource, t.options(), func() informer.ResourceVersionInformer { return made })
	if err != nil {
		return err
	}
	if lease.Informer != made {
		lease.Release()
		return errors.New("the factory has an informer for it that is not the fleet's")
	}
	if err := lease.StartWithContext(r.cluster.overseen(ctx, made.HasSyncedChecker().Done)); err != nil {
		lease.Release()
		return err
	}
	sub.lease, sub.detach = lease, context.AfterFunc(ctx, func() { lease.Release() })
	return nil
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
	if len(versions) == 0 { // perhaps its informer has never read its checkpoint
		return fresh
	}
	if err := fresh.Replace(versions); err != nil { // not possible: the keys are those of a storage
		panic(fmt.Sprintf("fleet: keys of a storage: %v", err))
	}
	return fresh
}
