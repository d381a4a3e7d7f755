package delivery_test

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// poisoned is a destination that refuses each batch with one of some keys in it, and does not say
// why; while it is away, it refuses all.
type poisoned struct {
	mu   sync.Mutex
	keys sets.Set[string]
	away bool
	// calls are the batches so far, as keys.
	calls [][]string
}

func (p *poisoned) fail(batch []string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var keys []string
	for _, event := range batch {
		keys = append(keys, strings.Fields(event)[1])
	}
	p.calls = append(p.calls, keys)
	if p.away || p.keys.HasAny(keys...) {
		return errors.New("the transaction was rolled back")
	}
	return nil
}

// refuse has it refuse just these keys from now on.
func (p *poisoned) refuse(keys ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = sets.New(keys...)
}

// goAway has it go away, or come back.
func (p *poisoned) goAway(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = away
}

// after are the batches after the first n.
func (p *poisoned) after(n int) [][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls[n:])
}

// follow has an informer deliver pods that are there before it.
func (p *poisoned) follow(w *harness.World, pods []string, b *harness.Batches) (i informer.ResourceVersionInformer, stop func()) {
	w.CreatePods(pods...)
	b.Fail = p.fail
	i = harness.Follow(w, informer.InformerConfig{BatchHandler: b})
	return i, harness.Start(i.RunWithContext)
}

// One event that fails holds up no other: all others are taken in within a second, and few calls.
func TestOneEventThatFailsIsFound(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		pods := harness.Keys(500)
		p := &poisoned{keys: sets.New(pods[321])}
		b := harness.Batches{}
		i, stop := p.follow(w, pods, &b)
		defer stop()
		time.Sleep(time.Second)
		require.Len(t, b.State(), 499)
		require.Equal(t, 1, i.Status().Queued)
		require.False(t, i.HasSynced())
		failed := 0
		for _, keys := range p.after(0) {
			if slices.Contains(keys, pods[321]) {
				failed++
			}
		}
		require.Less(t, failed, 20)
		require.Equal(t, informer.ReasonHandlerFailing, i.Status().Condition.Reason)

		w.CreatePods("b/new")
		synctest.Wait()
		require.Contains(t, b.State(), "b/new", "other batches go on")
		calls := len(p.after(0))
		time.Sleep(10 * time.Minute)
		for _, keys := range p.after(calls) {
			require.Equal(t, []string{pods[321]}, keys, "it is tried by itself")
		}
		require.NotEmpty(t, p.after(calls))

		p.refuse() // the table's column was made wider
		harness.Sleep(time.Minute)
		w.RequireState(&b.Recorder)
		require.True(t, i.HasSynced())
		require.Equal(t, informer.ReasonCurrent, i.Status().Condition.Reason)
	})
}

// Ten events that fail, anywhere in a batch of 500, hold up the others for some hundred calls. A
// destination that says no more than yes or no must be asked 68 times: there are 2^67.9 choices of
// ten in 500.
func TestTenEventsThatFailAreFound(t *testing.T) {
	for name, place := range map[string]func(n int) int{
		"side by side": func(n int) int { return 300 + n },
		"apart":        func(n int) int { return 25 + 50*n },
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			p := &poisoned{}
			b := harness.Batches{See: busy}
			_, stop := p.follow(w, nil, &b)
			defer stop()
			synctest.Wait()
			pods := harness.Keys(500)
			var refused []string
			for n := range 10 {
				refused = append(refused, pods[place(n)])
			}
			p.refuse(refused...)
			together(w, func() { w.CreatePods(pods...) })
			harness.Sleep(500 * time.Millisecond)
			require.Len(t, b.State(), 491)
			t.Logf("%d calls", len(p.after(0)))
			require.Less(t, len(p.after(0)), 140)
		})
	}
}

// A destination that is away gets at most twice the calls that it gets if no batch is tried in
// parts, and then the batch as it was.
func TestADestinationThatIsAwayIsNotTriedInParts(t *testing.T) {
	calls := func(pods int) (calls int) {
		harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
			p := &poisoned{}
			b := harness.Batches{See: busy}
			_, stop := p.follow(w, nil, &b)
			defer stop()
			synctest.Wait()
			together(w, func() {
				w.CreatePods(harness.Keys(pods)...)
				p.refuse(harness.Keys(pods)...)
			})
			before := len(p.after(0))
			time.Sleep(10 * time.Minute)
			require.Len(t, b.State(), 1)
			calls = len(p.after(before))
			p.refuse()
			harness.Sleep(time.Minute)
			w.RequireState(&b.Recorder)
			require.Equal(t, []int{1, pods}, b.Sizes(), "it comes as it was")
		})
		return calls
	}
	require.LessOrEqual(t, calls(300), 2*calls(1))
}

