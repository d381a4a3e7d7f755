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
)

// backoffOf is the backoff that custom asks for, or the default one.
func backoffOf(custom *wait.Backoff) wait.Backoff {
	if custom != nil {
		return *custom
	}
	return wait.Backoff{
		Duration: backoffFirst,
		Cap:      backoffMost,
		Steps:    int(backoffMost / backoffFirst),
		Factor:   2,
		Jitter:   1,
	}
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
