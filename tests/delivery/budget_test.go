package delivery_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

func TestNewBudget(t *testing.T) {
	b := informer.NewBudget(10)
	require.EqualValues(t, 10, b.Limit())
	require.Zero(t, b.InUse())
	require.Zero(t, b.Peak())
	require.Panics(t, func() { informer.NewBudget(0) })
}

// listUnderWay is what a list under way takes of a budget.
func listUnderWay(b *informer.Budget) int64 { return min(max(b.Limit()/64, 1), 256<<10) }

// While the budget is spent nothing more is read, in any form; one more object than
// is allowed is the most that is held; and all is given back.
func TestABudgetStopsTheReading(t *testing.T) {
	const size = 1000
	for name, example := range map[string]runtime.Object{
		"raw": &informer.RawObject{}, "unstructured": nil, "typed": &corev1.Pod{},
	} {
		for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeWatchList} {
			harness.BubbleRun(t, name+", "+mode.String(), informertest.Options{}, func(t *testing.T, w *harness.World) {
				for _, key := range harness.Keys(50) {
					obj := harness.Object(harness.Pods, key, "")
					obj.SetAnnotations(map[string]string{"large": strings.Repeat("x", size)})
					_, err := w.Create(harness.Pods, obj)
					require.NoError(t, err)
				}
				budget := informer.NewBudget(10 * size)
				var r harness.Recorder
				r.Before = func(string) { time.Sleep(time.Minute) }
				i := harness.Settled(w, informer.InformerConfig{Handler: &r, ListMode: mode, Budget: budget, ExampleObject: example})
				require.InDelta(t, 10*size, budget.InUse(), 2*size)
				require.Equal(t, budget.InUse(), i.Status().QueuedBytes+listUnderWay(budget))
				require.Less(t, i.Status().Queued, 11)
				require.Greater(t, i.Status().Queued, 4)
				<-i.HasSyncedChecker().Done()
				require.LessOrEqual(t, budget.Peak(), budget.Limit())
				w.RequireState(&r)
				synctest.Wait()
				require.Zero(t, budget.InUse())
			})
		}
	}
}

// Objects larger than the budget pass one by one.
func TestAnObjectLargerThanTheBudget(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(20)...)
		budget := informer.NewBudget(1)
		var r harness.Recorder
		i := harness.Settled(w, informer.InformerConfig{Handler: &r, Budget: budget})
		require.True(t, i.HasSynced())
		w.RequireState(&r)
		require.Less(t, budget.Peak(), int64(1000))
	})
}

// An informer whose handler is stuck has all of the budget that it shares. The
// others go on, an object at a time; and when it is stopped, it gives it back.
func TestABudgetIsShared(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(100)...)
		budget := informer.NewBudget(20_000)
		release := make(chan struct{})
		stuck := &harness.Recorder{Before: func(string) { <-release }}
		first := harness.Follow(w, informer.InformerConfig{Handler: stuck, Budget: budget})
		stopFirst := harness.Settle(first.RunWithContext)
		require.InDelta(t, budget.Limit(), budget.InUse(), 1000)

		var others [3]harness.Recorder
		for n := range others {
			i := harness.Follow(w, informer.InformerConfig{Handler: &others[n], Budget: budget})
			defer harness.Settle(i.RunWithContext)()
			require.True(t, i.HasSynced())
			w.RequireState(&others[n])
			require.Equal(t, budget.InUse(), first.Status().QueuedBytes+listUnderWay(budget))
		}
		require.Less(t, budget.Peak(), budget.Limit()+3*1000)

		var stopped atomic.Bool
		go func() { stopFirst(); stopped.Store(true) }()
		synctest.Wait()
		require.False(t, stopped.Load(), "its call has not returned")
		close(release)
		synctest.Wait()
		require.True(t, stopped.Load())
		require.Zero(t, budget.InUse(), "given back with what waits in it")
	})
}

// Many informers that share a budget which is always spent all get on.
func TestABudgetThatIsAlwaysSpent(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(200)...)
		budget := informer.NewBudget(3000)
		var all [20]harness.Recorder
		var informers [20]informer.ResourceVersionInformer
		for n := range all {
			all[n].Before = func(string) { time.Sleep(10 * time.Millisecond) }
			informers[n] = harness.Follow(w, informer.InformerConfig{Handler: &all[n], Budget: budget})
			defer harness.Start(informers[n].RunWithContext)()
		}
		began := time.Now()
		for n, i := range informers {
			<-i.HasSyncedChecker().Done()
			w.RequireState(&all[n])
		}
		require.Less(t, time.Since(began), 10*time.Second)
		synctest.Wait()
		require.Zero(t, budget.InUse())
	})
}
