package follow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/fleet/shards"
	"github.com/rvinformer/informer/sqlsink"
	"k8s.io/apimachinery/pkg/util/sets"
)

// write is an object's row, or the checkpoint of its resource if it has no key.
type write struct {
	fleet.Target
	key string
}

// outage is the time from the first write that fails until all that have failed are written. It ends
// no sooner although others succeed meanwhile, as small ones do while a disk is nearly full. It is
// told once, however many batches of however many feeds meet it.
type outage struct {
	name string // of the database
	say  func(line string)

	mu      sync.Mutex
	began   time.Time
	missing sets.Set[write]  // empty while all is well
	reason  error            // why, most recently
	told    sets.Set[string] // the reasons so far
}

func newOutage(name string, say func(string)) *outage {
	return &outage{name: name, say: say, missing: sets.New[write](), told: sets.New[string]()}
}

// note notes what came of a batch, or of the checkpoint of a target: an event without a key.
func (o *outage) note(ctx context.Context, of fleet.Target, events []informer.Event, err error) {
	if line := o.judge(ctx, of, events, err); line != "" {
		o.say(o.name + ": " + line)
	}
}

// judge is note, and returns what is to be said.
func (o *outage) judge(ctx context.Context, of fleet.Target, events []informer.Event, err error) (line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	later, others, why := split(events, err)
	switch {
	case errors.As(err, new(*sqlsink.UnusableError)): // the run ends with it
		return ""
	case later != nil:
		o.writtenLocked(of, others)
		return o.failedLocked(ctx, of, later, why)
	case err == nil, errors.As(err, new(informer.FailedEvents)), errors.Is(err, shards.ErrStaleEpoch): // it is for another replica to write then
		return o.writtenLocked(of, events)
	default:
		return o.failedLocked(ctx, of, events, err)
	}
}

// split returns the events that the database does not write now, and why, and the others. There are
// none of the former unless FailedEvents name them.
func split(events []informer.Event, err error) (later, others []informer.Event, why error) {
	var failed informer.FailedEvents
	errors.As(err, &failed)
	for i, e := range events {
		at := slices.IndexFunc(failed, func(f informer.FailedEvent) bool { return f.Index == i && f.Later })
		if at < 0 {
			others = append(others, e)
			continue
		}
		later, why = append(later, e), failed[at].Err
	}
	return later, others, why
}

// failedLocked notes what was not written. It says nothing once the context has ended: unwritten
// does.
func (o *outage) failedLocked(ctx context.Context, of fleet.Target, events []informer.Event, err error) (line string) {
	if cause := errors.Unwrap(err); cause != nil {
		err = cause // without the resource that met it
	}
	if o.missing.Len() == 0 {
		o.began = time.Now()
	}
	o.reason = err
	for _, e := range events {
		if e.Type != informer.Synced {
			o.missing.Insert(write{of, e.Key})
		}
	}
	if ctx.Err() != nil || o.told.Has(err.Error()) {
		return ""
	}
	line = "cannot write: %v; the informers wait while it is tried again"
	if o.told.Len() > 0 {
		line = "still cannot write: %v"
	}
	o.told.Insert(err.Error())
	return fmt.Sprintf(line, err)
}

func (o *outage) writtenLocked(of fleet.Target, events []informer.Event) (line string) {
	for _, e := range events {
		o.missing.Delete(write{of, e.Key})
	}
	if o.missing.Len() > 0 || o.told.Len() == 0 {
		return ""
	}
	o.told.Clear()
	return fmt.Sprintf("writing again, after %s", time.Since(o.began).Round(time.Millisecond))
}

// forget drops the failed writes of some units, because their next owner writes them, or their
// cluster was removed.
func (o *outage) forget(some func(fleet.Unit) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.missing, func(w write, _ sets.Empty) bool { return some(w.Unit) })
	if o.missing.Len() == 0 {
		o.told.Clear()
	}
}

// unwritten says how many changes have failed and were not written since, and why. Without its
// checkpoint, a resource is listed at the next start: nothing is lost.
func (o *outage) unwritten() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for w := range o.missing {
		if w.key != "" {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%s: %d changes are not written, the next start fetches them again: %w", o.name, n, o.reason)
}
