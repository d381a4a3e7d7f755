package script

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rvinformer/informer"
)

// Shared makes a SharedResourceVersionInformer. The handler of the script is one of its handlers;
// others are beside it: one that is fast, one that is slow, and one that comes and goes each
// minute. What the script expects of the number of requests, it does not fulfil.
func Shared(s Setup) (*Subject, error) {
	i, own, err := s.shared()
	if err != nil {
		return nil, err
	}
	judged, err := i.AddHandler(own)
	if err != nil {
		return nil, err
	}
	run := func(ctx context.Context) {
		var visiting sync.WaitGroup
		visiting.Go(func() { visit(ctx, i) })
		i.RunWithContext(ctx)
		visiting.Wait()
	}
	return s.followed(func() follower { return judged }, run, own.Budget), nil
}

// sharing is how many handlers a shared informer of a script has at a time.
const sharing = 4

// followed is the subject that one of the handlers is.
func (s Setup) followed(now func() follower, run func(context.Context), budget *informer.Budget) *Subject {
	subject := s.subject(now, run, budget)
	subject.Followers = sharing
	return subject
}

// SharedLate is Shared with the handler of the script added when the others are there for a minute,
// and removed at the end of each run.
func SharedLate(s Setup) (*Subject, error) {
	i, own, err := s.shared()
	if err != nil {
		return nil, err
	}
	var late atomic.Pointer[informer.HandlerRegistration]
	run := func(ctx context.Context) {
		var running sync.WaitGroup
		others, end := context.WithCancel(context.WithoutCancel(ctx))
		defer running.Wait()
		defer end()
		running.Go(func() { visit(others, i) })
		running.Go(func() { i.RunWithContext(others) })
		select {
		case <-time.After(time.Minute):
		case <-ctx.Done():
			return
		}
		judged, err := i.AddHandler(own)
		if err != nil {
			panic(err)
		}
		late.Store(judged)
		<-ctx.Done()
		<-i.RemoveHandler(judged)
		late.Store(nil)
	}
	now := func() follower {
		if judged := late.Load(); judged != nil {
			return judged
		}
		return absent{}
	}
	return s.followed(now, run, own.Budget), nil
}

// shared is an informer with handlers of its own, and what that of the script is to be added with.
func (s Setup) shared() (*informer.SharedResourceVersionInformer, informer.HandlerConfig, error) {
	config, err := s.config()
	if err != nil {
		return nil, informer.HandlerConfig{}, err
	}
	own := informer.HandlerConfig{
		Handler: config.Handler, BatchHandler: config.BatchHandler, Storage: config.Storage, Checkpoint: config.Checkpoint,
		Budget: config.Budget, ErrorHandler: config.ErrorHandler,
	}
	config.Handler, config.BatchHandler, config.Storage, config.Checkpoint, config.ErrorHandler = nil, nil, nil, nil, ignoreErrors
	config.Budget = informer.NewBudget(64 << 10)
	i := informer.NewSharedResourceVersionInformer("script", config)
	for _, other := range []informer.HandlerConfig{
		{Name: "fast", Handler: informer.ResourceEventHandlerFuncs{}},
		{Name: "slow", Handler: slowly(time.Second), Budget: informer.NewBudget(4 << 10)},
	} {
		if _, err := i.AddHandler(other); err != nil {
			return nil, informer.HandlerConfig{}, err
		}
	}
	return i, own, nil
}

// absent is a handler that is not there.
type absent struct{}

func (absent) HasSynced() bool                 { return false }
func (absent) Status() informer.Status         { return informer.Status{} }
func (absent) LastSyncResourceVersion() string { return "" }

func (absent) Audit(context.Context, informer.AuditOptions) (informer.AuditReport, error) {
	return informer.AuditReport{}, informer.ErrNotRunning
}

func (absent) Redeliver(context.Context, informer.RedeliverOptions) error {
	return informer.ErrNotRunning
}

// visit adds a handler each minute, and removes it.
func visit(ctx context.Context, i *informer.SharedResourceVersionInformer) {
	var visitor *informer.HandlerRegistration
	every(ctx, time.Minute, func() {
		if visitor != nil {
			i.RemoveHandler(visitor)
			visitor = nil
			return
		}
		var err error
		if visitor, err = i.AddEventHandler(informer.ResourceEventHandlerFuncs{}); err != nil {
			panic(err)
		}
	})
}

// slowly is a handler whose calls take so long.
func slowly(each time.Duration) informer.ResourceEventHandler {
	pause := func(interface{}) { time.Sleep(each) }
	return informer.ResourceEventHandlerFuncs{
		AddFunc: pause, DeleteFunc: pause, UpdateFunc: func(_, obj interface{}) { pause(obj) },
	}
}

func ignoreErrors(*informer.Reflector, error) {}
