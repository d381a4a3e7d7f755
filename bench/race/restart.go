package race

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/rvinformer/informer"
)

// Memory is what a contestant has of an earlier process when it starts again.
type Memory string

const (
	// Nothing: it is told everything.
	Nothing Memory = ""
	// Versions: a storage from a checkpoint. It lists, and tells what differs.
	Versions Memory = "versions"
	// Checkpoint: what InformerConfig.Checkpoint has kept. It watches on from there.
	Checkpoint Memory = "checkpoint"
)

// Remembering makes the contestant one that starts again with a memory.
func (c Contestant) Remembering(m Memory) Contestant {
	c.Memory = m
	return c
}

// remember follows the set until it is known, and leaves a checkpoint.
func (t *trial) remember(ctx context.Context) error {
	if t.memory == Checkpoint {
		// Not what the run before has left.
		if err := os.Remove(t.Checkpoint); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return t.start(ctx, Follow{Checkpoint: t.Checkpoint}) // which saves it in the end
	}
	known := Follow{Storage: informer.NewResourceVersionStorage()}
	if err := t.start(ctx, known); err != nil {
		return err
	}
	file, err := os.Create(t.Checkpoint)
	if err != nil {
		return err
	}
	_, err = known.Storage.WriteTo(file)
	return errors.Join(err, file.Close())
}

// recall is what the contestant goes on from.
func (t *trial) recall() (known Follow, err error) {
	switch t.memory {
	case Nothing:
		return known, nil
	case Checkpoint:
		return Follow{Checkpoint: t.Checkpoint}, nil
	}
	file, err := os.Open(t.Checkpoint)
	if err != nil {
		return known, err
	}
	defer file.Close()
	known.Storage = informer.NewResourceVersionStorage()
	_, err = known.Storage.ReadFrom(file)
	return known, err
}

// restart measures from the start of a contestant, with a memory or without, until the
// handler was told what it has to be.
func (t *trial) restart(ctx context.Context) error {
	want := int64(t.Target.Objects)
	if t.memory != Nothing {
		want = int64(t.Target.Changed)
	}
	told := make(chan struct{})
	var calls atomic.Int64
	call := func(string) {
		if calls.Add(1) == want {
			close(told)
		}
	}
	runtime.GC()
	clock := t.Target.startStopwatch()
	with, err := t.recall()
	if err != nil {
		return err
	}
	with.Added, with.Updated = call, call
	f, stop := t.follow(ctx, with)
	defer stop()
	if err := done(ctx, f.Synced); err != nil {
		return err
	}
	t.result.Synced = time.Since(clock.start)
	if !t.floor {
		if err := done(ctx, told); err != nil {
			return err
		}
	}
	clock.stop(&t.result)
	t.result.Delivered = int(calls.Load())
	if !t.floor && t.result.Delivered != int(want) {
		return fmt.Errorf("%d objects were handed over instead of %d", t.result.Delivered, want)
	}
	return t.result.notePeakRSS()
}
