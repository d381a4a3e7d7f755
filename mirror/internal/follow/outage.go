package follow

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/rvinformer/informer/fleet"
	"k8s.io/apimachinery/pkg/util/sets"
)

// write is an object's row, or the checkpoint of its resource if it has no key.
type write struct {
	target
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

// failed notes what was not written. It says nothing once the context has ended: unwritten does.
func (o *outage) failed(ctx context.Context, what iter.Seq[write], err error) {
	if cause := errors.Unwrap(err); cause != nil {
		err = cause // without the resource that met it
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.missing.Len() == 0 {
		o.began = time.Now()
	}
	o.reason = err
	o.missing.Insert(slices.Collect(what)...)
	if ctx.Err() != nil || o.told.Has(err.Error()) {
		return
	}
	line := "cannot write: %v; the informers wait while it is tried again"
	if o.told.Len() > 0 {
		line = "still cannot write: %v"
	}
	o.told.Insert(err.Error())
	o.say(fmt.Sprintf("%s: "+line, o.name, err))
}

// written notes what is written.
func (o *outage) written(what iter.Seq[write]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.missing.Len() == 0 {
		return
	}
	for w := range what {
		o.missing.Delete(w)
	}
	if o.missing.Len() == 0 && o.told.Len() > 0 {
		o.told.Clear()
		o.say(fmt.Sprintf("%s: writing again, after %s", o.name, time.Since(o.began).Round(time.Millisecond)))
	}
}

// forget gives up what of a unit is not written: it is for its next owner to write.
func (o *outage) forget(of fleet.Unit) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for w := range o.missing {
		if w.unit == of {
			o.missing.Delete(w)
		}
	}
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
