package cluster

import (
	"context"
	"sync"
	"sync/atomic"
)

// writers is how many requests are under way at once while objects are written:
// enough to keep the servers busy, few enough for one HTTP/2 connection.
const writers = 16

// inParallel calls do for every number from 0 to n-1, and returns the first
// error after all calls have returned. After an error no new call begins.
func inParallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(writers, n) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
