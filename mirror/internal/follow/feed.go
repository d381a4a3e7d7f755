package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/mirror/internal/display"
)

// maxRefused is how many refused rows of a resource are named.
const maxRefused = 10

// feed is the handler of one informer: it counts what the sink takes in, and tells what it does not.
type feed struct {
	target fleet.Target // without what follows from the rest: its Kind, and Namespaced
	to     informer.BatchHandler
	outage *outage
	began  time.Time
	// triedGone belongs to redeliverGone.
	triedGone bool

	mu      sync.Mutex
	counts  display.Counts
	refused []string // the keys that were told
}

// OnBatch has a batch written in one transaction. The informer tries again what fails.
func (f *feed) OnBatch(ctx context.Context, events []informer.Event) error {
	err := f.to.OnBatch(ctx, events)
	f.outage.note(ctx, f.target, events, err)
	var refused informer.FailedEvents
	if err == nil || errors.As(err, &refused) {
		for _, line := range f.count(events, refused) {
			f.outage.say(line)
		}
	}
	return err
}

// count adds the events that were taken in, and returns what to say of each refused row, once.
func (f *feed) count(events []informer.Event, refused informer.FailedEvents) (lines []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, e := range events {
		if len(refused) == 0 || refused[0].Index != i { // they are sorted
			f.counts.Add(e)
			continue
		}
		if !refused[0].Later && !slices.Contains(f.refused, e.Key) && len(f.refused) < maxRefused { // the outage tells what comes later
			f.refused = append(f.refused, e.Key)
			lines = append(lines, fmt.Sprintf("%s: %s is refused: %v", placeOf(f.target), e.Key, refused[0].Err))
		}
		refused = refused[1:]
	}
	return lines
}

// Counts are what the sink has taken in so far.
func (f *feed) Counts() display.Counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts
}
