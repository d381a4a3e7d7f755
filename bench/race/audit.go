package race

import (
	"context"
	"runtime/debug"
)

// audit measures an audit of a set that is known.
func (t *trial) audit(ctx context.Context) error {
	f, stop, err := t.known(ctx)
	if err != nil {
		return err
	}
	defer stop()
	compare := f.Audit
	if compare == nil { // of a floor
		compare = func(ctx context.Context) error {
			_, stop, err := t.known(ctx)
			if err == nil {
				stop()
			}
			return err
		}
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

// known follows the set from the beginning until it was handed over.
func (t *trial) known(ctx context.Context) (f *Following, stop func(), err error) {
	ignore := func(string) {}
	f, stop = t.follow(ctx, Follow{Added: ignore, Updated: ignore})
	if err := done(ctx, f.Synced); err != nil {
		stop()
		return nil, nil, err
	}
	return f, stop, nil
}
