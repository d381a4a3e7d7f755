package typed_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/factory/typed"
	"github.com/rvinformer/informer/informertest"
)

// watches counts the watches that a server was asked for.
func watches(s *informertest.Server) (n int) {
	for _, r := range s.Requests() {
		if r.Verb == "watch" || r.Verb == "watch-list" {
			n++
		}
	}
	return n
}

// tally is a handler that counts.
type tally struct{ added, updated, deleted atomic.Int32 }

func (h *tally) OnAdd(any, bool)   { h.added.Add(1) }
func (h *tally) OnUpdate(_, _ any) { h.updated.Add(1) }
func (h *tally) OnDelete(any)      { h.deleted.Add(1) }

// handles adds a tally to an informer.
func handles(t require.TestingT, i cache.SharedIndexInformer) *tally {
	h := &tally{}
	_, err := i.AddEventHandler(h)
	require.NoError(t, err)
	return h
}

// Two typed factories and a user of the registry share one watch, and each goes its own way.
func TestOneWatchForAllWhoShareAKey(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "one")
		registry := factory.New()
		one, other := over(s, typed.WithFactory(registry)), over(s, typed.WithFactory(registry))
		first := handles(t, one.Core().V1().Pods().Informer())
		cancel := follows(t, one)

		pinned, err := registry.Acquire(pods, factory.InformerOptions{}, func() cache.SharedIndexInformer {
			require.FailNow(t, "newFunc is called")
			return nil
		})
		require.NoError(t, err)
		require.NoError(t, pinned.Start())
		second := handles(t, other.Core().V1().Pods().Informer())
		stop := started(t, other)
		synctest.Wait()
		require.Equal(t, 1, watches(s))
		require.Same(t, pinned.Informer.GetStore(), one.Core().V1().Pods().Informer().GetStore())
		require.Equal(t, 3, pinned.Status().Leases)

		create(t, s, "two")
		time.Sleep(time.Second)
		require.Equal(t, []int32{2, 2}, []int32{first.added.Load(), second.added.Load()})

		ended := one.Core().V1().Pods().Informer()
		cancel()
		one.Shutdown()
		require.True(t, ended.IsStopped())
		_, err = ended.AddEventHandler(first)
		require.ErrorContains(t, err, "v1/pods, standard: the handler was not added")
		create(t, s, "three")
		time.Sleep(time.Second)
		require.Equal(t, []int32{2, 3}, []int32{first.added.Load(), second.added.Load()})

		stop()
		require.Equal(t, 1, pinned.Status().Leases)
		<-pinned.Release()
		require.Empty(t, registry.Statuses())
		require.Equal(t, 1, watches(s))
	})
}

// The cluster, the namespace, a resync period and a transform keep informers apart, but not what
// has no namespaces.
func TestWhatKeepsInformersApart(t *testing.T) {
	registry := factory.New()
	client := fake.NewClientset()
	strip := func(obj any) (any, error) { return obj, nil }
	store := func(options ...typed.SharedInformerOption) cache.Store {
		return typed.New(client, 0, append(options, typed.WithFactory(registry))...).Core().V1().Pods().Informer().GetStore()
	}
	apart := []cache.Store{
		store(),
		store(typed.WithCluster("east")),
		store(typed.WithNamespace("default")),
		store(typed.WithCustomResyncConfig(map[metav1.Object]time.Duration{&corev1.Pod{}: time.Minute})),
		store(typed.WithTransform(strip)),
		store(typed.WithTransform(strip)),
		store(typed.WithTransform(strip), typed.WithTransformName("strip")),
		store(typed.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "app=web" })),
		store(typed.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = "spec.nodeName=one" })),
	}
	for i, s := range apart {
		require.False(t, slices.Contains(apart[:i], s), "%d", i)
	}
	require.Same(t, apart[0], store())
	require.Same(t, apart[0], store(typed.WithCustomResyncConfig(map[metav1.Object]time.Duration{&corev1.Node{}: time.Minute})))
	require.Same(t, apart[1], store(typed.WithCluster("east")))
	require.Same(t, apart[6], store(typed.WithTransform(strip), typed.WithTransformName("strip")))
	require.Same(t, apart[7], store(typed.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "app==web" })))

	nodes := typed.New(client, 0, typed.WithFactory(registry)).Core().V1().Nodes().Informer().GetStore()
	require.Same(t, nodes, typed.New(client, 0, typed.WithFactory(registry), typed.WithNamespace("default")).Core().V1().Nodes().Informer().GetStore())
}

