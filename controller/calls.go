package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/leaf/redact"
)

// defaultMaxRetries is the default of Controller.MaxRetries.
const defaultMaxRetries = 5

type op string

const (
	opUpsert op = "Upsert"
	opDelete op = "Delete"
)

// call is a call of a Resource.
type call struct {
	op op
	Event
	// version is that of the object: with op, it tells what is tried again from what is
	// new.
	version string
	// err, if set, is what the call fails with before it is made.
	err error
}

// CallError says that Upsert or Delete has failed.
type CallError struct {
	// Op is "Upsert" or "Delete".
	Op string
	// Key is "namespace/name" or "name".
	Key string
	// Attempts counts the calls that have failed in a row for this state of the object.
	Attempts int
	// Err is what the last of them has returned, or an *informer.PanicError.
	Err error
}

func (e *CallError) Error() string {
	return fmt.Sprintf("%s %q, attempt %d: %v", e.Op, e.Key, e.Attempts, e.Err)
}

// Unwrap returns what the last call has failed with.
func (e *CallError) Unwrap() error { return e.Err }

// calls calls a Resource, counts its failures, and gives up what has failed too often.
type calls struct {
	resource Resource
	// most is how often a failed call is tried again, negative for ever.
	most     int
	onGiveUp func(event Event, err error)
	log      Logger

	mu sync.Mutex
	// failed are the keys whose last call has failed and was not given up.
	failed map[string]failure
}

// failure is what has failed, and how often.
type failure struct {
	op       op
	version  string
	attempts int
	since    time.Time
}

// do makes a call. The error says that it is to be made again: an item that was given up
// is done.
func (c *calls) do(ctx context.Context, do call) error {
	err := c.guard(ctx, do)
	if err == nil {
		c.recovered(do)
		return nil
	}
	failed := &CallError{Op: string(do.op), Key: do.Key, Attempts: c.fail(do), Err: err}
	if c.most < 0 || failed.Attempts <= c.most {
		log := c.log.Debug
		if failed.Attempts == 1 {
			log = c.log.Warn
		}
		log("call failed and is tried again", "op", failed.Op, "key", failed.Key, "attempt", failed.Attempts, "error", redact.Error(err))
		return failed
	}
	c.forget(do.Key)
	c.giveUp(ctx, do.Event, failed)
	return nil
}

// guard makes a call. A panic is an error where utilruntime lets the process survive it.
func (c *calls) guard(ctx context.Context, do call) (err error) {
	defer utilruntime.HandleCrashWithContext(ctx, func(_ context.Context, value interface{}) {
		err = &informer.PanicError{Value: value}
	})
	switch {
	case do.err != nil:
		return do.err
	case do.op == opDelete:
		return c.resource.Delete(do.Key, do.Obj)
	default:
		return c.resource.Upsert(do.Key, do.Obj)
	}
}

// fail counts a failure, and returns how many there were of the same.
func (c *calls) fail(do call) (attempts int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.failed[do.Key]
	if f.op != do.op || f.version != do.version {
		f = failure{op: do.op, version: do.version, since: time.Now()}
	}
	f.attempts++
	c.failed[do.Key] = f
	return f.attempts
}

// recovered forgets the failures of a call that has succeeded, and logs that they are over.
func (c *calls) recovered(do call) {
	c.mu.Lock()
	f, failed := c.failed[do.Key]
	delete(c.failed, do.Key)
	c.mu.Unlock()
	if failed {
		c.log.Info("call has succeeded", "op", string(do.op), "key", do.Key, "failures", f.attempts, "lasted", time.Since(f.since).Round(time.Millisecond).String())
	}
}

func (c *calls) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.failed, key)
}

func (c *calls) giveUp(ctx context.Context, event Event, failed *CallError) {
	report.Unhandled(klog.FromContext(ctx), failed, "Gave up a key", "key", event.Key)
	if _, same := c.log.(klogLogger); !same { // as the line above
		c.log.Error("gave up", "op", failed.Op, "key", failed.Key, "attempts", failed.Attempts, "error", redact.Error(failed.Err))
	}
	if c.onGiveUp == nil {
		return
	}
	defer utilruntime.HandleCrashWithContext(ctx)
	c.onGiveUp(event, failed)
}
