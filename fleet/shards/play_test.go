package shards_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/fleet/shards"
	"github.com/rvinformer/informer/informertest"
)

// number is what an environment variable says, or a default.
func number(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return otherwise
}

// TestRandomPlays runs replicas with real informers, several clusters and a model of a database in
// virtual time, while everything goes wrong: see play.chaos. INFORMER_TORTURE=n plays n seeds,
// INFORMER_TORTURE_FROM says from which one on.
func TestRandomPlays(t *testing.T) {
	from, seeds := number("INFORMER_TORTURE_FROM", 1), number("INFORMER_TORTURE", 4)
	var refused, written, handed int
	for seed := from; seed < from+seeds; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlay(t, uint64(seed))
				defer p.close()
				p.chaos()
				p.calm()
				p.crashOne()
				p.stopOne()
				p.compare()
				p.stopAll()
				refused, written = refused+p.db.refused, written+p.db.written
				for _, table := range p.db.tables {
					handed += len(table.writers)
				}
			})
			if t.Failed() {
				t.Logf("again, perhaps a few times: INFORMER_TORTURE=1 INFORMER_TORTURE_FROM=%d go test -race -count=20 -run RandomPlays ./fleet/shards", seed)
			}
		})
	}
	t.Logf("%d transactions under %d epochs, and %d refused because their epoch was stale", written, handed, refused)
	if seeds >= 4 && !t.Failed() {
		require.Positive(t, refused, "no replica has acted on stale knowledge: the plays prove nothing")
	}
}

// play is a fleet whose replicas live and die.
type play struct {
	t      *testing.T
	dice   *rand.Rand // of the driver alone
	seed   uint64
	lives  uint64 // processes so far
	db     *database
	coord  *informertest.Server
	backup *informertest.Backup // of coord; nil: none yet
	data   map[string]*informertest.Server
	units  []fleet.Unit
	alive  []*process
	ended  []*process
	writes sync.WaitGroup // of the users of the clusters
}

// groups are the resource of each group.
var groups = map[string]schema.GroupVersionResource{
	"maps":    {Version: "v1", Resource: "configmaps"},
	"widgets": {Group: "example.com", Version: "v1", Resource: "widgets"},
}

// The size of a play.
const (
	clusters    = 4
	mostAlive   = 4
	chaoticTime = 3 * time.Minute
)

func newPlay(t *testing.T, seed uint64) *play {
	p := &play{t: t, seed: seed, dice: rand.New(rand.NewPCG(seed, 1)), db: newDatabase(t), data: map[string]*informertest.Server{}}
	p.coord = informertest.NewServer(informertest.Options{InMemory: true, Resources: []informertest.Resource{leaseResource}})
	for i := range clusters {
		name := fmt.Sprint("cluster-", i)
		p.data[name] = informertest.NewServer(informertest.Options{InMemory: true})
		for group := range groups {
			p.units = append(p.units, fleet.Unit{Cluster: name, Group: group})
		}
	}
	return p
}

func (p *play) close() {
	p.writes.Wait()
	for _, x := range append(p.alive, p.ended...) {
		x.crash() // those that have not ended yet, because the test has failed
		<-x.done
		x.coord.delivering.Wait()
	}
	p.coord.Close()
	for _, s := range p.data {
		s.Close()
	}
}

// process is a replica that can be frozen and killed at any step.
type process struct {
	*shards.Replica
	p     *play
	name  string
	coord *network // to the coordinating cluster
	near  *network // to the clusters and to the database
	stop  context.CancelFunc
	done  chan struct{}
	dead  atomic.Bool

	mu      sync.Mutex
	running map[fleet.Unit]bool
}

// launch starts a process.
func (p *play) launch() *process {
	p.lives++
	x := &process{
		p: p, name: fmt.Sprint("replica-", p.lives%5), done: make(chan struct{}), running: map[fleet.Unit]bool{},
		coord: &network{dice: rand.New(rand.NewPCG(p.seed, 100+p.lives))}, near: &network{dice: rand.New(rand.NewPCG(p.seed, 1000+p.lives))},
	}
	// Clocks differ by hours.
	x.coord.skew = time.Duration(p.dice.IntN(7)-3) * time.Hour
	x.coord.die, x.near.die = x.crash, x.crash
	config := p.coord.Config()
	config.Wrap(x.coord.over)
	var err error
	x.Replica, err = shards.New(shards.Config{
		Client: clientset(p.t, config).CoordinationV1(), Namespace: "fleet", Name: "test", Identity: x.name, Work: x,
	})
	require.NoError(p.t, err)
	ctx, stop := context.WithCancel(p.t.Context())
	x.stop = stop
	p.alive = append(p.alive, x)
	go func() {
		defer close(x.done)
		_ = x.Run(ctx)
	}()
	return x
}

