package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/edge/report"
)

// Controller follows the objects of a Resource and calls it for what happens to them.
// Resource is required; of everything else, the zero value is a sensible default. The
// fields must not change once Run was called, and it must not be copied.
type Controller struct {
	// Log is told of calls that fail. Default: klog.
	Log Logger

	// Resource says what to follow and what to do about it. It may be a Backgrounder, and a
	// StorelessResource or a HandlerResource.
	Resource Resource

	// Name is the Controller's in errors, and that of its queue in the metrics of
	// workqueue, which have everything but retries, where the program has set a provider.
	// Default: none, and no metrics.
	Name string

	// Workers is the number of calls of Upsert and Delete side by side; there are no two
	// of one key at a time. Default: 1, or the Workers of a StorelessResource's
	// configuration.
	Workers int

	// MaxRetries is how often a call that has failed is tried again before it is given up.
	// When the object has changed, that begins anew. A panic that utilruntime lets the
	// process survive is a failure as well. Negative: for ever, which is what a
	// StorelessResource should have that must not miss anything. Default: 5, which is six
	// calls.
	MaxRetries int

	// RateLimiter says when a call that has failed is tried again, except for a
	// StorelessResource. A newer event does not wait for that. Default: that of client-go's
	// controllers: after 5 ms, doubled up to 1000 s, and ten a second for all keys, from
	// the hundredth on.
	RateLimiter workqueue.TypedRateLimiter[string]

	// OnGiveUp, if set, is told what was given up: the key, the object of the last call,
	// and a *CallError. It is called by a worker, before the key may be processed
	// again. It was reported to utilruntime.ErrorHandlers then. With a StorelessResource, what
	// was given up is acknowledged when OnGiveUp has returned; a *RawObject is lent until
	// then.
	OnGiveUp func(event Event, err error)

	// StopTimeout is how long a Backgrounder may go on when everything else has stopped.
	// If it has not returned by then, Run reports that and returns without it. Negative: it is
	// waited for in any case. Default: 30 seconds.
	StopTimeout time.Duration

	mu      sync.Mutex
	running bool
	// source is that of the run under way, or of the last one; nil before.
	source source
	// synced is closed when the source of the run under way is; nil until it is asked for.
	synced chan struct{}
}

var _ cache.Controller = &Controller{}

// source is where a controller learns what happens.
type source interface {
	// run follows, and has calls made, until ctx ends. It returns after all of its
	// goroutines. It calls synced once everything was listed. The error is why it ended
	// early, or with something left undone.
	run(ctx context.Context, synced func()) error
	lastSyncResourceVersion() string
}

var (
	_ source = &shared{}
	_ source = &storeless{}
	_ source = &handler{}
)

// Run is RunWithContext for a channel that is closed to stop.
func (c *Controller) Run(stopCh <-chan struct{}) {
	// Not wait.ContextForChannel: contexts derived from that have goroutines of their own.
	ctx, cancel := context.WithCancel(context.Background())
	var watcher sync.WaitGroup
	watcher.Go(func() {
		select {
		case <-stopCh:
			cancel()
		case <-ctx.Done():
		}
	})
	defer watcher.Wait()
	defer cancel()
	c.RunWithContext(ctx)
}

// RunWithContext follows the objects and calls the Resource until ctx ends, and returns
// after everything that it has started, a Backgrounder included: see StopTimeout. With a
// store, what is queued then is still processed, but what failed is not tried again.
//
// An informer that others run may be stopped by them before: then Log is told, as a warning,
// and Run still waits for ctx.
//
// A Run beside a running one reports informer.ErrAlreadyRunning and returns. So does one
// that cannot begin, because the informer of the Resource has stopped before for
// instance: to utilruntime.ErrorHandlers, and Log.
//
// It panics if the Resource or its informer is nil, or Workers negative.
func (c *Controller) RunWithContext(ctx context.Context) {
	c.check()
	if err := c.run(ctx); err != nil {
		c.report(ctx, err)
	}
}

