package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Reported collects what goes to utilruntime.ErrorHandlers during a test, which
// must not be parallel.
func Reported(t *testing.T) func() []error {
	t.Helper()
	var mu sync.Mutex
	var errs []error
	before := utilruntime.ErrorHandlers
	t.Cleanup(func() { utilruntime.ErrorHandlers = before })
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(_ context.Context, err error, _ string, _ ...interface{}) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	}}
	return func() []error {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(errs)
	}
}

// SurvivePanics has a panic reported and not crash the process, during a test,
// which must not be parallel.
func SurvivePanics(t *testing.T) {
	t.Helper()
	crash, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	t.Cleanup(func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = crash, handlers })
	utilruntime.ReallyCrash, utilruntime.PanicHandlers = false, nil
}

// Expired is the error of a version that the server does not have any more.
func Expired() error { return apierrors.NewResourceExpired("too old") }

// Stream is a watch that sends events and then, if it is ended, ends.
func Stream(ended bool, events ...watch.Event) watch.Interface {
	w := watch.NewFakeWithChanSize(len(events), false)
	for _, e := range events {
		w.Action(e.Type, e.Object)
	}
	if ended {
		w.Stop()
	}
	return w
}

// Failing is the event with which a server ends a watch.
func Failing(err error) watch.Event {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	s := status.Status()
	return watch.Event{Type: watch.Error, Object: &s}
}

// Tap is a ListerWatcher that a test looks into. OnList and OnWatch, where set,
// are given the number of the call, from 1, and may answer it; where they return
// ErrPass, or are nil, LW answers.
type Tap struct {
	LW      cache.ListerWatcherWithContext
	OnList  func(ctx context.Context, n int, opts metav1.ListOptions) (runtime.Object, error)
	OnWatch func(ctx context.Context, n int, opts metav1.ListOptions) (watch.Interface, error)

	mu             sync.Mutex
	lists, watches int
	asked          []string
}

// ErrPass has the function of a stub leave the answer to what the stub stands for.
var ErrPass = errors.New("pass")

// TapOn is a Tap on lw.
func TapOn(lw cache.ListerWatcher) *Tap { return &Tap{LW: cache.ToListerWatcherWithContext(lw)} }

// ListWithContext implements cache.ListerWithContext.
func (l *Tap) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	l.mu.Lock()
	l.lists++
	n := l.lists
	text := fmt.Sprintf("list rv=%s limit=%d", opts.ResourceVersion, opts.Limit)
	if opts.ResourceVersionMatch != "" {
		text += " " + string(opts.ResourceVersionMatch)
	}
	if opts.Continue != "" {
		text += " continue=" + opts.Continue
	}
	l.asked = append(l.asked, text)
	l.mu.Unlock()
	if l.OnList != nil {
		if obj, err := l.OnList(ctx, n, opts); !errors.Is(err, ErrPass) {
			return obj, err
		}
	}
	return l.LW.ListWithContext(ctx, opts)
}

// WatchWithContext implements cache.WatcherWithContext.
func (l *Tap) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	l.mu.Lock()
	l.watches++
	n := l.watches
	l.asked = append(l.asked, "watch rv="+opts.ResourceVersion)
	l.mu.Unlock()
	if l.OnWatch != nil {
		if w, err := l.OnWatch(ctx, n, opts); !errors.Is(err, ErrPass) {
			return w, err
		}
	}
	return l.LW.WatchWithContext(ctx, opts)
}

// List implements cache.Lister.
func (l *Tap) List(opts metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), opts)
}

// Watch implements cache.Watcher.
func (l *Tap) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), opts)
}

// Requests are what was asked, as "list rv=0 limit=500" or "watch rv=7".
func (l *Tap) Requests() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.asked)
}

// Lists answers the n-th call with the n-th of the answers, and the
// last one again and again. It is for OnList of a Tap.
func Lists(answers ...runtime.Object) func(context.Context, int, metav1.ListOptions) (runtime.Object, error) {
	return func(_ context.Context, n int, _ metav1.ListOptions) (runtime.Object, error) {
		return answers[min(n, len(answers))-1].DeepCopyObject(), nil
	}
}

// Watches is for OnWatch of a Tap what Lists is for OnList.
func Watches(answers ...func() (watch.Interface, error)) func(context.Context, int, metav1.ListOptions) (watch.Interface, error) {
	return func(_ context.Context, n int, _ metav1.ListOptions) (watch.Interface, error) {
		return answers[min(n, len(answers))-1]()
	}
}

// Open is a watch that sends events and goes on.
func Open(events ...watch.Event) func() (watch.Interface, error) {
	return func() (watch.Interface, error) { return Stream(false, events...), nil }
}

// Broken is a watch that sends events and then an error.
func Broken(err error, events ...watch.Event) func() (watch.Interface, error) {
	return func() (watch.Interface, error) { return Stream(true, append(events, Failing(err))...), nil }
}

// Sent is a watch to which a test sends events.
type Sent struct{ *watch.FakeWatcher }

// NewSent is a watch that takes 100 events before anything reads them.
func NewSent() Sent { return Sent{watch.NewFakeWithChanSize(100, false)} }

// Answer is for OnWatch of a Tap.
func (s Sent) Answer(context.Context, int, metav1.ListOptions) (watch.Interface, error) {
	return s.FakeWatcher, nil
}

// Nothing is an ExtraStore that keeps nothing, and fails to delete.
type Nothing struct{}

// Add implements ExtraStore.
func (Nothing) Add(interface{}) error { return nil }

// Update implements ExtraStore.
func (Nothing) Update(interface{}) error { return nil }

// Delete implements ExtraStore.
func (Nothing) Delete(interface{}) error { return errors.New("extra") }

// Replace implements ExtraStore.
func (Nothing) Replace([]interface{}, string) error { return nil }
