// Package backoff says how long to wait before something is tried again, and waits.
package backoff

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Longest is the pause that the default backoff grows to: a broken server has about one request
// in that time from each informer.
const Longest = 30 * time.Second

// OrDefault returns the backoff that custom asks for, or the default one if custom is nil.
func OrDefault(custom *wait.Backoff) wait.Backoff {
	if custom != nil {
		return *custom
	}
	const first = 800 * time.Millisecond
	return wait.Backoff{Duration: first, Cap: Longest, Steps: int(Longest / first), Factor: 2, Jitter: 1}
}

// RetryDelay returns how long to wait before deltas are delivered again that the handler has
// failed for attempts times before: 100 ms at first, doubled each time, and up to half as long
// again at random, 30 s at most.
func RetryDelay(attempts int) time.Duration {
	const first, longest = 100 * time.Millisecond, 20 * time.Second
	return wait.Jitter(min(first<<min(attempts, 10), longest), 0.5)
}

// Sleep waits, and returns the cause of ctx if that ends first.
func Sleep(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
