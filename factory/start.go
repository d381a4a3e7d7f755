package factory

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/leaf/claims"
)

// scope is for how long informers run.
type scope struct {
	// ctx is what their contexts are made of, unless bound.
	ctx context.Context
	// stop ends it: ctx.Done() or, if bound, a channel. Nil: nothing does.
	stop  <-chan struct{}
	bound bool
}

func contextScope(ctx context.Context) scope { return scope{ctx: ctx, stop: ctx.Done()} }

func channelScope(stop <-chan struct{}) scope {
	return scope{ctx: context.Background(), stop: stop, bound: stop != nil}
}

// Start starts all informers that are not started yet, until stopCh is closed;
// nil: until the factory is told to stop them, or shut down. It does not wait.
func (f *Factory) Start(stopCh <-chan struct{}) { f.startAll(channelScope(stopCh)) }

// StartWithContext is Start for a context, which the informers run with.
func (f *Factory) StartWithContext(ctx context.Context) { f.startAll(contextScope(ctx)) }

// StartOne starts the informer of a key until stopCh is closed; nil: until the
// factory is told to stop it, or shut down. It is no error if it runs already,
// whoever has started it; the first stop channel counts. The error is ErrUnknown,
// ErrStopped or ErrShutDown, by errors.Is.
func (f *Factory) StartOne(key Key, stopCh <-chan struct{}) error {
	f.noteStopped(key)
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.lives[key]
	if l == nil || l.stage == building {
		return fmt.Errorf("starting the informer of %v: %w", key, ErrUnknown)
	}
	return f.startLocked(l, channelScope(stopCh))
}

func (f *Factory) startAll(s scope) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.lives {
		if l.stage == idle {
			_ = f.startLocked(l, s) // the error is ErrShutDown: nothing is started then
		}
	}
}

func (f *Factory) startLife(l *life, s scope) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.startLocked(l, s)
}

func (f *Factory) startLocked(l *life, s scope) error {
	switch {
	case l.stage == ended || l.removed || l.over():
		return fmt.Errorf("starting the informer of %v: %w", l.key, ErrStopped)
	case l.active():
		return nil
	case f.quiet != nil:
		return fmt.Errorf("starting the informer of %v: %w", l.key, ErrShutDown)
	}
	ctx := s.ctx
	if s.bound {
		ctx = f.stopContextLocked(s.stop).ctx
	}
	f.active[l] = struct{}{}
	l.stage, l.started, l.stop = queued, time.Now(), s.stop
	l.ctx, l.cancel = context.WithCancel(context.WithValue(ctx, troubleKey{}, &l.trouble))
	if l.claim != nil {
		claims.Claim(l.claim)
	}
	r := &run{factory: f, life: l, informer: l.informer, turn: f.turnLocked(l.key), scope: s}
	f.goLocked(r.run)
	return nil
}

// run is the goroutine of a life.
type run struct {
	factory  *Factory
	life     *life
	informer Informer
	turn     *turn
	scope    scope
	// taken tells that it has its turn.
	taken bool
}

// run is on the stack while an informer is idle: what is large stands in functions that
// have returned by then.
func (r *run) run() {
	defer r.end()
	if r.taken = r.turn.take(r.life.ctx); r.taken {
		r.factory.runs(r.life)
		r.informer.RunWithContext(r.life.ctx)
		leaveToOthers(r.life.ctx, r.informer)
	}
}

// leaveToOthers waits for ctx if others run the informer, a controller for
// instance: client-go's second Run returns at once.
func leaveToOthers(ctx context.Context, i Informer) {
	if _, shared := i.(cache.SharedIndexInformer); shared && !isStopped(i) {
		<-ctx.Done()
	}
}

// isStopped reports whether an informer is one of client-go that has run, whoever ran it.
func isStopped(i Informer) bool {
	shared, ok := i.(cache.SharedIndexInformer)
	return ok && shared.IsStopped()
}

func (f *Factory) runs(l *life) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l.stage = running
}

// stopContextLocked returns the stopContext of a stop channel for one life more.
func (f *Factory) stopContextLocked(stop <-chan struct{}) *stopContext {
	l := f.stopContexts[stop]
	if l == nil {
		l = newStopContext(stop)
		f.stopContexts[stop] = l
		f.goLocked(func() {
			defer f.returned()
			l.hold()
		})
	}
	if isClosed(stop) {
		l.slip() // at once, so that nothing runs
	}
	l.lives++
	return l
}

// releaseStopLocked ends the stopContext of a stop channel for one life.
func (f *Factory) releaseStopLocked(stop <-chan struct{}) {
	if stopContext := f.stopContexts[stop]; stopContext.lives == 1 {
		delete(f.stopContexts, stop)
		stopContext.slip()
	} else {
		stopContext.lives--
	}
}

// turnLocked returns the turn of a key for one user more; nil where none is needed.
func (f *Factory) turnLocked(key Key) *turn {
	if key.InformerType != ResourceVersionInformer && key.InformerType != SharedResourceVersionInformer {
		return nil
	}
	t := f.turns[key]
	if t == nil {
		t = newTurn()
		f.turns[key] = t
	}
	t.users++
	return t
}

func (f *Factory) turnEndedLocked(key Key, t *turn) {
	if t == nil {
		return
	}
	if t.users--; t.users == 0 {
		delete(f.turns, key)
	}
}

func (r *run) end() {
	defer r.factory.returned()
	if r.taken {
		r.turn.giveBack()
	}
	r.life.cancel()
	if r.life.claim != nil {
		claims.Drop(r.life.claim)
	}
	failed := failingOf(r.life, r.informer)
	failed.ended = time.Now()
	f := r.factory
	f.mu.Lock()
	defer f.mu.Unlock()
	r.life.failed = failed
	r.life.end()
	delete(f.active, r.life)
	f.turnEndedLocked(r.life.key, r.turn)
	if r.scope.bound {
		f.releaseStopLocked(r.scope.stop)
	}
}
