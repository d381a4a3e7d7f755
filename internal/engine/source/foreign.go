package source

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/server"
	"github.com/rvinformer/informer/internal/leaf/redact"
)

const (
	// callPatience is how long List and Watch of a ListerWatcher of others may take, unless the
	// Patience is set. It shows nothing of a list before it has all of it.
	callPatience = 5 * time.Minute
	// maxLeftBehind is how many of its calls may hang before no other is made.
	maxLeftBehind = 4
)

// foreignCall calls List or Watch of a ListerWatcher of others, which may not obey its
// context.
type foreignCall[T any] struct {
	*Source
	method string
	call   func(ctx context.Context) (T, error)
	// discard takes a result that comes too late.
	discard func(T)
}

// result is what a call has returned, or panicked with.
type result[T any] struct {
	value    T
	err      error
	panicked any
}

// do returns what the call returns. When the call has taken too long, or ctx has ended, the
// context of the call ends; a call that goes on all the same is left behind, and reported.
// Cancel ends the context of the returned value.
func (c foreignCall[T]) do(ctx context.Context) (value T, cancel func(), err error) {
	if n := c.Memory.leftBehind.Load(); n >= maxLeftBehind {
		return value, nil, fmt.Errorf("%d calls of a %T have not returned: no other is made", n, c.ListerWatcher)
	}
	callCtx, cancelCall := context.WithCancelCause(ctx)
	limit := c.callPatience()
	patience := time.AfterFunc(limit, func() { cancelCall(&api.StallError{Silence: limit}) })
	defer patience.Stop()
	returned, left := make(chan result[T]), make(chan struct{})
	go c.run(callCtx, returned, left)
	select {
	case r := <-returned:
		return c.finish(r, cancelCall)
	case <-callCtx.Done():
	}
	late := time.NewTimer(maxStop)
	defer late.Stop()
	select {
	case r := <-returned:
		if r.err != nil { // it says that the context has ended, but not why
			r.err = context.Cause(callCtx)
		}
		return c.finish(r, cancelCall)
	case <-late.C:
	}
	c.Memory.leftBehind.Add(1)
	close(left)
	err = fmt.Errorf("%s of a %T did not return within %v of the end of its context, and is left behind: %w", c.method, c.ListerWatcher, maxStop, context.Cause(callCtx))
	if ctx.Err() != nil { // the caller does not report the error of a call that was stopped
		c.Report.Fail(err)
	}
	return value, nil, err
}

// run makes the call and hands over what it returns, or, once the call was left behind,
// drops it. A panic is the caller's, as with client-go.
func (c foreignCall[T]) run(ctx context.Context, returned chan<- result[T], left <-chan struct{}) {
	r := result[T]{err: fmt.Errorf("%s of a %T ended its goroutine", c.method, c.ListerWatcher)}
	defer func() {
		r.panicked = recover()
		select {
		case returned <- r:
		case <-left:
			c.Memory.leftBehind.Add(-1)
			c.drop(r)
		}
	}()
	r.value, r.err = c.call(ctx)
}

// drop takes what came too late.
func (c foreignCall[T]) drop(r result[T]) {
	switch {
	case r.panicked != nil:
		c.Report.Fail(&api.PanicError{Value: r.panicked})
	case r.err == nil:
		c.discard(r.value)
	}
}

func (c foreignCall[T]) finish(r result[T], cancel context.CancelCauseFunc) (T, func(), error) {
	if r.panicked != nil {
		cancel(nil)
		panic(r.panicked)
	}
	if r.err != nil {
		cancel(nil)
		return r.value, nil, redact.Error(r.err)
	}
	return r.value, func() { cancel(nil) }, nil
}

// callPatience is how long a call may take. One that takes no context cannot be ended, so it has
// the default.
func (s *Source) callPatience() time.Duration {
	if _, takesContext := s.ListerWatcher.(cache.ListerWatcher); !takesContext { // it is client-go's wrapper of one that takes none
		return callPatience
	}
	return s.Patience.or(callPatience)
}

// answer is what a ListerWatcher of others has returned, and what it was asked to select.
type answer[T any] struct {
	value T
	of    *selected
}

// tweaked returns whom to ask, and with which options.
func (s *Source) tweaked(opts metav1.ListOptions) (cache.ListerWatcherWithContext, metav1.ListOptions) {
	if f, ok := s.ListerWatcher.(server.Filtered); ok {
		return f.Tweaked(opts)
	}
	return s.ListerWatcher, opts
}

// listForeign lists with a ListerWatcher of others.
func (s *Source) listForeign(ctx context.Context, opts metav1.ListOptions) (runtime.Object, *selected, error) {
	list, cancel, err := foreignCall[answer[runtime.Object]]{
		Source: s, method: "List",
		call: func(ctx context.Context) (a answer[runtime.Object], err error) {
			lw, opts := s.tweaked(opts)
			a.of = selectedBy(opts)
			a.value, err = lw.ListWithContext(ctx, opts)
			return a, err
		},
		discard: func(answer[runtime.Object]) {},
	}.do(ctx)
	if err != nil {
		return nil, nil, err
	}
	cancel()
	return list.value, list.of, nil
}

// watchForeign watches with a ListerWatcher of others, until cancel is called.
func (s *Source) watchForeign(ctx context.Context, opts metav1.ListOptions) (w watch.Interface, of *selected, cancel func(), err error) {
	opened, cancel, err := foreignCall[answer[watch.Interface]]{
		Source: s, method: "Watch",
		call: func(ctx context.Context) (a answer[watch.Interface], err error) {
			lw, opts := s.tweaked(opts)
			a.of = selectedBy(opts)
			a.value, err = lw.WatchWithContext(ctx, opts)
			return a, err
		},
		discard: func(a answer[watch.Interface]) {
			if a.value != nil {
				a.value.Stop()
			}
		},
	}.do(ctx)
	return opened.value, opened.of, cancel, err
}
