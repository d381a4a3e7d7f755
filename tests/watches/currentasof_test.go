package watches_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/internal/leaf/rv"
	"github.com/rvinformer/informer/objectcache"
	"github.com/rvinformer/informer/tests/harness"
)

// age is how old the view of an informer may be.
func age(i interface{ Status() informer.Status }) time.Duration {
	return time.Since(i.Status().CurrentAsOf)
}

// Of a quiet resource each bookmark proves that nothing has happened.
func TestCurrentAsOfAQuietWatch(t *testing.T) {
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeWatchList, informer.ListModeFull} {
		harness.BubbleRun(t, mode.String(), informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(3)...)
			i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, ListMode: mode})
			require.Zero(t, i.Status().CurrentAsOf)
			began := time.Now()
			defer harness.Settle(i.RunWithContext)()
			if mode == informer.ListModeFull {
				require.Zero(t, i.Status().CurrentAsOf, "the server's cache may be old")
			} else {
				require.Equal(t, began, i.Status().CurrentAsOf, "the list was asked for then")
			}
			for last := i.Status().CurrentAsOf; time.Since(began) < 2*time.Hour; {
				time.Sleep(7 * time.Second)
				now := i.Status().CurrentAsOf
				require.False(t, now.Before(last))
				if last = now; time.Since(began) > 2*time.Minute {
					require.LessOrEqual(t, age(i), 62*time.Second)
				}
			}
			require.Zero(t, i.Status().OldestQueued)
		})
	}
}

// A change that the handler has not acknowledged holds CurrentAsOf back, and so for all that came
// after it.
func TestCurrentAsOfASlowHandler(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		g := closedGate()
		i := harness.Follow(w, informer.InformerConfig{Handler: g})
		began := time.Now()
		defer harness.Start(i.RunWithContext)()
		time.Sleep(150 * time.Second)
		before := i.Status().CurrentAsOf
		require.Equal(t, began.Add(2*time.Minute), before, "that of the bookmark")
		arrived := time.Now()
		w.CreatePods("a/b")
		time.Sleep(10 * time.Minute)
		w.CreatePods("a/c")
		time.Sleep(10 * time.Minute)
		status := i.Status()
		require.Equal(t, before, status.CurrentAsOf)
		require.Equal(t, arrived, status.OldestQueued)
		require.Equal(t, 2, status.Queued)
		g.open <- struct{}{}
		synctest.Wait()
		status = i.Status()
		require.Equal(t, arrived.Add(10*time.Minute), status.OldestQueued)
		require.WithinRange(t, status.CurrentAsOf, arrived.Add(9*time.Minute-time.Second), arrived.Add(10*time.Minute), "the last bookmark before a/c")
		close(g.open)
		synctest.Wait()
		require.LessOrEqual(t, age(i), 62*time.Second)
		require.Zero(t, i.Status().OldestQueued)
	})
}

// checkpointBefore returns the checkpoint of an informer that ended before an object changed so
// many times, with pauses.
func checkpointBefore(w *harness.World, changes int, pause time.Duration) *harness.MemoryCheckpoint {
	w.CreateKubeSystem()
	w.CreatePods(harness.Keys(3)...)
	s := &harness.MemoryCheckpoint{}
	stop := harness.Start(harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, Checkpoint: s}).RunWithContext)
	time.Sleep(5 * time.Minute)
	stop()
	for n := range changes {
		put(w, "a/0001", fmt.Sprint(n))
		time.Sleep(pause)
	}
	return s
}

// A watch that goes on after an hour brings what has happened in that hour: its first events are
// old.
func TestCurrentAsOfAWatchThatCatchesUp(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		s := checkpointBefore(w, 20, 3*time.Minute)
		began := time.Now()
		g := closedGate()
		i := harness.Settled(w, informer.InformerConfig{Handler: g, Checkpoint: s})
		require.Zero(t, i.Status().CurrentAsOf)
		close(g.open)
		synctest.Wait()
		require.Zero(t, i.Status().CurrentAsOf, "whether there is more is not known")
		time.Sleep(62 * time.Second)
		require.False(t, i.Status().CurrentAsOf.Before(began))
		require.LessOrEqual(t, age(i), 62*time.Second)
	})
}

