package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
)

// Each simulated cluster gets this many changes at once, this often.
const (
	churnTick  = 50 * time.Millisecond
	churnBurst = 2

	// A simulated server keeps the history of all changes until it is told to forget it. Every so
	// many changes it is.
	churnHistory = 5000
)

// churn keeps the objects of a demo changing, with one goroutine per cluster.
type churn struct {
	cancel context.CancelFunc
	going  *errgroup.Group
}

// Churn starts the changes. They go on until Stop, or until the context ends.
func (d *demo) Churn(ctx context.Context) *churn {
	ctx, cancel := context.WithCancel(ctx)
	c := &churn{cancel: cancel, going: &errgroup.Group{}}
	for _, of := range d.clusters {
		c.going.Go(func() error { return of.change(ctx) })
	}
	return c
}

// Stop ends the changes, waits for the last one, and says whether any failed. It may be called
// again.
func (c *churn) Stop() error {
	c.cancel()
	return c.going.Wait()
}

func (c *demoCluster) change(ctx context.Context) error {
	tick := time.NewTicker(churnTick)
	defer tick.Stop()
	for changes := 0; ; {
		select {
		case <-tick.C:
			for range churnBurst {
				if err := c.changeOne(); err != nil {
					return fmt.Errorf("changing %s: %w", c.name, err)
				}
			}
			if changes += churnBurst; changes%churnHistory == 0 {
				c.server.Compact()
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// changeOne updates an object most of the time. Creations and deletions are equally likely, so that
// the number of objects stays about the same.
func (c *demoCluster) changeOne() error {
	of := c.stock[rand.IntN(len(c.stock))]
	switch rand.IntN(8) {
	case 0:
		return of.Create()
	case 1:
		return of.Delete()
	case 2:
		return of.Recreate(rand.Int())
	default:
		_, err := of.Update(rand.Int())
		return err
	}
}
