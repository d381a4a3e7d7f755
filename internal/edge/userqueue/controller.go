// Package userqueue feeds a queue of the user's, a cache.DeltaFIFO for instance, and empties it
// into a ProcessFunc. It is what Config.Queue asks a controller for.
//
// Such a queue forgets what it has popped. With Options.Retry, the deltas that Process has failed
// for are parked beside it until they are processed, or replaced by newer ones of their key.
package userqueue

import (
	"context"
	"errors"
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/engine/sink"
	"github.com/rvinformer/informer/internal/leaf/failure"
)

// Options configure a Controller. All but Retry are required.
type Options struct {
	// Queue is the user's. It is closed when Run ends.
	Queue cache.Queue
	// Into is the queue as a sink.
	Into sink.Sink
	// Process handles what the queue pops.
	Process cache.ProcessFunc
	// Retry has the deltas that Process returned an error for tried again.
	Retry bool
	// Report is that of the reflector.
	Report *report.Report
	// Read reads into a sink until ctx ends.
	Read func(ctx context.Context, into sink.Sink)
}

// Controller fills and empties a queue of the user's. It runs once.
type Controller struct {
	Options
	retries *retries // nil without Retry
	first   firstList

	synced    chan struct{}
	closeOnce sync.Once
}

// New returns a controller.
func New(options Options) *Controller {
	c := &Controller{Options: options, synced: make(chan struct{})}
	if options.Retry {
		c.retries = newRetries(c.call)
	}
	return c
}

// Run fills and empties the queue until ctx ends, closes it then, and processes what is left in
// it. It returns after every goroutine that it started.
func (c *Controller) Run(ctx context.Context) {
	into := c.Into
	var goroutines sync.WaitGroup
	defer goroutines.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // also if Process ends the goroutine
	if c.retries != nil {
		into = retriedSink{into, c.retries}
		c.retry(ctx, &goroutines)
	}
	goroutines.Go(func() {
		<-ctx.Done()
		c.Queue.Close()
	})
	goroutines.Go(func() {
		defer cancel()
		c.Read(ctx, progressSink{into, c})
	})
	c.popAll(ctx)
}

// Synced is closed when the first complete list has been through Process.
func (c *Controller) Synced() <-chan struct{} { return c.synced }

// retry tries again what Process has failed for, in a goroutine, and in another one if Process
// ends that.
func (c *Controller) retry(ctx context.Context, goroutines *sync.WaitGroup) {
	goroutines.Go(func() {
		returned := false
		defer func() {
			if !returned {
				c.retry(ctx, goroutines)
			}
		}()
		c.retries.run(ctx)
		returned = true
	})
}

// popAll processes what the queue pops until it is closed and empty.
func (c *Controller) popAll(ctx context.Context) {
	pop := func(obj interface{}, isInInitialList bool) error {
		if !c.isSynced() {
			defer c.first.processed(obj)
		}
		if unread, _ := c.first.state(); unread {
			isInInitialList = !c.isSynced()
		}
		if c.retries == nil {
			return c.call(ctx, obj, isInInitialList)
		}
		c.retries.process(ctx, obj, isInInitialList)
		return nil
	}
	for {
		_, err := c.Queue.Pop(pop)
		if errors.Is(err, cache.ErrFIFOClosed) {
			return
		}
		c.checkSynced()
	}
}

// call processes one pop.
func (c *Controller) call(ctx context.Context, obj interface{}, isInInitialList bool) error {
	fail := func(err error) { c.Report.FailHandling(&api.ProcessError{Key: popKey(obj), Err: err}) }
	err := failure.Guard(ctx, fail, func() error { return c.Process(obj, isInInitialList) })
	if err != nil {
		fail(err)
		return err
	}
	c.Report.Handled()
	c.Report.GivenBack()
	return nil
}

// checkSynced closes synced when the list is in the queue and the queue has
// popped it. It is called after each of the two, between calls of Process: a
// DeltaFIFO takes itself for synced before the last object was processed.
func (c *Controller) checkSynced() {
	if c.isSynced() || !c.Report.Stored() {
		return
	}
	unread, done := c.first.state()
	if unread && done || !unread && c.Queue.HasSynced() {
		c.closeOnce.Do(func() {
			close(c.synced)
			c.first.end()
		})
	}
}

func (c *Controller) isSynced() bool {
	select {
	case <-c.synced:
		return true
	default:
		return false
	}
}

// progressSink has the controller look when a reflector has got further.
type progressSink struct {
	sink.Sink
	controller *Controller
}

func (s progressSink) Begin(ctx context.Context) (sink.Generation, error) {
	g, err := s.Sink.Begin(ctx)
	if err != nil || s.controller.Report.Stored() {
		return g, err
	}
	return s.controller.first.begin(g), nil
}

func (s progressSink) Observed(p sink.Progress) error {
	defer s.controller.checkSynced()
	return s.Sink.Observed(p)
}

// objectsIn are the objects that a queue pops, those of a whole list too.
func objectsIn(popped interface{}) (objects []interface{}) {
	deltas, _ := popped.(cache.Deltas)
	for _, d := range deltas {
		if all, ok := d.Object.(cache.ReplacedAllInfo); ok {
			objects = append(objects, all.Objects...)
		} else {
			objects = append(objects, d.Object)
		}
	}
	return objects
}

// popKey is the key of an item that a queue pops, empty if it is not of one key.
func popKey(obj interface{}) string {
	deltas, ok := obj.(cache.Deltas)
	if !ok || len(deltas) == 0 {
		return ""
	}
	key, err := object.Key(deltas.Newest().Object)
	if err != nil {
		return ""
	}
	return key
}
