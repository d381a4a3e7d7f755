package race

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/bench/podserver/extra"
	"github.com/rvinformer/informer/factory"
)

// FleetOutage is what became of the informers while all servers were away, and after; or of as many
// bare watches.
type FleetOutage struct {
	// Most and All are how long it took from the return of the servers until 95 of 100 informers,
	// and all of them, had told of the change that had happened meanwhile.
	Most, All time.Duration
	// CPU is what the process used from the return until then, and AwayCPU in the outage.
	CPU, AwayCPU time.Duration
	// Usage is that of the servers at their return, and After when all informers were current.
	Usage, After extra.Usage
	// Listed is how many objects were told as added, which is none where watches went on.
	Listed int64
}

// noteTimes notes how long each informer took.
func (o *FleetOutage) noteTimes(took []time.Duration) {
	slices.Sort(took)
	o.Most, o.All = took[len(took)*95/100-1], took[len(took)-1]
}

// outagePatience is how long informers may take to come back.
const outagePatience = 8 * time.Minute

// FleetFollower follows a fleet in the way that is measured. It returns once all clusters have
// synced that nothing is wrong with. The function that it returns ends all, and waits; it is nil if
// there is nothing to end but the factory.
type FleetFollower func(context.Context, FollowedFleet) (stop func(), err error)

// FollowedFleet is what is followed: each of the resources in each of the clusters.
type FollowedFleet struct {
	Clusters  []Cluster
	Resources []string
	Factory   *factory.Factory
	Budget    *informer.Budget
	// Config is that of the informer of a resource of a cluster, by their places above, with what
	// it lists and watches left out.
	Config func(cluster, resource int) informer.InformerConfig
}

// FollowLeases takes a lease for each resource of each cluster.
func FollowLeases(ctx context.Context, f FollowedFleet) (stop func(), err error) {
	var awaited []member
	for i, cluster := range f.Clusters {
		members, err := acquire(f.Factory, cluster, cluster.Config(), f.Resources, func(resource int) informer.InformerConfig { return f.Config(i, resource) })
		if err != nil {
			return nil, err
		}
		if !cluster.Troubled {
			awaited = append(awaited, members...)
		}
	}
	return nil, synced(ctx, awaited)
}

// Fleet is a contestant that follows a fleet. The caller gives the function that does it. So this
// package does not import package fleet, whose code would take memory in the programs of all other
// contestants.
func Fleet(name string, follow FleetFollower) Contestant {
	return fleetContestant(name, func(ctx context.Context, f *fleet) error { return f.run(ctx, follow) })
}

// FleetFloor is the contestant that reads the lists of all resources and throws them away: the
// servers side by side, and the lists of each one after the other over one connection.
func FleetFloor(name string) Contestant { return fleetContestant(name, readFleet) }

func fleetContestant(name string, do func(context.Context, *fleet) error) Contestant {
	return Contestant{Entry: Entry{Name: name}, Run: func(ctx context.Context, o Order) (_ Result, err error) {
		// The log of 25,000 informers is made, and not read.
		klog.SetLogger(funcr.New(func(string, string) {}, funcr.Options{}))
		f := &fleet{Order: o, Many: o.Many, factory: factory.New(), costs: &ManyCosts{}}
		f.result.Many = f.costs
		if f.costs.Before, err = extra.Control(ctx, f.Control, extra.UsagePath); err == nil {
			err = do(ctx, f)
		}
		if f.stop != nil {
			f.stop()
		}
		f.factory.Shutdown()
		return f.result, err
	}}
}

// fleet follows many clusters.
type fleet struct {
	Order
	*Many
	factory *factory.Factory
	// stop, if it is set, ends what follows, and waits.
	stop  func()
	added atomic.Int64
	// current has, for each informer, when it was told of a change, as a time in nanoseconds since
	// began.
	current []atomic.Int64
	began   time.Time
	result  Result
	costs   *ManyCosts
}