// A destination that goes away while a batch is tried in parts is not called for each event.
func TestADestinationGoesAwayWhileABatchIsTriedInParts(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		pods := harness.Keys(500)
		p := &poisoned{keys: sets.New(pods[100])}
		b := harness.Batches{}
		var back atomic.Bool
		b.See = func([]informer.Event) {
			if len(b.State()) > 200 && !back.Load() {
				p.goAway(true)
			}
		}
		_, stop := p.follow(w, pods, &b)
		defer stop()
		time.Sleep(time.Second)
		require.Greater(t, len(b.State()), 200)
		require.Less(t, len(b.State()), 499)
		require.Less(t, len(p.after(0)), 1010)
		back.Store(true)
		p.goAway(false)
		harness.Sleep(10 * time.Minute)
		require.Len(t, b.State(), 499)
	})
}

// Where most events fail, the others are found too: each event is tried by itself some day.
func TestTheFewThatDoNotFailAreFound(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		pods := harness.Keys(100)
		p := &poisoned{keys: sets.New(pods...)}
		well := []string{pods[7], pods[20], pods[21], pods[35], pods[50], pods[51], pods[52], pods[60], pods[80], pods[93]}
		p.keys.Delete(well...)
		b := harness.Batches{}
		_, stop := p.follow(w, pods, &b)
		defer stop()
		time.Sleep(4 * time.Hour)
		require.ElementsMatch(t, well, sets.KeySet(b.State()).UnsortedList())
	})
}

// Whatever fails by itself, and while the destination comes and goes: everything else is taken in,
// and a batch is told in its order.
func TestRandomEventsThatFail(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
			pods := harness.Keys(rapid.IntRange(1, 20).Draw(rt, "pods"))
			p := &poisoned{keys: sets.New(rapid.SliceOfNDistinct(rapid.SampledFrom(pods), 0, len(pods)/2, rapid.ID).Draw(rt, "poison")...)}
			refused := p.keys.Len()
			b := harness.Batches{}
			order := map[string]int{}
			b.See = func(events []informer.Event) {
				for n, e := range events {
					if at, ok := order[e.Key]; ok && n > 0 {
						require.Greater(t, at, order[events[n-1].Key], "out of order: %v", events)
					}
				}
				if len(order) == 0 {
					for n, e := range events {
						order[e.Key] = n
					}
				}
			}
			i, stop := p.follow(w, pods, &b)
			defer stop()
			for n := range rapid.IntRange(0, 3).Draw(rt, "outages") {
				time.Sleep(time.Duration(rapid.IntRange(0, 2000).Draw(rt, "ms")) * time.Millisecond)
				p.goAway(n%2 == 0)
			}
			p.goAway(false)
			harness.Sleep(time.Hour)
			require.Len(t, b.State(), len(pods)-refused)
			require.Equal(t, refused, i.Status().Queued)
			p.refuse()
			harness.Sleep(time.Minute)
			w.RequireState(&b.Recorder)
		})
	})
}

// A handler that ends its goroutine while a batch is tried in parts is not told again of the part
// that it was called with. What it has taken in is acknowledged, and the rest comes again.
func TestAHandlerEndsItsGoroutineWhileABatchIsTriedInParts(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		pods := harness.Keys(8)
		p := &poisoned{keys: sets.New(pods[5])}
		b := harness.Batches{See: busy}
		i, stop := p.follow(w, nil, &b)
		defer stop()
		synctest.Wait()
		exited := false
		b.Fail = func(batch []string) error {
			err := p.fail(batch)
			if last := p.after(0)[len(p.after(0))-1]; len(last) == 2 && last[0] == pods[6] && !exited {
				exited = true
				runtime.Goexit()
			}
			return err
		}
		together(w, func() { w.CreatePods(pods...) })
		harness.Sleep(time.Minute)
		require.True(t, exited)
		require.Equal(t, 1, i.Status().Queued, "the one that fails by itself")
		for n, key := range pods {
			if n >= 5 {
				require.NotContains(t, b.State(), key)
			} else {
				require.Contains(t, b.State(), key)
			}
		}
		p.refuse()
		w.Relist()
		harness.Sleep(time.Minute)
		w.RequireState(&b.Recorder)
		added := 0
		for _, event := range b.Events() {
			if strings.HasPrefix(event, "add ") {
				added++
			}
		}
		require.Equal(t, 9, added, "each is acknowledged once, and so is the pod of together")
	})
}