// A transform that a user of the registry has brought keeps its informer from users without one.
func TestTransformOfTheRegistryIsNotShared(t *testing.T) {
	registry := factory.New()
	client := fake.NewClientset()
	lease, err := registry.Acquire(pods, factory.InformerOptions{ObjectTransform: func(obj any) (any, error) { return obj, nil }, TransformName: "strip"}, func() cache.SharedIndexInformer {
		return typed.New(client, 0).Core().V1().Pods().Informer()
	})
	require.NoError(t, err)
	f := typed.New(client, 0, typed.WithFactory(registry))
	require.NotSame(t, lease.Informer.GetStore(), f.Core().V1().Pods().Informer().GetStore())
	own, err := f.Acquire(pods)
	require.NoError(t, err)
	require.Equal(t, "v1/pods, standard/no transform", own.Key().String())
}

// A tweak that does more than to select, or not always the same, is not shared.
func TestTweaksThatAreNotShared(t *testing.T) {
	n := 0
	for name, tweak := range map[string]func(*metav1.ListOptions){
		"limit":            func(o *metav1.ListOptions) { o.Limit = 10 },
		"timeout":          func(o *metav1.ListOptions) { o.TimeoutSeconds = nil },
		"resource version": func(o *metav1.ListOptions) { o.ResourceVersion = "" },
		"only lists": func(o *metav1.ListOptions) {
			if !o.Watch {
				o.LabelSelector = "a"
			}
		},
		"only later pages": func(o *metav1.ListOptions) {
			if o.Continue != "" {
				o.LabelSelector = "a"
			}
		},
		"something else each time": func(o *metav1.ListOptions) { n++; o.LabelSelector = "a=" + string(rune('a'+n)) },
	} {
		t.Run(name, func(t *testing.T) {
			registry := factory.New()
			store := func() cache.Store {
				return typed.New(fake.NewClientset(), 0, typed.WithFactory(registry), typed.WithTweakListOptions(tweak)).Core().V1().Pods().Informer().GetStore()
			}
			plain := typed.New(fake.NewClientset(), 0, typed.WithFactory(registry)).Core().V1().Pods().Informer().GetStore()
			one, other := store(), store()
			require.NotSame(t, one, other)
			require.NotSame(t, plain, one)
		})
	}
}

// What is shared lists what the key says, whatever the tweak says later. What is not, asks the
// tweak each time.
func TestTweakIsAskedForEachRequestUnlessItsInformerIsShared(t *testing.T) {
	for _, registry := range []*factory.Factory{nil, factory.New()} {
		bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
			create(t, s, "web", "app", "web")
			create(t, s, "db", "app", "db")
			app := "web"
			f := over(s, typed.WithFactory(registry), typed.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "app=" + app }))
			app = "db"
			i := f.Core().V1().Pods().Informer()
			stop := started(t, f)
			if registry == nil {
				require.Equal(t, []string{"default/db"}, keys(i))
			} else {
				require.Equal(t, []string{"default/web"}, keys(i))
			}
			stop()
		})
	}
}

// Each factory's handlers resync in its own period, and two factories of one period share a watch.
func TestResyncOfTheFactory(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "one")
		registry := factory.New()
		var told []*tally
		for _, period := range []time.Duration{0, time.Minute, time.Minute} {
			f := typed.New(client(t, s), period, typed.WithFactory(registry), typed.WithRESTConfig(s.Config()))
			told = append(told, handles(t, f.Core().V1().Pods().Informer()))
			defer started(t, f)()
		}
		time.Sleep(3*time.Minute + time.Second)
		require.Equal(t, []int32{0, 3, 3}, []int32{told[0].updated.Load(), told[1].updated.Load(), told[2].updated.Load()})
		require.Equal(t, 2, watches(s))
	})
}

// The transform of an informer that may be shared is not its user's to set; that of one that cannot
// be, is.
func TestSetTransform(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "one")
		name := func(obj any) (any, error) {
			obj.(*corev1.Pod).Labels = map[string]string{"transformed": "yes"}
			return obj, nil
		}
		f := over(s, typed.WithFactory(factory.New()))
		require.ErrorContains(t, f.Core().V1().Pods().Informer().SetTransform(name), "v1/pods, standard: the informer may be shared")
		f.Shutdown()

		f = over(s)
		i := f.Core().V1().Pods().Informer()
		require.NoError(t, i.SetTransform(name))
		stop := started(t, f)
		require.ErrorContains(t, i.SetTransform(name), "already started")
		one, err := f.Core().V1().Pods().Lister().Pods("default").Get("one")
		require.NoError(t, err)
		require.Equal(t, "yes", one.Labels["transformed"])
		stop()
	})
}

// Many requests at the same time get one informer.
func TestAllAtOnce(t *testing.T) {
	registry := factory.New()
	f := typed.New(fake.NewClientset(), 0, typed.WithFactory(registry))
	var all sync.WaitGroup
	informers := make([]cache.Store, 20)
	for n := range informers {
		all.Go(func() { informers[n] = f.Core().V1().Pods().Informer().GetStore() })
	}
	all.Wait()
	for _, i := range informers {
		require.Same(t, informers[0], i)
	}
	require.Equal(t, 1, registry.Statuses()[0].Leases)
	f.Shutdown()
	require.Empty(t, registry.Statuses())
}