// The first events of such a watch are old, also if they come so slowly that the reader waits for
// them.
func TestCurrentAsOfAWatchThatCatchesUpSlowly(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		s := checkpointBefore(w, 200, time.Second)
		w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch"}}, Effect: informertest.Slow(3000)})
		r := &harness.Recorder{}
		i := harness.Running(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		slowly := 0
		for range 10000 {
			harness.Sleep(10 * time.Millisecond)
			if i.Status().ResourceVersion == w.ResourceVersion() {
				break
			}
			require.Zero(t, i.Status().CurrentAsOf)
			slowly++
		}
		require.Greater(t, slowly, 100)
		require.Greater(t, len(r.Events()), 10)
		require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion)
		time.Sleep(62 * time.Second)
		require.LessOrEqual(t, age(i), 62*time.Second)
	})
}

// While the server is away, the view grows old; what follows brings it up to date.
func TestCurrentAsOfAnOutage(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		i := harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{}})
		time.Sleep(10 * time.Minute)
		w.Blocked.Lock()
		w.CloseClientConnections()
		time.Sleep(30 * time.Minute)
		require.Greater(t, age(i), 30*time.Minute-time.Second)
		w.Blocked.Unlock()
		time.Sleep(3 * time.Minute)
		require.LessOrEqual(t, age(i), 62*time.Second)
	})
}

// view is an informer whose freshness is checked.
type view struct {
	name   string
	status func() informer.Status
	waiter
	// known is what is acknowledged, or readable.
	known func() map[string]string
	last  time.Time
}

// day is a random day, with what was written in it.
type day struct {
	*harness.World
	dice    *rand.Rand
	written []informertest.Write
	views   []*view
	// slow is how long a call of a handler takes at most, and broken when something was last wrong.
	slow   atomic.Int64
	broken time.Time
}

func (d *day) handler() *harness.Recorder {
	dice := rand.New(rand.NewPCG(d.dice.Uint64(), 1))
	return &harness.Recorder{Before: func(string) {
		if slow := d.slow.Load(); slow > 0 {
			time.Sleep(time.Duration(dice.Int64N(slow)))
		}
	}}
}

// act does something at random, and lets time pass.
func (d *day) act() {
	key := fmt.Sprintf("a/%d", d.dice.IntN(8))
	switch d.dice.IntN(24) {
	default:
		if _, err := d.Update(harness.Pods, harness.Object(harness.Pods, key, fmt.Sprint(d.dice.Int()))); err != nil {
			d.CreatePods(key)
		}
	case 0, 1, 2:
		if versions, err := d.ResourceVersions(harness.Pods, ""); err == nil && versions[key] != "" {
			d.DeletePods(key)
		}
	case 3:
		d.CloseClientConnections()
		d.broken = time.Now()
	case 4:
		d.CloseClientConnections()
		d.Compact()
		d.broken = time.Now()
	case 5:
		heal := d.Inject(informertest.Fault{Effect: informertest.Status(503), Odds: 2})
		d.CloseClientConnections()
		time.Sleep(time.Duration(d.dice.Int64N(int64(3 * time.Minute))))
		heal()
		d.broken = time.Now()
	case 6:
		d.slow.Store(d.dice.Int64N(int64(20 * time.Second)))
	case 7, 8:
		d.slow.Store(0)
		d.broken = time.Now()
	}
	switch d.dice.IntN(6) {
	case 0:
		time.Sleep(time.Duration(d.dice.Int64N(int64(2 * time.Minute))))
	case 1, 2:
		time.Sleep(time.Duration(d.dice.Int64N(int64(time.Second))))
	}
}

// missing returns a write that is not known although it should be.
func (d *day) missing(known map[string]string, should func(informertest.Write) bool) (missing []informertest.Write) {
	newest := map[string]informertest.Write{}
	deleted := map[string]string{}
	for _, w := range d.written {
		if should(w) {
			newest[w.Key] = w
		}
		if w.Type == informertest.Deleted {
			deleted[w.Key] = w.ResourceVersion
		}
	}
	for key, w := range newest {
		version, exists := known[key]
		if !exists {
			version = deleted[key] // something after it, if it is not that itself
		}
		if !rv.NotNewer(w.ResourceVersion, version) {
			missing = append(missing, w)
		}
	}
	return missing
}

func (d *day) check() {
	synctest.Wait()
	for _, v := range d.views {
		s, known := v.status(), v.known()
		require.False(d.T, s.CurrentAsOf.Before(v.last), "%s: went back", v.name)
		v.last = s.CurrentAsOf
		missing := d.missing(known, func(w informertest.Write) bool { return w.Time.Before(s.CurrentAsOf) })
		require.Empty(d.T, missing, "%s is not current as of %v", v.name, s.CurrentAsOf)
		if d.slow.Load() == 0 && time.Since(d.broken) > 20*time.Minute {
			require.LessOrEqual(d.T, time.Since(s.CurrentAsOf), 80*time.Second, "%s: %+v", v.name, s)
		}
	}
}

