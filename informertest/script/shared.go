package script

import (
	"context"
	"sync"
	"time"

	"github.com/rvinformer/informer"
)

// Shared makes a SharedResourceVersionInformer. The handler of the script is one of its handlers; others are beside it: one
// that is fast, one that is slow, and one that comes and goes each minute. What the script expects of the number of
// requests, it does not fulfil.
func Shared(s Setup) (*Subject, error) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	own := informer.HandlerConfig{
		Handler: config.Handler, BatchHandler: config.BatchHandler, Storage: config.Storage, Checkpoint: config.Checkpoint,
		Budget: config.Budget, ErrorHandler: config.ErrorHandler,
	}
	config.Handler, config.BatchHandler, config.Storage, config.Checkpoint, config.ErrorHandler = nil, nil, nil, nil, ignoreErrors
	config.Budget = informer.NewBudget(64 << 10)
	i := informer.NewSharedResourceVersionInformer("script", config)
	judged, err := i.AddHandler(own)
	if err != nil {
		return nil, err
	}
	if _, err := i.AddEventHandler(informer.ResourceEventHandlerFuncs{}); err != nil {
		return nil, err
	}
	slow := informer.NewBudget(4 << 10)
	if _, err := i.AddHandler(informer.HandlerConfig{Name: "slow", Budget: slow, Handler: slowly(time.Second)}); err != nil {
		return nil, err
	}
	run := func(ctx context.Context) {
		var visiting sync.WaitGroup
		visiting.Go(func() { visit(ctx, i) })
		i.RunWithContext(ctx)
		visiting.Wait()
	}
	return s.subject(judged, run, own.Budget), nil
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

// slowly is a handler of which each call takes so long.
func slowly(each time.Duration) informer.ResourceEventHandler {
	pause := func(interface{}) { time.Sleep(each) }
	return informer.ResourceEventHandlerFuncs{
		AddFunc: pause, DeleteFunc: pause, UpdateFunc: func(_, obj interface{}) { pause(obj) },
	}
}

func ignoreErrors(*informer.Reflector, error) {}
