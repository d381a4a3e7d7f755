package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// patience is how long a Writer that goes on waits for the answer to one write.
const patience = 3 * time.Second

// Writer creates, updates and deletes objects by chance until it is stopped. Every goroutine has
// its own part of the names, so that each write is legal and names are used again.
type Writer struct {
	objects *Objects
	parts   [][]written // one for each goroutine, which alone uses it
	pause   time.Duration
	// goesOn tells that a write that fails, or whose effect is not known, is followed by the next.
	// The writer does not know which of its failed writes etcd has all the same.
	goesOn bool
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	writes  int64
	last    error         // why the newest write failed; nil if it did not
	failed  error         // of one that does not go on: its first error
	changed chan struct{} // closed and replaced with each write
}

// written is one name, and whether the server has an object under it, as far as is known.
type written struct {
	name   string
	exists bool
}

// StartWriter begins to write, whatever becomes of the server, under the given number of names,
// those that Fill uses, with a pause after each write. The caller owns the writer and must Stop it.
func (o *Objects) StartWriter(ctx context.Context, names int, pause time.Duration) *Writer {
	return o.start(ctx, &Writer{pause: pause, goesOn: true}, 1, names, 0)
}

// StartChurn begins to write at full speed, until a write fails, with the given number of goroutines
// over the names that Fill(ctx, names) uses; existing says how many of them were filled. The caller
// owns it and must Stop it.
func (o *Objects) StartChurn(ctx context.Context, goroutines, names, existing int) *Writer {
	return o.start(ctx, &Writer{}, goroutines, names, existing)
}

func (o *Objects) start(ctx context.Context, w *Writer, goroutines, names, existing int) *Writer {
	w.objects, w.parts, w.changed = o, make([][]written, goroutines), make(chan struct{})
	for i := range names {
		part := &w.parts[i%goroutines]
		*part = append(*part, written{name: Name(i), exists: i < existing})
	}
	w.Resume(ctx)
	return w
}

// Resume goes on writing after Stop.
func (w *Writer) Resume(ctx context.Context) {
	ctx, w.cancel = context.WithCancel(ctx)
	for _, part := range w.parts {
		w.wg.Go(func() { w.write(ctx, part) })
	}
}

func (w *Writer) write(ctx context.Context, part []written) {
	for ctx.Err() == nil {
		err := w.writeOne(ctx, &part[rand.IntN(len(part))])
		w.wrote(err)
		if err != nil && !w.goesOn {
			return
		}
		select {
		case <-time.After(w.pause):
		case <-ctx.Done():
		}
	}
}

// writeOne does not end with the writer: a write that was given up may take
// effect later, when the test counts on there being no more.
func (w *Writer) writeOne(ctx context.Context, object *written) (err error) {
	ctx = context.WithoutCancel(ctx)
	if w.goesOn {
		within, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		ctx = within
	}
	switch {
	case !object.exists:
		err = w.objects.Create(ctx, object.name)
		object.exists = err == nil || apierrors.IsAlreadyExists(err)
	case rand.IntN(3) == 0:
		err = w.objects.Delete(ctx, object.name)
		object.exists = err != nil && !apierrors.IsNotFound(err)
	default:
		err = w.objects.Update(ctx, object.name, fmt.Sprint(rand.Int64()))
		object.exists = !apierrors.IsNotFound(err)
	}
	return err
}

func (w *Writer) wrote(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = err
	switch {
	case err == nil:
		w.writes++
	case !w.goesOn && w.failed == nil:
		w.failed = err
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// Writes counts the writes that have succeeded so far.
func (w *Writer) Writes() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
}

// Await returns when at least n more writes have succeeded. The error is that of a write after which
// the writer does not go on, or says that ctx has ended.
func (w *Writer) Await(ctx context.Context, n int64) error {
	until := w.Writes() + n
	for {
		w.mu.Lock()
		writes, last, failed, changed := w.writes, w.last, w.failed, w.changed
		w.mu.Unlock()
		if failed != nil {
			return failed
		}
		if writes >= until {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for write %d, now at %d: %w (last answer: %v)", until, writes, context.Cause(ctx), last)
		}
	}
}

// Stop ends the writing, waits for the last writes, and returns the error of a write after which the
// writer did not go on. Stopping again returns the same.
func (w *Writer) Stop() error {
	w.cancel()
	w.wg.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}
