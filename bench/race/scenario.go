package race

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rvinformer/informer"
)

// Scenario is something that informers have to do.
type Scenario string

const (
	// ColdStart: until each object was handed over, knowing nothing before.
	ColdStart Scenario = "coldstart"
	// Relist: the same when all is known and nothing has changed.
	Relist Scenario = "relist"
	// SlowHandler: a cold start with a handler that sleeps for each object.
	SlowHandler Scenario = "slow"
	// WatchBurst: changes as fast as they can be read.
	WatchBurst Scenario = "watch"
	// Audit: a comparison with the server when all is known, beside reading the same list again.
	Audit Scenario = "audit"
	// Idle: many informers of empty sets, their watches established.
	Idle Scenario = "idle"
	// Storage: what remembers versions, without an informer.
	Storage Scenario = "storage"
	// Restart: in a new process, with or without a memory, a while after Remember,
	// which leaves that.
	Restart  Scenario = "restart"
	Remember Scenario = "remember"

	// IdleClusters: their watches established.
	IdleClusters Scenario = "idle"
	// ChurnClusters: informers are added and removed again and again.
	ChurnClusters Scenario = "churn"
	// StartFleet: an informer for each resource of a fleet, until it was measured in every way.
	StartFleet Scenario = "fleet"

	// StoreMemory: a readable store is filled, and each object updated ten times.
	StoreMemory Scenario = "store"
	// Reading: a filled store is read.
	Reading Scenario = "read"
	// Informing: a readable cache, from its start on through a list in which nothing changed.
	Informing Scenario = "informer"
	// Operator: the same with controller-runtime's cache, which a controller then reads.
	Operator Scenario = "operator"
)

// Served has the scenarios of informers that need a server, and Scenarios all.
var (
	Served    = []Scenario{ColdStart, Relist, SlowHandler, WatchBurst, Audit, Idle, Restart}
	Scenarios = append(slices.Clone(Served), Storage)
)

// SlowHandlerSleep is how long the slow handler sleeps for each object.
const SlowHandlerSleep = time.Millisecond

// Limits are how much of a scenario is done.
type Limits struct {
	SlowObjects   int // handed over before a slow handler is stopped; 0: all
	IdleInformers int
}

// trial is one run of a contestant through a scenario.
type trial struct {
	Order
	floor  bool
	memory Memory
	source Source
	result Result
}

// run runs a contestant through the scenario of an order in this process.
func (c Contestant) run(ctx context.Context, o Order) (_ Result, err error) {
	if c.Run != nil {
		r, err := c.Run(ctx, o)
		r.Contestant, r.Scenario = c.Name, o.Scenario
		return r, err
	}
	o.Target.meter = &meter{}
	t := &trial{Order: o, floor: c.IsFloor(), memory: c.Memory}
	t.result = Result{Contestant: c.Name, Scenario: o.Scenario, Objects: o.Target.Objects}
	if o.Scenario == Storage {
		err = t.store(c.Open())
		return t.result, err
	}
	if t.source, err = c.Connect(&t.Target); err != nil {
		return Result{}, err
	}
	measure := trials[o.Scenario]
	if measure == nil {
		return Result{}, errors.New("there is no such scenario")
	}
	err = measure(t, ctx)
	return t.result, err
}

// trials are what is done in the scenarios that need a server.
var trials = map[Scenario]func(*trial, context.Context) error{
	ColdStart:   (*trial).startCold,
	Relist:      (*trial).startAgain,
	SlowHandler: (*trial).startSlowly,
	WatchBurst:  (*trial).readBurst,
	Audit:       (*trial).audit,
	Idle:        (*trial).idleAround,
	Restart:     (*trial).restart,
	Remember:    (*trial).remember,
}

// follow follows the set until stop, which waits.
func (t *trial) follow(ctx context.Context, f Follow) (_ *Following, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	following := t.source.Follow(ctx, f)
	return following, func() {
		cancel()
		following.Wait()
	}
}

// startCold starts knowing nothing.
func (t *trial) startCold(ctx context.Context) error {
	part, err := informer.ParseShard(t.Shard)
	if err != nil {
		return err
	}
	stopProfile, err := cpuProfile(t.Profile)
	if err != nil {
		return err
	}
	defer stopProfile()
	return t.start(ctx, Follow{Shard: part, Handlers: t.Handlers})
}

// start measures from the start until the set was handed over. The handler is its
// own, all else as given.
func (t *trial) start(ctx context.Context, with Follow) error {
	known := 0
	if with.Storage != nil {
		known = with.Storage.Len()
	}
	var added atomic.Int64
	runtime.GC()
	var before holding
	if t.Holds {
		var err error
		if before, err = held(); err != nil {
			return err
		}
	}
	clock := t.Target.startStopwatch()
	with.Added, with.Updated = func(string) { added.Add(1) }, func(string) {}
	f, stop := t.follow(ctx, with)
	defer stop()
	if err := done(ctx, f.Synced); err != nil {
		return err
	}
	clock.stop(&t.result)
	t.result.Delivered = int(added.Load())
	if want := t.Target.Objects - known; !t.floor && t.result.Delivered != want {
		return fmt.Errorf("%d objects were handed over instead of %d", t.result.Delivered, want)
	}
	if err := t.result.notePeakRSS(); err != nil || !t.Holds {
		return err
	}
	after, err := held()
	t.result.noteEach(before, after, 1)
	return err
}

// startAgain measures the second of two starts.
func (t *trial) startAgain(ctx context.Context) error {
	known := Follow{Storage: informer.NewResourceVersionStorage()}
	if err := t.start(ctx, known); err != nil {
		return err
	}
	debug.FreeOSMemory()
	if err := forgetPeakRSS(); err != nil {
		return err
	}
	return t.start(ctx, known)
}

// startSlowly starts with a handler that sleeps, until it was told enough.
func (t *trial) startSlowly(ctx context.Context) error {
	enough := int64(t.Limits.SlowObjects)
	if enough <= 0 || enough > int64(t.Target.Objects) {
		enough = int64(t.Target.Objects)
	}
	told := make(chan struct{})
	var added atomic.Int64
	clock := t.Target.startStopwatch()
	_, stop := t.follow(ctx, Follow{Updated: func(string) {}, Added: func(string) {
		time.Sleep(SlowHandlerSleep)
		if added.Add(1) == enough {
			close(told)
		}
	}})
	defer stop()
	if err := done(ctx, told); err != nil {
		return err
	}
	clock.stop(&t.result)
	t.result.Objects, t.result.Delivered = int(enough), int(enough)
	return t.result.notePeakRSS()
}

// readBurst measures from the first change to the last.
func (t *trial) readBurst(ctx context.Context) error {
	stopProfile, err := cpuProfile(t.Profile)
	if err != nil {
		return err
	}
	defer stopProfile()
	ended := make(chan struct{})
	var clock *stopwatch
	delivered, over := 0, false
	changed := func(version string) {
		if clock == nil {
			clock = t.Target.startStopwatch()
		}
		delivered++
		if version == t.Target.LastVersion && !over {
			clock.stop(&t.result)
			t.result.Delivered, over = delivered, true
			close(ended)
		}
	}
	_, stop := t.follow(ctx, Follow{Updated: changed, Added: func(version string) {
		// A change of an object that was still to be told of is told with it.
		if version == t.Target.LastVersion {
			changed(version)
		}
	}})
	defer stop()
	t.result.Objects = t.Target.Events
	if err := done(ctx, ended); err != nil {
		return err
	}
	return t.result.notePeakRSS()
}

func done(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return errors.Join(errors.New("it did not come to an end"), ctx.Err())
	}
}
