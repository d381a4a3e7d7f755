package race

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// Running is a readable cache that follows a server.
type Running struct {
	// Synced is closed when it can be read.
	Synced <-chan struct{}
	// Objects is how many it has.
	Objects func() (int, error)
	// Decoded is how many objects it has decoded, if it says so.
	Decoded func() int64
	// Wait returns after everything has ended. The context must have.
	Wait func()
}

// Run runs an informer.
func Run(ctx context.Context, informer cache.SharedIndexInformer) *Running {
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	return &Running{
		Synced:  informer.HasSyncedChecker().Done(),
		Objects: func() (int, error) { return len(informer.GetIndexer().ListKeys()), nil },
		Wait:    running.Wait,
	}
}

// Informing measures a cache from its start on, and has read called when its memory was measured.
func (o Order) Informing(ctx context.Context, open func(context.Context, *Loss) (*Running, error), read func(*ReadCosts) error) (r Result, err error) {
	costs := &ReadCosts{Decoded: -1}
	r.Read, r.Objects = costs, o.Target.Objects
	before, err := liveBytes()
	if err != nil {
		return r, err
	}
	stopProfile, err := cpuProfile(o.Profile)
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	loss := &Loss{}
	cpu, start := CPUTime(), time.Now()
	running, err := open(ctx, loss)
	if err != nil {
		return r, err
	}
	defer func() {
		cancel()
		running.Wait()
	}()
	synced := make(chan struct{})
	go func() {
		defer close(synced)
		_ = done(ctx, running.Synced)
		r.CPU, r.Wall = CPUTime()-cpu, time.Since(start)
		stopProfile()
	}()
	decoded := int64(-1)
	r.Peaks, err = loss.Measure(ctx, synced, func() error {
		if running.Decoded != nil {
			if decoded >= 0 {
				costs.Decoded = running.Decoded() - decoded
			}
			decoded = running.Decoded()
		}
		return o.allThere(running)
	})
	if err != nil {
		return r, err
	}
	now, err := liveBytes()
	if err != nil {
		return r, err
	}
	costs.Live = float64(now-before) / float64(o.Target.Objects)
	if err := writeProfile("heap", o.Profile); err != nil || read == nil {
		return r, err
	}
	return r, read(costs)
}

func (o Order) allThere(running *Running) error {
	n, err := running.Objects()
	if err == nil && n != o.Target.Objects {
		err = fmt.Errorf("there are %d objects instead of %d", n, o.Target.Objects)
	}
	return err
}
