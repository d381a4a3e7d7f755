package follower

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// resync has the sink repeat, once in each period, what it has.
//
// Its goroutine and the follower take turns. The follower lends the turn while it waits for a
// change of a watch, and at no other time: so what is repeated is never mixed with a list, and the
// sink has one caller at a time. All of a nil resync does nothing.
type resync struct {
	period time.Duration
	repeat func(ctx context.Context) error
	// turn has the turn while the follower lends it.
	turn chan struct{}
	// endWatch ends the watch under way; nil without one. It and failed belong to the one that has
	// the turn.
	endWatch context.CancelFunc
	// failed is how the resync in the watch under way has failed; nil if none has.
	failed  *resyncFailure
	stop    context.CancelFunc
	running sync.WaitGroup
}

// resyncFailure is how a resync has failed.
type resyncFailure struct {
	// err is that of the sink; nil if the sink has panicked, or has ended the goroutine.
	err      error
	panicked any
}

// reason returns the error of the sink. If the sink has panicked, or has ended the goroutine, so
// does reason.
func (f *resyncFailure) reason() error {
	switch {
	case f == nil:
		return nil
	case f.panicked != nil:
		panic(f.panicked)
	case f.err == nil:
		runtime.Goexit()
	}
	return f.err
}

func newResync(period time.Duration, repeat func(ctx context.Context) error) *resync {
	return &resync{period: period, repeat: repeat, turn: make(chan struct{}, 1), stop: func() {}}
}

// start starts the goroutine, which ends with ctx or with close.
func (r *resync) start(ctx context.Context) {
	if r == nil {
		return
	}
	ctx, r.stop = context.WithCancel(ctx)
	r.running.Go(func() { r.run(ctx) })
}

// close waits until the goroutine has ended.
func (r *resync) close() {
	if r != nil {
		r.stop()
		r.running.Wait()
	}
}

func (r *resync) run(ctx context.Context) {
	timer := time.NewTimer(r.period)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		select {
		case <-r.turn:
		case <-ctx.Done():
			return
		}
		timer.Reset(r.period)
		r.do(ctx)
	}
}

// do has the sink repeat what it has. A failure ends the watch. The turn is given back however the
// sink returns.
func (r *resync) do(ctx context.Context) {
	failed := &resyncFailure{}
	defer func() {
		if failed != nil {
			failed.panicked = recover()
			r.failed = failed
			r.endWatch()
		}
		r.turn <- struct{}{}
	}()
	if failed.err = r.repeat(ctx); failed.err == nil {
		failed = nil
	}
}

// lend lends the turn, and take takes it back. Take reports whether it had to wait for a resync,
// and returns the error of one that has failed meanwhile, whatever else has ended the watch. If the
// sink has panicked, or has ended the goroutine, so does take.
func (r *resync) lend() {
	if r != nil {
		r.turn <- struct{}{}
	}
}

func (r *resync) take() (waited bool, err error) {
	if r == nil {
		return false, nil
	}
	select {
	case <-r.turn:
	default:
		waited = true
		<-r.turn
	}
	return waited, r.failed.reason()
}

// beginWatch returns the context for a watch, which a resync that fails ends; and closeWatch ends
// it.
func (r *resync) beginWatch(ctx context.Context) context.Context {
	if r == nil {
		return ctx
	}
	ctx, r.endWatch = context.WithCancel(ctx)
	return ctx
}

func (r *resync) closeWatch() {
	if r != nil && r.endWatch != nil {
		r.endWatch()
		r.endWatch, r.failed = nil, nil
	}
}
