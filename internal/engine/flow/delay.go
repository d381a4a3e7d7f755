package flow

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/leaf/backoff"
)

// longestDelay is the longest pause that a destination is granted for an event.
const longestDelay = time.Hour

// delayed is an event that the destination does not take now, for which the event is not at fault.
// After is how long the destination asks to wait, 0 if it does not say.
type delayed struct {
	Sent
	after time.Duration
}

// delay has an event come again later. It counts no failure, and notes none: the event can have no
// dead letter because of it.
func (t *trial) delay(s *Sent, after time.Duration) {
	t.flow.Versions.Settle(s.Entry.Key, s.Type == api.Synced)
	s.fate = settled
	t.later = append(t.later, delayed{*s, min(max(after, 0), longestDelay)})
}

// postponeDelayed has the delayed events come again: those that wait equally long together.
func (t *trial) postponeDelayed() {
	compare := func(a, b delayed) int {
		return cmp.Or(cmp.Compare(a.after, b.after), cmp.Compare(a.Entry.Attempts, b.Entry.Attempts))
	}
	slices.SortStableFunc(t.later, compare)
	for len(t.later) > 0 {
		first, entries := t.later[0], []*deltaqueue.Entry(nil)
		for len(t.later) > 0 && compare(first, t.later[0]) == 0 {
			entries = append(entries, t.later[0].Entry)
			t.later = t.later[1:]
		}
		pause := backoff.RetryDelay(first.Entry.Attempts)
		if first.after > 0 {
			pause = wait.Jitter(first.after, 0.1)
		}
		t.queue.Delay(entries, pause)
	}
}
