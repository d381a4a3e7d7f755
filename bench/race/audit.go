package race

import (
	"context"
	"runtime/debug"
)

// audit measures an audit of a set that is known.
func (t *trial) audit(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	ignore := func(string) {}
	f := t.source.Follow(ctx, Follow{Added: ignore, Updated: ignore})
	defer f.Wait()
	defer cancel()
	if err := done(ctx, f.Synced); err != nil {
		return err
	}
	compare := f.Audit
	if compare == nil {
		compare = t.readOnceMore
	}
	debug.FreeOSMemory()
	if err := forgetPeakRSS(); err != nil {
		return err
	}
	before, err := peakRSS()
	if err != nil {
		return err
	}
	clock := t.Target.startStopwatch()
	if err := compare(ctx); err != nil {
		return err
	}
	clock.stop(&t.result)
	err = t.result.notePeakRSS()
	t.result.Grown = t.result.PeakRSS - before
	return err
}

// readOnceMore follows the set from the beginning until it was handed over.
func (t *trial) readOnceMore(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	ignore := func(string) {}
	f := t.source.Follow(ctx, Follow{Added: ignore, Updated: ignore})
	defer f.Wait()
	defer cancel()
	return done(ctx, f.Synced)
}
