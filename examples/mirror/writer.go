package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/util/wait"
)

// store takes changes, all or nothing. It is the database; tests put a failing one in its place.
type store interface {
	Apply(ctx context.Context, changes []change) error
}

const (
	// maxWaiting bounds the bytes between all handlers and the file. Beyond it handlers wait, and with them the informers,
	// which then stop reading from their servers.
	maxWaiting = 4 << 20
	maxBatch   = 512
)

// writer is the one goroutine that writes to the store, on behalf of all handlers. A batch is what has come in while the one
// before it was being written, so batches grow under load, and a lone change does not wait for company.
//
// A batch that fails is tried again until it succeeds or the writer's context ends; nothing overtakes it.
type writer struct {
	name    string // of the store, for messages
	store   store
	backoff wait.Backoff // between tries of the same batch
	say     func(line string)

	changes chan change
	room    *semaphore.Weighted // bytes; acquired by put, released after the batch is done with
}

func newWriter(name string, to store, say func(line string)) *writer {
	return &writer{
		name:    name,
		store:   to,
		backoff: wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 8, Cap: 15 * time.Second},
		say:     say,
		changes: make(chan change, maxBatch),
		room:    semaphore.NewWeighted(maxWaiting),
	}
}

// Put hands over a change. It waits while the writer has its hands full, at most until the context ends.
func (w *writer) Put(ctx context.Context, c change) error {
	if err := w.room.Acquire(ctx, weight(c)); err != nil {
		return context.Cause(ctx)
	}
	select {
	case w.changes <- c:
		return nil
	case <-ctx.Done():
		w.room.Release(weight(c))
		return context.Cause(ctx)
	}
}

// Flush waits until everything that was put before is committed.
func (w *writer) Flush(ctx context.Context) error {
	done := make(chan struct{})
	if err := w.Put(ctx, change{kind: barrier, committed: func() { close(done) }}); err != nil {
		return err
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: not everything is written yet: %w", w.name, context.Cause(ctx))
	}
}

// Close tells Run that nothing more comes. All callers of Put must have returned.
func (w *writer) Close() { close(w.changes) }

// Run writes until Close, and all that was put before it. Once the context has ended, a batch that fails is not tried again.
// The error says how much was lost, and why; the next start fetches it.
func (w *writer) Run(ctx context.Context) error {
	var lost int
	var reason error
	for {
		batch, bytes := w.next()
		if len(batch) == 0 {
			break
		}
		if err := w.write(ctx, batch); err != nil {
			lost, reason = lost+len(batch), err
		} else {
			for _, c := range batch {
				if c.committed != nil {
					c.committed()
				}
			}
		}
		w.room.Release(bytes)
	}
	if reason != nil {
		return fmt.Errorf("%s: %d changes are not written, the next start fetches them again: %w", w.name, lost, reason)
	}
	return nil
}

// next waits for a change and takes along what else is there. It returns nothing after Close.
func (w *writer) next() (batch []change, bytes int64) {
	for c := range w.changes {
		batch, bytes = append(batch, c), bytes+weight(c)
		if len(w.changes) == 0 || len(batch) == maxBatch {
			break
		}
	}
	return batch, bytes
}

// write tries until it succeeds or the context ends, and says so once when writing breaks and once when it works again.
func (w *writer) write(ctx context.Context, batch []change) error {
	// The last batches are written after the context of the run has ended: a stop is no reason to lose them.
	err := w.store.Apply(context.WithoutCancel(ctx), batch)
	if err == nil {
		return nil
	}
	began, said, backoff := time.Now(), err.Error(), w.backoff
	w.say(fmt.Sprintf("%s: cannot write: %v; the informers wait while it is tried again", w.name, err))
	for {
		select {
		case <-time.After(backoff.Step()):
		case <-ctx.Done():
			return err
		}
		if err = w.store.Apply(context.WithoutCancel(ctx), batch); err == nil {
			w.say(fmt.Sprintf("%s: writing again, after %s", w.name, time.Since(began).Round(time.Millisecond)))
			return nil
		}
		if err.Error() != said {
			said = err.Error()
			w.say(fmt.Sprintf("%s: still cannot write: %v", w.name, err))
		}
	}
}

// weight is the room that a change takes. One that is larger than all the room there is gets all of it, alone.
func weight(c change) int64 {
	return min(c.size(), maxWaiting)
}
