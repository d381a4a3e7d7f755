package follower

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// resync has the sink repeat, once in each period, what it has.
//
// Its goroutine and the follower take turns. The follower lends the turn while it waits for a change of a watch, and at
// no other time: so what is repeated is never mixed with a list, and the sink has one caller at a time. All of a nil
// resync does nothing.
type resync struct {
	period time.Duration
	repeat func(ctx context.Context) error
	// turn has the turn while the follower lends it.
	turn chan struct{}
	// endWatch ends the watch under way; nil without one. It belongs to the one that has the turn.
	endWatch context.CancelCauseFunc
	stop     context.CancelFunc
	running  sync.WaitGroup
}

// resyncError is why a resync has failed, as the cause of the end of a watch.
type resyncError struct {
	// error is that of the sink; nil if the sink has panicked, or has ended the goroutine.
	error
	panicked any
}

// reason returns the error of the sink. If the sink has panicked, or has ended the goroutine, so does reason.
func (e *resyncError) reason() error {
	switch {
	case e.panicked != nil:
		panic(e.panicked)
	case e.error == nil:
		runtime.Goexit()
	}
	return e.error
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

// do has the sink repeat what it has. A failure ends the watch. The turn is given back however the sink returns.
func (r *resync) do(ctx context.Context) {
	returned := false
	defer func() {
		if !returned {
			r.endWatch(&resyncError{panicked: recover()})
		}
		r.turn <- struct{}{}
	}()
	err := r.repeat(ctx)
	returned = true
	if err != nil {
		r.endWatch(&resyncError{error: err})
	}
}

// lend lends the turn, and take takes it back. Take reports whether it had to wait for a resync.
func (r *resync) lend() {
	if r != nil {
		r.turn <- struct{}{}
	}
}

func (r *resync) take() (waited bool) {
	if r == nil {
		return false
	}
	select {
	case <-r.turn:
		return false
	default:
		<-r.turn
		return true
	}
}

// beginWatch returns the context for a watch, which a resync that fails ends with a *resyncError; and closeWatch ends
// it.
func (r *resync) beginWatch(ctx context.Context) context.Context {
	if r == nil {
		return ctx
	}
	ctx, r.endWatch = context.WithCancelCause(ctx)
	return ctx
}

func (r *resync) closeWatch() {
	if r != nil && r.endWatch != nil {
		r.endWatch(nil)
		r.endWatch = nil
	}
}
