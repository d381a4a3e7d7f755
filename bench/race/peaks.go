package race

import (
	"context"
	"runtime/debug"
	"time"
)

// Peaks is the resident memory of a process with a readable cache, in bytes.
type Peaks struct {
	// Start is the most until all was handed over, and Relist the most in a list that
	// the informer had to do when all was known and nothing had changed.
	Start, Relist int64
	// Settled is what is resident after the start, when the garbage is collected and
	// what is free is given back (debug.FreeOSMemory), and SettledAgain the same after
	// the list.
	Settled, SettledAgain int64
	// StartReceived is what had come off the sockets when all was handed over, in bytes, and
	// RelistReceived what came in the list.
	StartReceived, RelistReceived int64
	// The allocations of the list.
	RelistBytes, RelistAllocs uint64
}

// Measure waits for the start, loses the watch, and waits for the list.
func (l *Loss) Measure(ctx context.Context, synced <-chan struct{}, check func() error) (_ *Peaks, err error) {
	p := &Peaks{}
	if err := done(ctx, synced); err != nil {
		return nil, err
	}
	if err := l.quiet(ctx); err != nil {
		return nil, err
	}
	if p.Start, err = peakRSS(); err != nil {
		return nil, err
	}
	p.StartReceived = l.meter.total()
	if err := check(); err != nil {
		return nil, err
	}
	if p.Settled, err = settledRSS(); err != nil {
		return nil, err
	}
	if err := forgetPeakRSS(); err != nil {
		return nil, err
	}
	clock := (&Target{}).startStopwatch()
	l.lose()
	// The informer waits before it lists.
	for l.meter.total()-p.StartReceived < p.StartReceived/2 {
		if err := l.quiet(ctx); err != nil {
			return nil, err
		}
	}
	if err := l.quiet(ctx); err != nil {
		return nil, err
	}
	if p.Relist, err = peakRSS(); err != nil {
		return nil, err
	}
	p.RelistReceived = l.meter.total() - p.StartReceived
	var r Result
	clock.stop(&r)
	p.RelistBytes, p.RelistAllocs = r.AllocBytes, r.Allocs
	if err := check(); err != nil {
		return nil, err
	}
	p.SettledAgain, err = settledRSS()
	return p, err
}

// quiet waits until nothing comes and this process does nothing, for a second.
func (l *Loss) quiet(ctx context.Context) error {
	const idle = 20 * time.Millisecond // of CPU in a second: timers, and this
	for {
		received, cpu := l.meter.total(), CPUTime()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
		if l.meter.total() == received && CPUTime()-cpu < idle && !l.due() {
			return nil
		}
	}
}

// settledRSS is what is resident when there is no garbage.
func settledRSS() (int64, error) {
	for range 3 { // what pools hold goes in the second
		debug.FreeOSMemory()
	}
	if err := forgetPeakRSS(); err != nil { // the peak is what is resident, then
		return 0, err
	}
	return peakRSS()
}
