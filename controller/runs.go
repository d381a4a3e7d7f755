package controller

import (
	"context"
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/leaf/claims"
)

// underWay are the informers that controllers of this process run. There is one table for
// all, because controllers that know nothing of each other may share an informer, which
// does not bear to be started by two of them at once.
var underWay = runs{of: map[claims.Identity]*run{}}

// runs are informers that run for as long as they have users.
type runs struct {
	mu sync.Mutex
	of map[claims.Identity]*run
}

// run is one informer's. It stays in the table until the informer has stopped.
type run struct {
	users int // 0: it is to stop
	stop  context.CancelFunc
	done  chan struct{}
}

// use has the informer run until release, which returns when it has stopped if it has
// no other user. An informer that others have started is left alone. Ok is
// false if it has stopped, or is about to.
func (r *runs) use(ctx context.Context, informer cache.SharedIndexInformer) (release func(), ok bool) {
	id := claims.IdentityOf(informer)
	r.mu.Lock()
	defer r.mu.Unlock()
	current := r.of[id]
	switch {
	case current == nil && informer.IsStopped() || current != nil && current.users == 0:
		return nil, false
	case current == nil && startedElsewhere(id, informer):
		return func() {}, true
	case current == nil:
		current = r.startLocked(ctx, id, informer)
	}
	current.users++
	return func() { r.release(current) }, true
}

func (r *runs) startLocked(ctx context.Context, id claims.Identity, informer cache.SharedIndexInformer) *run {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // it may outlive its first user
	started := &run{stop: stop, done: make(chan struct{})}
	r.of[id] = started
	go func() {
		defer close(started.done)
		if !startedElsewhere(id, informer) {
			informer.RunWithContext(ctx)
		}
		<-ctx.Done() // others may run it
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.of, id)
	}()
	return started
}

// startedElsewhere reports whether an informer runs, or whether it is a factory's that is
// about to run it.
func startedElsewhere(id claims.Identity, informer cache.SharedIndexInformer) bool {
	s, ok := informer.(interface{ HasStarted() bool })
	return claims.Claimed(id) || ok && s.HasStarted()
}

func (r *runs) release(used *run) {
	r.mu.Lock()
	used.users--
	last := used.users == 0
	r.mu.Unlock()
	if last {
		used.stop()
		<-used.done
	}
}
