package controller

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
)

// follower is what follows a set for a batches: an informer, or one handler of a shared one.
type follower interface {
	HasSynced() bool
	HasSyncedChecker() cache.DoneChecker
	LastSyncResourceVersion() string
	Status() informer.Status
}

// batches is a BatchHandler that makes calls. The queue of the controller is that of the
// informer: of a batch of one event.
type batches struct {
	calls *calls
	// silence is after how long without a byte from the server, in a list that goes on,
	// what waits must be what holds it up: a server that is silent is given up earlier.
	silence time.Duration

	mu sync.Mutex
	// follower is what tells; nil before there was one.
	follower follower
}

var _ informer.BatchHandler = &batches{}

func (b *batches) follow(f follower) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.follower = f
}

func (b *batches) followed() follower {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.follower
}

func (b *batches) lastSyncResourceVersion() string {
	if f := b.followed(); f != nil {
		return f.LastSyncResourceVersion()
	}
	return ""
}

// forEver keeps an informer from making dead letters: the controller counts failures itself, and a
// Delete that is held is none.
const forEver = math.MaxInt32

// errHeld is why a Delete is tried again that was not called.
var errHeld = errors.New("held until the first list was read")

// OnBatch does what the event is about. An error has the informer tell it again.
func (b *batches) OnBatch(ctx context.Context, events []informer.Event) error {
	for _, e := range events {
		do := call{op: opUpsert, Event: Event{Key: e.Key, Obj: e.Object}, version: e.ResourceVersion}
		if e.Type == informer.Deleted {
			if !b.listed() {
				return fmt.Errorf("delete %q: %w", e.Key, errHeld)
			}
			do.op = opDelete
		}
		if err := b.calls.do(ctx, do); err != nil {
			return err
		}
	}
	return nil
}

// listed reports whether a Delete may be called.
func (b *batches) listed() bool {
	status := b.followed().Status()
	heldUp := status.Phase == informer.PhaseListing && time.Since(status.LastContact) > b.silence
	return status.Listed || heldUp // Listed is set before the sweep
}

// withoutHeld is report without what is no failure, and, where the user has none of his
// own, without what the controller logs itself.
func withoutHeld(report informer.WatchErrorHandler) informer.WatchErrorHandler {
	return func(r *informer.Reflector, err error) {
		var batch *informer.BatchError
		switch {
		case errors.Is(err, errHeld):
		case report != nil:
			report(r, err)
		case !errors.As(err, &batch):
			informer.DefaultWatchErrorHandler(r, err)
		}
	}
}