// crash kills the process: nothing that it does from now on reaches anything. It may be called from
// within any of its calls.
func (x *process) crash() {
	x.dead.Store(true)
	x.coord.cut()
	x.near.cut()
	x.stop()
}

// freeze stops the process in whatever it does: what it sends waits, and so does what it hears.
func (x *process) freeze() { x.coord.partition(); x.near.partition() }

func (x *process) heal() {
	x.coord.set(func(l *network) { l.slow, l.late, l.deadly = 0, 0, 0 })
	x.near.set(func(l *network) { l.slow, l.late, l.deadly = 0, 0, 0 })
	x.coord.heal()
	x.near.heal()
}

func (x *process) Units() []fleet.Unit      { return x.p.units }
func (x *process) Changed() <-chan struct{} { return nil }

// RunUnit follows a unit with a real informer.
func (x *process) RunUnit(ctx context.Context, u fleet.Unit) error {
	x.set(u, true)
	defer x.set(u, false)
	config := x.p.data[u.Cluster].Config()
	config.Wrap(x.near.over)
	listers, err := informer.NewDynamicListerWatcherFactory(config)
	if err != nil {
		return err
	}
	epoch, _ := informer.EpochOf(ctx)
	to := &sink{db: x.p.db, unit: u, writer: x.Identity(), epoch: epoch, disk: x.near.disk, appended: -1}
	informer.NewResourceVersionInformer(u.String(), informer.InformerConfig{
		ListerWatcher: listers.ForResource("", groups[u.Group]),
		BatchHandler:  to,
		Checkpoint:    to,
		ErrorHandler:  func(*informer.Reflector, error) {},
		Backoff:       &wait.Backoff{Duration: 100 * time.Millisecond, Cap: 2 * time.Second, Factor: 2, Steps: 10, Jitter: 1},
	}).RunWithContext(ctx)
	return nil
}

func (x *process) set(u fleet.Unit, runs bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.running[u] = runs
}

func (x *process) runs(u fleet.Unit) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.running[u] && !x.dead.Load()
}

// uncovered are the units that no living process runs.
func (p *play) uncovered() (missing []fleet.Unit) {
	synctest.Wait()
	p.bury()
	for _, u := range p.units {
		if !slices.ContainsFunc(p.alive, func(x *process) bool { return x.runs(u) }) {
			missing = append(missing, u)
		}
	}
	return missing
}

// bury puts those that have died among the ended.
func (p *play) bury() {
	p.alive = slices.DeleteFunc(p.alive, func(x *process) bool {
		if x.dead.Load() {
			p.ended = append(p.ended, x)
		}
		return x.dead.Load()
	})
}

func (p *play) any() *process {
	if len(p.alive) == 0 {
		return p.launch()
	}
	return p.alive[p.dice.IntN(len(p.alive))]
}

// chaos is minutes in which anything happens at any time.
func (p *play) chaos() {
	p.launch()
	p.launch()
	for over := time.Now().Add(chaoticTime); time.Now().Before(over); {
		for range p.dice.IntN(6) {
			p.write()
		}
		time.Sleep(time.Duration(p.dice.IntN(6000)) * time.Millisecond)
		synctest.Wait()
		p.bury()
		switch x := p.any(); p.dice.IntN(14) {
		case 0, 1:
			if len(p.alive) < mostAlive {
				p.launch()
			}
		case 2:
			x.crash()
		case 3:
			x.stop()
			p.retire(x)
		case 4, 5:
			// Often longer than the lease.
			p.during(x.freeze, x.heal, 40*time.Second)
		case 6:
			p.during(x.coord.partition, x.coord.heal, 30*time.Second)
		case 7:
			p.during(x.near.partition, x.near.heal, 30*time.Second)
		case 8:
			x.coord.set(func(l *network) { l.slow = time.Duration(p.dice.IntN(4000)) * time.Millisecond })
		case 9:
			x.coord.set(func(l *network) { l.late = 0.3 })
		case 10:
			x.coord.set(func(l *network) { l.deadly = 0.1 })
			x.near.set(func(l *network) { l.deadly = 0.02 })
		case 11:
			x.heal()
		case 12:
			p.wipe()
		case 13:
			p.restore()
		}
	}
}

