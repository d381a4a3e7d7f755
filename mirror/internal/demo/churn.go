package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// churnTick is how often each simulated cluster changes.
	churnTick = 25 * time.Millisecond
	// churnHistory is after how many changes a simulated server is told to forget them.
	churnHistory = 5000
)

// Churn starts changes of the objects, with one goroutine per cluster. They go on until stop, or
// until the context ends. Stop waits for the last one, and says whether any failed. It may be called
// again.
func (d Demo) Churn(ctx context.Context) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var going errgroup.Group
	for _, of := range d {
		going.Go(func() error { return of.change(ctx) })
	}
	return func() error {
		cancel()
		return going.Wait()
	}
}

func (c *Cluster) change(ctx context.Context) error {
	changes := 0
	err := wait.PollUntilContextCancel(ctx, churnTick, false, func(context.Context) (bool, error) {
		if changes++; changes%churnHistory == 0 {
			c.Server.Compact()
		}
		return false, c.changeOne()
	})
	if wait.Interrupted(err) {
		return nil
	}
	return fmt.Errorf("changing %s: %w", c.Name, err)
}

// changeOne updates an object most of the time. Creations and deletions are equally likely, so that
// the number of objects stays about the same.
func (c *Cluster) changeOne() error {
	of := c.Stock[rand.IntN(len(c.Stock))]
	switch what := rand.IntN(8); {
	case what == 0, of.Len() == 0:
		return of.Create()
	case what == 1:
		return of.Delete()
	case what == 2:
		return of.Recreate(rand.Int())
	default:
		return of.Update(rand.Int())
	}
}
