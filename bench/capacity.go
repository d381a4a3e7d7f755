package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
func measureCapacity(ctx context.Context, floor contestant, target race.Target) (all []capacity, err error) {
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
				results[k], errs[k] = floor.run(ctx, race.Order{Scenario: race.ColdStart, Target: target})
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

// capacityList shows that it is the contestants that are measured.
func (p *all) capacityList(b *bytes.Buffer) {
	b.WriteString("\n### Is it the server that is measured?\n\n" +
		"`floor-json` alone, and several at once, each reading the whole set:\n\n")
	for _, c := range p.capacity {
		fmt.Fprintf(b, "- %v\n", c)
	}
	b.WriteString(`
A server that sends more to several than to one was not at its limit with one. CPU
is counted per process, so a contestant that waits for the server is not charged
for it, and the server's own is beside each cold start: what it lacks of the wall
time, it waited for its reader. Making a page takes it 0.08 µs per pod
(` + "`BenchmarkRender` of `bench/podserver`" + `); the rest is TLS, HTTP/2 and the kernel.
`)
}