// wait waits for the version of the newest write with each view, and looks whether all before is
// known then.
func (d *day) wait() {
	version := d.ResourceVersion()
	for _, v := range d.views {
		ctx, cancel := context.WithTimeout(d.T.Context(), time.Duration(d.dice.Int64N(int64(5*time.Minute))))
		err := v.WaitUntil(ctx, version)
		known := v.known()
		cancel()
		if err != nil {
			require.ErrorIs(d.T, err, context.DeadlineExceeded)
			continue
		}
		missing := d.missing(known, func(w informertest.Write) bool { return rv.NotNewer(w.ResourceVersion, version) })
		require.Empty(d.T, missing, "%s has not waited until %s", v.name, version)
	}
}

// TestCurrentAsOfRandomDays compares CurrentAsOf and WaitUntil with what the server knows of each
// write.
func TestCurrentAsOfRandomDays(t *testing.T) {
	days := uint64(60)
	if testing.Short() {
		days = 15
	}
	for seed := range days {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			harness.Bubble(t, informertest.Options{Seed: seed}, func(t *testing.T, w *harness.World) { randomDay(t, w, seed) })
		})
	}
}

func randomDay(t *testing.T, w *harness.World, seed uint64) {
	d := &day{World: w, dice: rand.New(rand.NewPCG(seed, 0)), broken: time.Now()}
	w.CreateKubeSystem()
	w.CreatePods(harness.Keys(5)...)
	versions := w.Versions()
	for key, version := range versions {
		d.written = append(d.written, informertest.Write{Type: informertest.Created, Key: key, ResourceVersion: version, Time: time.Now()})
	}
	defer w.Observe(func(write informertest.Write) {
		if write.Resource == harness.Pods {
			d.written = append(d.written, write)
		}
	})()
	modes := []informer.ListMode{informer.ListModePaged, informer.ListModeWatchList, informer.ListModeFull}
	mode := modes[seed%3]
	budget := informer.NewBudget([]int64{1 << 20, 1000}[seed%2])
	ignore := harness.IgnoreErrors

	storage := informer.NewResourceVersionStorage()
	own := harness.Follow(w, informer.InformerConfig{Handler: d.handler(), Storage: storage, ListMode: mode, WatchListPageSize: 3, Budget: budget})
	d.views = append(d.views, &view{name: "own", status: own.Status, waiter: own, known: func() map[string]string { return maps.Collect(storage.All()) }})
	defer harness.Start(own.RunWithContext)()

	shared := informer.NewSharedResourceVersionInformer("pods", informer.InformerConfig{
		ListerWatcher: w.Lister(), ListMode: mode, WatchListPageSize: 2, Budget: budget, ErrorHandler: ignore,
	})
	for _, name := range []string{"first", "second"} {
		storage := informer.NewResourceVersionStorage()
		handler := d.handler()
		if name == "second" {
			handler = &harness.Recorder{}
		}
		h, err := shared.AddHandler(informer.HandlerConfig{Name: name, Handler: handler, Storage: storage})
		require.NoError(t, err)
		d.views = append(d.views, &view{name: name, status: h.Status, waiter: h, known: func() map[string]string { return maps.Collect(storage.All()) }})
	}
	defer harness.Start(shared.RunWithContext)()

	cached := objectcache.NewSharedIndexInformerWithOptions(w.Lister(), &corev1.Pod{}, objectcache.Options{Name: "cached", ListMode: mode, ErrorHandler: ignore})
	d.views = append(d.views, &view{name: "cached", status: cached.Status, waiter: cached, known: func() map[string]string {
		known := map[string]string{}
		for _, obj := range cached.GetStore().List() {
			accessor, err := meta.Accessor(obj)
			require.NoError(t, err)
			known[harness.Key(obj)] = accessor.GetResourceVersion()
		}
		return known
	}})
	defer harness.Start(cached.RunWithContext)()

	for range 150 {
		d.act()
		d.check()
		if d.dice.IntN(20) == 0 {
			d.wait()
		}
	}
	d.slow.Store(0)
	d.broken = time.Now()
	for range 60 {
		time.Sleep(time.Duration(d.dice.Int64N(int64(time.Minute))))
		d.check()
	}
	for _, v := range d.views {
		require.NotZero(t, v.last, v.name)
	}
}
