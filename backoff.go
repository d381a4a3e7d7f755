package informer

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// The default backoff keeps a broken server at about one request in half a
// minute from each informer.
const (
	backoffFirst = 800 * time.Millisecond
	backoffMost  = 30 * time.Second
	// backoffReset is the time without a failure after which it starts again.
	// (wait.Backoff.DelayWithReset starts again in such a period whatever happens.)
	backoffReset = 2 * time.Minute
)

// backoff is how long to wait after each of several failures.
type backoff struct {
	first, next wait.Backoff
	// until is when the last wait was over.
	until time.Time
}

func newBackoff(custom *wait.Backoff) *backoff {
	if custom == nil {
		custom = &wait.Backoff{
			Duration: backoffFirst,
			Cap:      backoffMost,
			Steps:    int(backoffMost / backoffFirst),
			Factor:   2,
			Jitter:   1,
		}
	}
	return &backoff{first: *custom, next: *custom}
}

// delay is how long to wait after a failure now, and at least as long as asked.
func (b *backoff) delay(asked time.Duration) time.Duration {
	now := time.Now()
	if now.Sub(b.until) > backoffReset {
		b.next = b.first
	}
	delay := max(b.next.Step(), asked)
	b.until = now.Add(delay)
	return delay
}

// sleep waits, and returns the error of ctx if that ends first.
func sleep(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
