package lists_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// fleet are clusters that one process follows with one budget.
type fleet struct {
	clusters map[string]*informertest.Server
	budget   *informer.Budget
	mode     informer.ListMode
	// handling is how long a handler takes for an object.
	handling time.Duration
	// blocked holds up the handlers of clusters that are named blocked.
	blocked chan struct{}
}

func newFleet(mode informer.ListMode, budget int64) *fleet {
	return &fleet{map[string]*informertest.Server{}, informer.NewBudget(budget), mode, 0, make(chan struct{})}
}

// perCluster is how many resources of each are followed. They are all pods here.
const perCluster = 5

// add adds a cluster of so many objects of about a kilobyte.
func (f *fleet) add(t *testing.T, name string, objects int, faults ...string) {
	s := informertest.NewServer(informertest.Options{InMemory: true})
	for _, text := range faults {
		fault, err := informertest.ParseFault(text)
		require.NoError(t, err)
		s.Inject(fault)
	}
	for _, key := range harness.Keys(objects) {
		obj := harness.Object(harness.Pods, key, strings.Repeat("x", 800))
		_, err := s.Create(harness.Pods, obj)
		require.NoError(t, err)
	}
	f.clusters[name] = s
}

// share adds a cluster that has a server of another.
func (f *fleet) share(name, of string) { f.clusters[name] = f.clusters[of] }

func (f *fleet) close() {
	for _, s := range f.clusters {
		s.Close()
	}
}

// sync follows all clusters but those that are left out, until the small ones have synced, and
// returns how long each of these took.
func (f *fleet) sync(t *testing.T, without ...string) map[string]time.Duration {
	t.Helper()
	began := time.Now()
	ctx, end := context.WithCancel(t.Context())
	var running, syncing sync.WaitGroup
	var mu sync.Mutex
	took := map[string]time.Duration{}
	for name, s := range f.clusters {
		if slices.Contains(without, name) {
			continue
		}
		config := s.Config()
		config.QPS, config.DisableCompression = -1, true
		factory, err := informer.NewDynamicListerWatcherFactory(config)
		require.NoError(t, err)
		for range perCluster {
			i := informer.NewResourceVersionInformer(name, informer.InformerConfig{
				ListerWatcher: factory.ForResource("", harness.Pods), Budget: f.budget, ListMode: f.mode, ExampleObject: &informer.RawObject{},
				Handler: informer.ResourceEventHandlerFuncs{AddFunc: func(interface{}) {
					time.Sleep(f.handling)
					if strings.HasPrefix(name, "blocked") {
						<-f.blocked
					}
				}},
				ErrorHandler: func(*informer.Reflector, error) {},
			})
			running.Go(func() { i.RunWithContext(ctx) })
			if strings.HasPrefix(name, "small") {
				syncing.Go(func() {
					<-i.HasSyncedChecker().Done()
					mu.Lock()
					defer mu.Unlock()
					took[name] = max(took[name], time.Since(began))
				})
			}
		}
	}
	syncing.Wait()
	end() // all of them, before the first handler goes on: else its informer reads its whole list
	synctest.Wait()
	close(f.blocked)
	running.Wait()
	f.blocked = make(chan struct{})
	synctest.Wait()
	require.Zero(t, f.budget.InUse())
	return took
}

// Small clusters are synced beside others that are huge, dead, slow or forbidden in the time that
// they need without them; with a budget for one list at a time, and with one for sixteen.
func TestOneClusterHoldsUpNoOther(t *testing.T) {
	const everything, objects = "list,watch,watch-list,get ", 1200
	for name, test := range map[string]struct {
		// others are the faults of the other clusters, and objects are what they have.
		others   []string
		objects  int
		handling time.Duration
		// later is how much later the small ones may be.
		later time.Duration
	}{
		"huge":                     {others: []string{everything + "slow=100000"}, objects: objects},
		"huge and fast":            {others: []string{everything + "slow=1000000000"}, objects: objects},
		"huge, with slow handlers": {others: []string{everything + "slow=1000000000"}, objects: objects, handling: time.Millisecond},
		"in trouble":               {others: []string{"refuse", everything + "hang", everything + "slow=300", everything + "403"}, objects: 100, later: time.Second},
	} {
		for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeWatchList} {
			for _, budget := range []int64{1, 1 << 20} {
				if budget == 1 && test.handling > 0 {
					continue // what has plenty to be read keeps the only turn for a second
				}
				harness.SynctestRun(t, fmt.Sprint(name, ", ", mode, ", ", budget), func(t *testing.T) {
					f := newFleet(mode, budget)
					f.handling = test.handling
					defer f.close()
					for n := range 4 {
						f.add(t, fmt.Sprint("small ", n), 40, everything+"slow=20000")
					}
					var others []string
					for n, fault := range test.others {
						others = append(others, fmt.Sprint("other ", n))
						f.add(t, others[n], test.objects, fault)
					}
					alone := f.sync(t, others...)
					together := f.sync(t)
					t.Log(alone, together)
					require.Len(t, together, 4)
					for name, took := range together {
						require.Less(t, took, alone[name]*5/4+test.later, name)
					}
				})
			}
		}
	}
}

// Two hundred servers that never answer hold up the lists of one that does for less than a second,
// with the budget that is the default; and those that have refused are asked again no sooner than
// without.
func TestDeadClustersHoldUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(informer.ListModeAuto, 16<<20)
		defer f.close()
		f.add(t, "small", 10)
		dead := informertest.NewServer(informertest.Options{InMemory: true})
		defer dead.Close()
		dead.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"list", "watch", "watch-list", "get"}}, Effect: informertest.Hang()})
		for n := range 200 {
			f.clusters[fmt.Sprint("dead ", n)] = dead
		}
		require.Less(t, f.sync(t)["small"], time.Second)
	})
}

// A hundred clusters whose handlers are blocked in their lists hold up the lists of a hundred
// others for less than ten seconds, with the budget that is the default.
func TestBlockedHandlersHoldUpNoOther(t *testing.T) {
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeWatchList} {
		harness.SynctestRun(t, mode.String(), func(t *testing.T) {
			f := newFleet(mode, 16<<20)
			defer f.close()
			f.add(t, "small", 10)
			f.add(t, "blocked", 400)
			for n := range 99 { // servers of the same content
				f.share(fmt.Sprint("small ", n), "small")
				f.share(fmt.Sprint("blocked ", n), "blocked")
			}
			for name, took := range f.sync(t) {
				require.Less(t, took, 10*time.Second, name)
			}
		})
	}
}
