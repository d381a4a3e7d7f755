package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/rvinformer/informer/bench/race"
)

// capacity is what the server can send to several that read at once, in pods
// per second, and what a pod costs it and them.
type capacity struct {
	readers   int
	perSecond float64
	serverCPU float64 // of a pod, in seconds
	readerCPU float64
}

// measureCapacity has one floor read the whole set, and then more at once.
func measureCapacity(ctx context.Context, entries []entry, target race.Target) (all []capacity, err error) {
	i := slices.IndexFunc(entries, func(e entry) bool { return e.Name == "floor-json" })
	if i < 0 {
		return nil, errors.New("there is no floor")
	}
	for _, readers := range []int{1, 2, 4} {
		before, err := usage(ctx, target)
		if err != nil {
			return nil, err
		}
		results := make([]race.Result, readers)
		errs := make([]error, readers)
		var running sync.WaitGroup
		for k := range readers {
			running.Go(func() {
				results[k], errs[k] = entries[i].run(ctx, race.Order{Scenario: race.ColdStart, Target: target})
			})
		}
		running.Wait()
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
		after, err := usage(ctx, target)
		if err != nil {
			return nil, err
		}
		c := capacity{readers: readers}
		pods := float64(target.Objects * readers)
		for _, r := range results {
			c.perSecond += float64(target.Objects) / seconds(r.Wall)
			c.readerCPU += seconds(r.CPU) / pods
		}
		c.serverCPU = seconds(after.CPU-before.CPU) / pods
		all = append(all, c)
	}
	return all, nil
}

func (c capacity) String() string {
	return fmt.Sprintf("%d at once: %.0f pods/s together, %.1f µs of the server's CPU and %.1f µs of the reader's per pod",
		c.readers, c.perSecond, 1e6*c.serverCPU, 1e6*c.readerCPU)
}
