package script

import (
	"context"
	"sync"
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
	return s.followed(judged, run, own.Budget), nil
}

// sharing is how many handlers a shared informer of a script has at a time.
const sharing = 4

// followed is the subject that one of the handlers is.
func (s Setup) followed(i follower, run func(context.Context), budget *informer.Budget) *Subject {
	subject := s.subject(i, run, budget)
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
	late := &lateHandler{}
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
		late.set(judged)
		<-ctx.Done()
		<-i.RemoveHandler(judged)
		late.set(nil)
	}
	return s.followed(late, run, own.Budget), nil
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

// lateHandler is a handler while it is there.
type lateHandler struct {
	mu sync.Mutex
	h  *informer.HandlerRegistration
}

func (l *lateHandler) set(h *informer.HandlerRegistration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.h = h
}

func (l *lateHandler) get() *informer.HandlerRegistration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.h
}

func (l *lateHandler) HasSynced() bool {
	h := l.get()
	return h != nil && h.HasSynced()
}

func (l *lateHandler) Status() informer.Status {
	if h := l.get(); h != nil {
		return h.Status()
	}
	return informer.Status{}
}

func (l *lateHandler) LastSyncResourceVersion() string {
	if h := l.get(); h != nil {
		return h.LastSyncResourceVersion()
	}
	return ""
}

func (l *lateHandler) Audit(ctx context.Context, opts informer.AuditOptions) (informer.AuditReport, error) {
	if h := l.get(); h != nil {
		return h.Audit(ctx, opts)
	}
	return informer.AuditReport{}, informer.ErrNotRunning
}

func (l *lateHandler) Redeliver(ctx context.Context, opts informer.RedeliverOptions) error {
	if h := l.get(); h != nil {
		return h.Redeliver(ctx, opts)
	}
	return informer.ErrNotRunning
}

// visit adds a handler each minute, and removes it.
func visit(ctx context.Context, i *informer.SharedResourceVersionInformer) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	var visitor *informer.HandlerRegistration
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if visitor != nil {
			i.RemoveHandler(visitor)
			visitor = nil
			continue
		}
		var err error
		if visitor, err = i.AddEventHandler(informer.ResourceEventHandlerFuncs{}); err != nil {
			panic(err)
		}
	}
}

// slowly is a handler whose calls take so long.
func slowly(each time.Duration) informer.ResourceEventHandler {
	pause := func(interface{}) { time.Sleep(each) }
	return informer.ResourceEventHandlerFuncs{
		AddFunc: pause, DeleteFunc: pause, UpdateFunc: func(_, obj interface{}) { pause(obj) },
	}
}

func ignoreErrors(*informer.Reflector, error) {}