// wipe deletes all Leases, as somebody with kubectl does.
func (p *play) wipe() {
	all, err := p.coord.List(leases, "fleet")
	require.NoError(p.t, err)
	for _, l := range all {
		if err := p.coord.Delete(leases, "fleet", l.GetName()); !apierrors.IsNotFound(err) { // another one may be faster
			require.NoError(p.t, err)
		}
	}
}

// restore has the coordinating cluster go back to a backup that was made before, and makes the next
// one.
func (p *play) restore() {
	if p.backup != nil {
		p.coord.Restore(p.backup)
	}
	p.backup = p.coord.Backup()
}

// during begins something that ends after a while.
func (p *play) during(begin, end func(), most time.Duration) {
	begin()
	after := time.Duration(p.dice.Int64N(int64(most)))
	p.writes.Go(func() {
		time.Sleep(after)
		end()
	})
}

// retire takes a process that stops out of those that are alive.
func (p *play) retire(x *process) {
	p.alive = slices.DeleteFunc(p.alive, func(other *process) bool { return other == x })
	p.ended = append(p.ended, x)
}

// write changes an object of some cluster.
func (p *play) write() {
	u := p.units[p.dice.IntN(len(p.units))]
	server, gvr := p.data[u.Cluster], groups[u.Group]
	name := fmt.Sprint("n", p.dice.IntN(8))
	obj := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"value": strconv.Itoa(p.dice.IntN(1e6))}}}
	obj.SetAPIVersion(gvr.GroupVersion().String())
	obj.SetKind(map[string]string{"maps": "ConfigMap", "widgets": "Widget"}[u.Group])
	obj.SetNamespace("default")
	obj.SetName(name)
	if _, err := server.Get(gvr, "default", name); err != nil {
		_, err = server.Create(gvr, obj)
		require.NoError(p.t, err)
	} else if p.dice.IntN(3) == 0 {
		require.NoError(p.t, server.Delete(gvr, "default", name))
	} else {
		_, err = server.Update(gvr, obj)
		require.NoError(p.t, err)
	}
}

// calm ends all that goes wrong. After that all units are covered.
func (p *play) calm() {
	p.writes.Wait()
	for len(p.alive) < 3 {
		p.launch()
	}
	for _, x := range p.alive {
		x.heal()
	}
	time.Sleep(time.Minute)
	require.Empty(p.t, p.uncovered(), "a minute after the last fault")
}

// crashOne kills a process. Its units are covered again within 30 seconds.
func (p *play) crashOne() {
	p.any().crash()
	p.coveredWithin(30 * time.Second)
	p.launch()
	time.Sleep(15 * time.Second)
	require.Empty(p.t, p.uncovered())
}

// stopOne stops a process in order. Its units are covered again within 3 seconds.
func (p *play) stopOne() {
	x := p.any()
	x.stop()
	p.retire(x)
	x.dead.Store(true) // what it still runs does not count
	p.coveredWithin(3 * time.Second)
}

func (p *play) coveredWithin(limit time.Duration) {
	for begin := time.Now(); len(p.uncovered()) > 0; time.Sleep(20 * time.Millisecond) {
		require.LessOrEqual(p.t, time.Since(begin), limit, "still uncovered: %v", p.uncovered())
	}
}

// compare waits until the database has what the servers have.
func (p *play) compare() {
	for range 20 {
		p.write()
	}
	different := ""
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(time.Second) {
		synctest.Wait()
		if different = p.difference(); different == "" {
			return
		}
	}
	require.Empty(p.t, different, "after a minute without faults")
}

func (p *play) difference() string {
	for _, u := range p.units {
		objects, err := p.data[u.Cluster].List(groups[u.Group], "")
		require.NoError(p.t, err)
		want := map[string]row{}
		for _, o := range objects {
			want[o.GetNamespace()+"/"+o.GetName()] = rowOf(o)
		}
		have := p.db.rowsOf(u)
		maps.DeleteFunc(want, func(key string, r row) bool {
			same := have[key] == r
			delete(have, key)
			return same
		})
		if len(want)+len(have) > 0 {
			return fmt.Sprintf("%s: the database lacks %v and has too much: %v", u, want, have)
		}
	}
	return ""
}

// stopAll stops all processes in order.
func (p *play) stopAll() {
	for _, x := range p.alive {
		x.stop()
	}
	for _, x := range p.alive {
		<-x.done
	}
}
