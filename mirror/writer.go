package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/rvinformer/informer/fleet"
	"k8s.io/apimachinery/pkg/util/wait"
)

// lastWrite is for how long a write goes on after its context has ended: a stop is no reason to
// lose a batch in the midst of its transaction, and what waits for its turn behind it.
const lastWrite = 10 * time.Second

// writer writes to the store for all feeds: as many transactions at a time as the store can take,
// in the order of their arrival. It tells that this fails, and that it works again, once per
// outage, however many batches of however many feeds meet it.
type writer struct {
	name    string // of the store, for messages
	store   store
	backoff wait.Backoff // of Insist
	say     func(line string)

	// turns has room for the feeds that write. Those that wait for a turn get it in their order.
	turns chan struct{}

	mu      sync.Mutex
	outage  *outage  // nil while all is well
	lines   []string // to say
	talking bool     // by one goroutine, so that the lines keep their order
}

func newWriter(name string, to store, turns int, say func(line string)) *writer {
	return &writer{
		name:    name,
		store:   to,
		backoff: wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 8, Cap: 15 * time.Second},
		say:     say,
		turns:   make(chan struct{}, turns),
	}
}

// Write brings changes into the store, all or none. Whoever gets an error tries again; the writer
// counts the changes as missing until then.
func (w *writer) Write(ctx context.Context, changes ...change) error {
	what := make([]target, len(changes))
	for i, c := range changes {
		what[i] = c.target()
	}
	return w.do(ctx, what, func(ctx context.Context) error { return w.store.Apply(ctx, changes) })
}

// SaveCheckpoint keeps what write writes as the checkpoint of a place.
func (w *writer) SaveCheckpoint(ctx context.Context, of place, server string, write func(io.Writer) error) error {
	what := []target{{place: of, checkpoint: true}}
	return w.do(ctx, what, func(ctx context.Context) error { return w.store.SaveCheckpoint(ctx, of, server, write) })
}

// do runs one transaction when it is its turn. When the context ends there is still a little time.
// Its error is an *unwrittenError.
func (w *writer) do(ctx context.Context, what []target, transaction func(context.Context) error) error {
	within, cancel := outlast(ctx, lastWrite)
	defer cancel()
	select {
	case w.turns <- struct{}{}:
		defer func() { <-w.turns }()
	case <-within.Done():
	}
	if within.Err() != nil {
		return &unwrittenError{w.name, context.Cause(within)}
	}
	err := transaction(within)
	if err != nil && within.Err() != nil {
		err = context.Cause(within) // the store says only that it was interrupted
	}
	if isUnusable(err) {
		return &unwrittenError{w.name, err} // the run ends with it
	}
	if stale := (*staleEpochError)(nil); errors.As(err, &stale) {
		w.note(what, nil) // it is for another replica to write
		return err
	}
	w.note(what, err)
	w.tell(ctx.Err() != nil) // at the end, Unwritten tells
	if err != nil {
		return &unwrittenError{w.name, err}
	}
	return nil
}

// unwrittenError says that the store cannot be written. The writer has reported it already, for all
// that get one.
type unwrittenError struct {
	name string
	err  error
}

func (e *unwrittenError) Error() string { return fmt.Sprintf("%s: %v", e.name, e.err) }
func (e *unwrittenError) Unwrap() error { return e.err }

// Insist is Write for callers that are not called again, as the handler of an informer is: it tries
// until it succeeds or the context ends.
func (w *writer) Insist(ctx context.Context, changes ...change) error {
	for backoff := w.backoff; ; {
		err := w.Write(ctx, changes...)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(backoff.Step()):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// Forget gives up what of a unit is not written: it is for its next owner to write.
func (w *writer) Forget(of fleet.Unit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outage == nil {
		return
	}
	for what := range w.outage.missing {
		if what.place.unit() == of.String() {
			w.outage.missing.Delete(what)
		}
	}
	if w.outage.missing.Len() == 0 {
		w.outage = nil
	}
}

// Unwritten says how many changes have failed and were not written since, and why. It is for the
// end, when there are no more writes.
func (w *writer) Unwritten() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outage == nil || w.outage.changes() == 0 {
		return nil
	}
	return fmt.Errorf("%s: %d changes are not written, the next start fetches them again: %w", w.name, w.outage.changes(), w.outage.reason)
}

// note keeps the outage up to date with what became of a transaction, and what there is to tell of
// it.
func (w *writer) note(what []target, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil && w.outage == nil:
	case err == nil:
		if w.outage.written(what) {
			w.lines = append(w.lines, fmt.Sprintf("writing again, after %s", time.Since(w.outage.began).Round(time.Millisecond)))
			w.outage = nil
		}
	case w.outage == nil:
		w.outage = newOutage(time.Now())
		w.outage.failed(what, err)
		w.lines = append(w.lines, fmt.Sprintf("cannot write: %v; the informers wait while it is tried again", err))
	case w.outage.failed(what, err):
		w.lines = append(w.lines, fmt.Sprintf("still cannot write: %v", err))
	}
}

// tell says what there is to tell, or drops it.
func (w *writer) tell(drop bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if drop {
		w.lines = nil
	}
	if w.talking {
		return // and says this too
	}
	w.talking = true
	defer func() { w.talking = false }()
	for len(w.lines) > 0 {
		line := w.lines[0]
		w.lines = w.lines[1:]
		w.mu.Unlock()
		w.say(w.name + ": " + line)
		w.mu.Lock()
	}
}

// outlast returns a context that ends so much later than its parent does.
func outlast(parent context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() {
		select {
		case <-time.After(by):
			cancel(fmt.Errorf("not done within %s of the stop", by))
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
