package flow

import (
	"context"

	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/deltaqueue"
)

// announceAhead is how many keys are written down at once, if so many wait.
const announceAhead = 256

// announce writes down the keys of entries before the handler is called for them, and those of
// what waits behind them too, so that few keys are written down one by one. It reports false if the
// run has ended before.
func (f *Flow) announce(ctx context.Context, queue *deltaqueue.Queue, entries []*deltaqueue.Entry) (mayCall bool) {
	if f.Keeper == nil || f.Keeper.Journal() == nil {
		return true
	}
	j := f.Keeper.Journal()
	if len(entries) == 1 && j.Has(entries[0].Key) {
		return true
	}
	var keys []string
	add := func(e *deltaqueue.Entry) {
		if !f.repeats(e) {
			keys = append(keys, e.Key)
		}
	}
	for _, e := range entries {
		add(e)
	}
	if len(keys) == 0 {
		return true
	}
	if len(keys) < announceAhead {
		queue.Upcoming(announceAhead-len(keys), add)
	}
	return j.Begin(ctx, keys)
}

// repeats reports whether an entry shows no more than what the handler has.
func (f *Flow) repeats(e *deltaqueue.Entry) bool {
	return len(e.Deltas) == 1 && e.Deltas[0].Type == cache.Replaced && f.Versions.Matches(e.Key, e.Version)
}
