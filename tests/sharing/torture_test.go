package sharing_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// TestTortureShared has several informers and controllers share a server, its faults and a budget.
func TestTortureShared(t *testing.T) {
	harness.SurvivePanics(t)
	from, seeds := harness.EnvInt("INFORMER_TORTURE_FROM", 1), harness.EnvInt("INFORMER_TORTURE", 10)
	for seed := from; seed < from+seeds; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { tortureShared(t, uint64(seed)) })
	}
}

// checker folds what it is told and looks at every object as long as it may.
type checker struct {
	harness.Dice
	slow, panics int
	mu           sync.Mutex
	known        map[string]string
	wrong        []string
	kept         []interface{} // copies, with what they were
	keptAs       []string
}

func (c *checker) tell(obj interface{}, exists bool) {
	before := harness.IdentityOf(obj)
	if c.slow > 0 {
		time.Sleep(time.Duration(c.N(c.slow)) * time.Millisecond)
	}
	after := harness.IdentityOf(obj)
	c.mu.Lock()
	defer c.mu.Unlock()
	if before != after || (len(before) > 2 && (before[:2] == "un" || before[:2] == "in")) {
		c.wrong = append(c.wrong, before+" became "+after)
	}
	if o, ok := obj.(runtime.Object); ok && c.One(4) {
		c.kept = append(c.kept, o.DeepCopyObject())
		c.keptAs = append(c.keptAs, after)
	}
	if c.One(c.panics) {
		panic("checker")
	}
	k := harness.Key(obj)
	if exists {
		a, _ := meta.Accessor(obj)
		c.known[k] = a.GetResourceVersion()
	} else {
		delete(c.known, k)
	}
}
func (c *checker) OnAdd(obj interface{}, _ bool) { c.tell(obj, true) }
func (c *checker) OnUpdate(_, obj interface{})   { c.tell(obj, true) }
func (c *checker) OnDelete(obj interface{})      { c.tell(obj, false) }
func (c *checker) OnSync(obj interface{})        { c.tell(obj, true) }
func (c *checker) OnBatch(_ context.Context, events []informer.Event) error {
	for _, e := range events {
		c.tell(e.Object, e.Type != informer.Deleted)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.One(c.panics) {
		return errors.New("checker")
	}
	return nil
}

func tortureShared(t *testing.T, seed uint64) {
	f := &harness.Faults{Dice: harness.Dice{Rand: rand.New(rand.NewPCG(seed, 1))}}
	d := &harness.Dice{Rand: rand.New(rand.NewPCG(seed, 2))}
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		f.World = w
		for range d.N(40) {
			f.Touch()
		}
		budget := informer.NewBudget(int64(1 + d.N(8000)))
		n := 1 + d.N(5)
		var checkers []*checker
		var storages []*informer.ResourceVersionStorage
		var informers []informer.ResourceVersionInformer
		var stops []func()
		configs := []func(*rest.Config) *rest.Config{harness.Protobuf, func(c *rest.Config) *rest.Config { return c }}
		for i := range n {
			c := &checker{Dice: harness.Dice{Rand: rand.New(rand.NewPCG(seed, uint64(10+i)))}, known: map[string]string{}}
			c.slow = []int{0, 20, 2000}[d.N(3)]
			c.panics = []int{0, 0, 20}[d.N(3)]
			factory, err := informer.NewDynamicListerWatcherFactory(configs[d.N(2)](w.Config()))
			require.NoError(t, err)
			config := informer.InformerConfig{
				ListerWatcher: factory.ForResource("", harness.Pods), Handler: c, Storage: informer.NewResourceVersionStorage(),
				ErrorHandler: harness.IgnoreErrors, Budget: budget, Workers: 1 + d.N(4), WatchListPageSize: int64(1 + d.N(20)),
				ListMode:      []informer.ListMode{informer.ListModeAuto, informer.ListModePaged, informer.ListModeFull, informer.ListModeWatchList}[d.N(4)],
				ExampleObject: []runtime.Object{&informer.RawObject{}, &informer.RawObject{}, &metav1.PartialObjectMetadata{}, &corev1.Pod{}, &unstructured.Unstructured{}}[d.N(5)],
			}
			if d.One(2) {
				config.Handler, config.BatchHandler, config.MaxBatch = nil, c, d.N(20)
			}
			if d.One(2) {
				config.Prune = [][]string{{"metadata.managedFields"}, {"metadata.creationTimestamp", "data"}, {"metadata.annotations", "metadata.labels.x"}}[d.N(3)]
			}
			if d.One(3) {
				config.ExtraStore = harness.Nothing{}
			}
			if d.One(2) {
				config.StallTimeout = 2 * time.Minute
			}
			if d.One(2) {
				config.Transform = func(obj interface{}) (interface{}, error) {
					if c.One(15) {
						return nil, errors.New("transform")
					}
					return obj, nil
				}
			}
			i := informer.NewResourceVersionInformer("pods", config)
			checkers, storages, informers = append(checkers, c), append(storages, config.Storage), append(informers, i)
			stops = append(stops, harness.Start(i.RunWithContext))
		}
		// ordinary informers and controllers
		store := cache.NewStore(cache.MetaNamespaceKeyFunc)
		ordinary := informer.NewInformer(w.Lister(), &corev1.Pod{}, store, time.Duration(d.N(2))*10*time.Second, cache.ResourceEventHandlerFuncs{}, nil)
		stops = append(stops, harness.Start(ordinary.RunWithContext))
		known := harness.NewStore()
		var queue cache.Queue
		if d.One(2) {
			queue = cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: known, EmitDeltaTypeReplaced: true})
		}
		var calm sync.Map
		pd := harness.Dice{Rand: rand.New(rand.NewPCG(seed, 99))}
		c := informer.NewNamedController("c", &informer.Config{Queue: queue, RetryOnError: true, ListerWatcher: w.Lister(), WatchErrorHandler: harness.IgnoreErrors, ForcePaginatedList: d.One(2), FullResyncPeriod: time.Duration(d.N(2)) * 7 * time.Second,
			Process: func(obj interface{}, _ bool) error {
				if _, ok := calm.Load("calm"); !ok && pd.One(8) {
					return errors.New("process")
				}
				for _, x := range obj.(cache.Deltas) {
					var err error
					switch x.Type {
					case cache.Deleted:
						err = known.Delete(x.Object)
					default:
						err = known.Update(x.Object)
					}
					if err != nil {
						return err
					}
				}
				return nil
			}})
		stopC := harness.Start(c.RunWithContext)
		for range 20 + d.N(30) {
			switch d.N(14) {
			case 0:
				w.CloseClientConnections()
			case 1:
				w.Compact()
			case 2:
				f.Break()
			case 3, 4:
				w.Heal()
			case 5:
				k := d.N(len(stops))
				stops[k]()
				if k < n {
					for range d.N(5) {
						f.Touch()
					}
					stops[k] = harness.Start(informers[k].RunWithContext)
				} else {
					stops[k] = harness.Start(ordinary.RunWithContext)
				}
			case 6:
				time.Sleep(time.Duration(d.N(600)) * time.Second)
			default:
				for range 1 + d.N(10) {
					f.Touch()
					if d.One(3) {
						time.Sleep(time.Duration(d.N(500)) * time.Millisecond)
					}
				}
			}
			require.GreaterOrEqual(t, budget.InUse(), int64(0))
		}
		calm.Store("calm", true)
		for _, c := range checkers {
			c.mu.Lock()
			c.panics = 0
			c.mu.Unlock()
		}
		w.Heal()
		time.Sleep(40 * time.Minute)
		for range 8 { // transforms fail at random: lists repeat what was lost
			w.Relist()
			time.Sleep(5 * time.Minute)
		}
		synctest.Wait()
		server := w.Versions()
		for i, c := range checkers {
			c.mu.Lock()
			require.Empty(t, c.wrong)
			require.Equal(t, server, c.known, "informer %d: %+v", i, informers[i].Status())
			require.Equal(t, server, maps.Collect(storages[i].All()))
			for j, o := range c.kept {
				require.Equal(t, c.keptAs[j], harness.IdentityOf(o))
			}
			c.mu.Unlock()
			require.Zero(t, informers[i].Status().Queued)
		}
		require.Zero(t, budget.InUse())
		require.Len(t, store.ListKeys(), len(server))
		for _, obj := range store.List() {
			require.Equal(t, server[harness.Key(obj)], obj.(*corev1.Pod).ResourceVersion)
		}
		if queue == nil {
			require.Equal(t, server, harness.Contents(known))
		}
		for _, stop := range stops {
			stop()
		}
		stopC()
		require.Zero(t, budget.InUse())
	})
}