func (c *Controller) check() {
	switch {
	case c.Resource == nil:
		panic("controller: Controller.Resource is required")
	case c.Workers < 0:
		panic(fmt.Sprintf("controller: Controller.Workers is %d", c.Workers))
	}
}

func (c *Controller) run(ctx context.Context) error {
	if err := c.begin(); err != nil {
		return err
	}
	defer c.end()
	source := c.prepare(ctx)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	background := c.background(ctx)
	err := source.run(ctx, c.setSynced)
	stop()
	return errors.Join(err, background.wait(c.StopTimeout))
}

func (c *Controller) report(ctx context.Context, err error) {
	err = fmt.Errorf("%s: %w", c.title(), err)
	report.Unhandled(klog.FromContext(ctx), err, "Controller failed", "name", c.Name)
	if c.Log != nil {
		c.Log.Error("controller failed", "name", c.Name, "error", err)
	}
}

// title is what errors and DoneCheckers call it.
func (c *Controller) title() string {
	if c.Name == "" {
		return fmt.Sprintf("controller of %T", c.Resource)
	}
	return fmt.Sprintf("controller %q of %T", c.Name, c.Resource)
}

// begin notes that a run is under way.
func (c *Controller) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running {
		return informer.ErrAlreadyRunning
	}
	c.running = true
	return nil
}

func (c *Controller) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = false
}

// prepare makes the source of a run. One without a store is made once: it goes on from
// what it has in its storage.
func (c *Controller) prepare(ctx context.Context) source {
	c.mu.Lock()
	last := c.source
	c.mu.Unlock()
	switch last.(type) {
	case *storeless, *handler:
		return last
	}
	made := c.newSource(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.source = made
	if c.synced != nil && cache.IsDone(checker{done: c.synced}) { // that of the run before
		c.synced = nil
	}
	return made
}

func (c *Controller) newSource(ctx context.Context) source {
	calls := &calls{resource: c.Resource, most: c.MaxRetries, onGiveUp: c.OnGiveUp, log: c.Log, failed: map[string]failure{}}
	if calls.most == 0 {
		calls.most = defaultMaxRetries
	}
	if calls.log == nil {
		calls.log = klogLogger{klog.FromContext(ctx).WithCallDepth(1)}
	}
	if r, ok := c.Resource.(StorelessResource); ok {
		return newStoreless(r, c.Workers, calls)
	}
	if r, ok := c.Resource.(HandlerResource); ok {
		return newHandler(r, c.Workers, calls)
	}
	followed := c.Resource.Informer()
	if followed == nil {
		panic(fmt.Sprintf("controller: the Informer of %T is nil", c.Resource))
	}
	return newShared(followed, c.Name, c.Workers, c.RateLimiter, calls)
}

// HasSynced reports whether everything that the source of the Run under way has listed is in its
// store, and was queued. With a StorelessResource: whether every item of the first list was
// processed or given up. It is false before Run.
func (c *Controller) HasSynced() bool { return cache.IsDone(c.HasSyncedChecker()) }

// HasSyncedChecker has a channel that is closed when HasSynced becomes true.
func (c *Controller) HasSyncedChecker() cache.DoneChecker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return checker{name: c.title(), done: c.syncedLocked()}
}

func (c *Controller) syncedLocked() chan struct{} {
	if c.synced == nil {
		c.synced = make(chan struct{})
	}
	return c.synced
}

func (c *Controller) setSynced() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if synced := c.syncedLocked(); !cache.IsDone(checker{done: synced}) {
		close(synced)
	}
}

// LastSyncResourceVersion is the newest resource version that the source has read. It is
// empty before Run.
func (c *Controller) LastSyncResourceVersion() string {
	c.mu.Lock()
	source := c.source
	c.mu.Unlock()
	if source == nil {
		return ""
	}
	return source.lastSyncResourceVersion()
}

// checker is a cache.DoneChecker over a channel.
type checker struct {
	name string
	done <-chan struct{}
}

func (c checker) Name() string          { return c.name }
func (c checker) Done() <-chan struct{} { return c.done }