// run measures informers until they have synced, then idle, then through an outage.
func (f *fleet) run(ctx context.Context, follow FleetFollower) (err error) {
	f.costs.Informers = len(f.Clusters) * len(f.Resources)
	f.current = make([]atomic.Int64, f.costs.Informers)
	f.began = time.Now()
	budget := f.budget()
	runtime.GC()
	stopProfile, err := f.profileCPU("sync")
	if err != nil {
		return err
	}
	clock := f.startStopwatch()
	f.stop, err = follow(ctx, FollowedFleet{Clusters: f.Clusters, Resources: f.Resources, Factory: f.factory, Budget: budget,
		Config: func(cluster, resource int) informer.InformerConfig { return f.config(cluster, resource, budget) }})
	if err != nil {
		return err
	}
	clock.stop(&f.result)
	stopProfile()
	f.result.Objects, f.costs.BudgetPeak = int(f.added.Load()), budget.Peak()
	if f.costs.SyncedRSS, err = peakRSS(); err != nil {
		return err
	}
	if f.costs.After, err = extra.Control(ctx, f.Control, extra.UsagePath); err != nil {
		return err
	}
	if err := f.idle(); err != nil {
		return err
	}
	if f.Outage > 0 {
		if err := f.outage(ctx); err != nil {
			return err
		}
	}
	return f.result.notePeakRSS()
}

// config is that of an informer.
func (f *fleet) config(cluster, resource int, budget *informer.Budget) informer.InformerConfig {
	current := &f.current[cluster*len(f.Resources)+resource]
	config := informer.InformerConfig{
		ExampleObject: &informer.RawObject{},
		Budget:        budget,
		Handler: informer.ResourceEventHandlerFuncs{
			AddFunc: func(interface{}) {
				f.added.Add(1)
				time.Sleep(f.Handling)
			},
			UpdateFunc: func(interface{}, interface{}) { current.Store(int64(time.Since(f.began))) },
		},
		ErrorHandler: func(*informer.Reflector, error) {},
	}
	if f.Paged {
		config.ListMode = informer.ListModePaged
	}
	return config
}

// idle notes what informers hold that wait, each with its share of all the rest.
func (f *fleet) idle() error {
	time.Sleep(max(time.Second, f.Settle)) // for what they listed with to be let go
	all, err := held()
	if err != nil {
		return err
	}
	f.costs.RSS = all.rss
	f.result.noteEach(holding{}, all, f.costs.Informers)
	return errors.Join(writeProfile("heap", f.profileOf("idle.heap")), writeProfile("goroutine", f.profileOf("idle.goroutine")))
}

// outage has the servers go away, and measures until all informers are current again.
func (f *fleet) outage(ctx context.Context) (err error) {
	o := &FleetOutage{}
	f.costs.Outage = o
	added := f.added.Load()
	stopProfile, err := f.profileCPU("away")
	if err != nil {
		return err
	}
	before := CPUTime()
	if _, err := extra.Control(ctx, f.Control, extra.LeavePath); err != nil {
		return err
	}
	select {
	case <-time.After(f.Outage):
	case <-ctx.Done():
		return ctx.Err()
	}
	stopProfile()
	if stopProfile, err = f.profileCPU("return"); err != nil {
		return err
	}
	defer func() { stopProfile() }()
	back, used := time.Since(f.began), CPUTime()
	o.AwayCPU = used - before
	if o.Usage, err = extra.Control(ctx, f.Control, extra.ReturnPath); err != nil {
		return err
	}
	for deadline := time.Now().Add(outagePatience); f.count() < f.costs.Informers; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d informers are current %v after the return", f.count(), f.costs.Informers, outagePatience)
		}
	}
	o.CPU = CPUTime() - used
	var took []time.Duration
	for i := range f.current {
		took = append(took, time.Duration(f.current[i].Load())-back)
	}
	o.noteTimes(took)
	o.Listed = f.added.Load() - added
	o.After, err = extra.Control(ctx, f.Control, extra.UsagePath)
	return err
}

// count returns how many informers are current.
func (f *fleet) count() (n int) {
	for i := range f.current {
		if f.current[i].Load() > 0 {
			n++
		}
	}
	return n
}

// profileOf is the file for a profile, empty if none is wanted.
func (f *fleet) profileOf(what string) string {
	if f.Profile == "" {
		return ""
	}
	return f.Profile + "." + what
}

// profileCPU begins a profile of the CPU, and returns what ends it.
func (f *fleet) profileCPU(moment string) (stop func(), err error) {
	return cpuProfile(f.profileOf(moment))
}
