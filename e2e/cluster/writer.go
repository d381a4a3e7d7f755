package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// patience is how long a Writer waits for the answer to one write.
const patience = 3 * time.Second

// Writer creates, updates and deletes objects by chance, whatever becomes of
// the server: a write that fails, or whose effect is not known,
// is followed by the next. What was really written only etcd knows.
type Writer struct {
	objects *Objects
	exists  []bool // by the number of its name; as far as is known
	pause   time.Duration
	cancel  context.CancelFunc
	done    chan struct{} // closed when the last write was answered, or given up

	mu      sync.Mutex
	writes  int64
	last    error         // why the newest write failed; nil if it did not
	changed chan struct{} // closed and replaced with each write
}

// StartWriter begins to write under the given number of names, those that Fill
// uses, with a pause after each write. The caller owns the writer and must Stop
// it.
func (o *Objects) StartWriter(ctx context.Context, names int, pause time.Duration) *Writer {
	w := &Writer{
		objects: o,
		exists:  make([]bool, names),
		pause:   pause,
		changed: make(chan struct{}),
	}
	w.Resume(ctx)
	return w
}

// Resume goes on writing after Stop.
func (w *Writer) Resume(ctx context.Context) {
	ctx, w.cancel = context.WithCancel(ctx)
	w.done = make(chan struct{})
	go func() {
		defer close(w.done)
		w.write(ctx)
	}()
}

func (w *Writer) write(ctx context.Context) {
	for ctx.Err() == nil {
		w.wrote(w.writeOne(ctx, rand.IntN(len(w.exists))))
		select {
		case <-time.After(w.pause):
		case <-ctx.Done():
		}
	}
}

// writeOne does not end with the writer: a write that was given up may take
// effect later, when the test counts on there being no more.
func (w *Writer) writeOne(ctx context.Context, i int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	name := Name(i)
	var err error
	switch create := !w.exists[i]; {
	case create:
		err = w.objects.Create(ctx, name)
		w.exists[i] = err == nil || apierrors.IsAlreadyExists(err)
	case rand.IntN(3) == 0:
		err = w.objects.Delete(ctx, name)
		w.exists[i] = err != nil && !apierrors.IsNotFound(err)
	default:
		err = w.objects.Update(ctx, name, fmt.Sprint(rand.Int64()))
		w.exists[i] = !apierrors.IsNotFound(err)
	}
	return err
}

func (w *Writer) wrote(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = err
	if err == nil {
		w.writes++
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// Await returns when at least n more writes have succeeded.
func (w *Writer) Await(ctx context.Context, n int64) error {
	w.mu.Lock()
	until := w.writes + n
	w.mu.Unlock()
	for {
		w.mu.Lock()
		writes, last, changed := w.writes, w.last, w.changed
		w.mu.Unlock()
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

// Stop ends the writing and waits for it. Stopping again does nothing.
func (w *Writer) Stop() {
	w.cancel()
	<-w.done
}
