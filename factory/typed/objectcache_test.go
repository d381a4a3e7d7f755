package typed_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/factory/typed"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/informertest/oracle"
	"github.com/rvinformer/informer/objectcache"
)

// encodings are how a server answers.
var encodings = map[string]informertest.Options{
	"protobuf": {},
	"json": {Wrap: func(handler http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Accept", "application/json")
			handler.ServeHTTP(w, r)
		})
	}},
}

// cached returns a factory with an object cache.
func cached(s *informertest.Server, opts objectcache.Options, options ...typed.SharedInformerOption) *typed.Factory {
	return over(s, append(options, typed.WithObjectCache(opts))...)
}

// Client-go's listers answer from encoded objects as they do from decoded ones, and callers may
// change what they get.
func TestListersOverAnObjectCache(t *testing.T) {
	for name, opts := range encodings {
		bubbleRun(t, name, opts, func(t *testing.T, s *informertest.Server) {
			create(t, s, "one", "app", "web")
			create(t, s, "two", "app", "db")
			elsewhere := pod("three", "app", "web")
			elsewhere.Namespace = "elsewhere"
			_, err := s.Create(pods, elsewhere)
			require.NoError(t, err)
			f := cached(s, objectcache.Options{})
			lister := f.Core().V1().Pods().Lister()
			told := handles(t, f.Core().V1().Pods().Informer())
			generic, err := f.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "pods"})
			require.NoError(t, err)
			stop := started(t, f)

			all, err := lister.List(labels.Everything())
			require.NoError(t, err)
			require.Len(t, all, 3)
			web, err := lister.List(labels.SelectorFromSet(labels.Set{"app": "web"}))
			require.NoError(t, err)
			require.ElementsMatch(t, []string{"one", "three"}, names(web))
			here, err := lister.Pods("default").List(labels.Everything())
			require.NoError(t, err)
			require.ElementsMatch(t, []string{"one", "two"}, names(here))
			one, err := lister.Pods("default").Get("one")
			require.NoError(t, err)
			require.Equal(t, "web", one.Labels["app"])
			one.Labels["app"], one.Name = "changed", "by its reader"
			again, err := lister.Pods("default").Get("one")
			require.NoError(t, err)
			require.Equal(t, "web", again.Labels["app"])
			_, err = lister.Pods("default").Get("none")
			require.ErrorContains(t, err, `pod "none" not found`)
			object, err := generic.Lister().ByNamespace("elsewhere").Get("three")
			require.NoError(t, err)
			require.IsType(t, &corev1.Pod{}, object)

			informer := typed.ObjectCache(f.Core().V1().Pods().Informer())
			matching, err := objectcache.ListMatching(informer.Store(), "default", labels.SelectorFromSet(labels.Set{"app": "db"}))
			require.NoError(t, err)
			require.Len(t, matching, 1)

			change(t, s, "two", "app", "later")
			require.NoError(t, s.Delete(pods, "default", "one"))
			synctest.Wait()
			two, err := lister.Pods("default").Get("two")
			require.NoError(t, err)
			require.Equal(t, "later", two.Labels["app"])
			require.Equal(t, []int32{3, 1, 1}, []int32{told.added.Load(), told.updated.Load(), told.deleted.Load()})

			require.Equal(t, 2, informer.Store().Len())
			stop()
			require.True(t, informer.IsStopped())
		})
	}
}

func names(pods []*corev1.Pod) (names []string) {
	for _, p := range pods {
		names = append(names, p.Name)
	}
	return names
}

// The options of an object cache apply to the informers of its factory, those with examples to some
// of them.
func TestOptionsOfAnObjectCache(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		p := pod("one", "app", "web", "tier", "back")
		p.Annotations, p.Spec.NodeName, p.Spec.Hostname = map[string]string{"a": "b"}, "node", "host"
		_, err := s.Create(pods, p)
		require.NoError(t, err)
		configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
		_, err = s.Create(configMaps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c", Annotations: map[string]string{"a": "b"}}, Data: map[string]string{"k": "v"}})
		require.NoError(t, err)
		byNode := func(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Spec.NodeName}, nil }
		f := over(s,
			typed.WithObjectCache(objectcache.Options{Name: "of a test", Prune: []string{"metadata.annotations"}}),
			typed.WithObjectCache(objectcache.Options{Keep: []string{"metadata.labels", "spec.nodeName"}, Prune: []string{"metadata.labels.tier"}, Indexers: cache.Indexers{"node": byNode}}, &corev1.Pod{}),
			typed.WithTransform(func(obj any) (any, error) {
				obj.(metav1.Object).SetGenerateName("transformed")
				return obj, nil
			}),
			typed.WithNamespace("default"),
		)
		podInformer, mapInformer := f.Core().V1().Pods(), f.Core().V1().ConfigMaps()
		podInformer.Informer()
		mapInformer.Informer()
		stop := started(t, f)
		got, err := podInformer.Lister().Pods("default").Get("one")
		require.NoError(t, err)
		want := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one", GenerateName: "transformed", UID: got.UID, ResourceVersion: got.ResourceVersion, Labels: map[string]string{"app": "web"}},
			Spec:       corev1.PodSpec{NodeName: "node"},
		}
		require.Equal(t, want, got)
		onNode, err := podInformer.Informer().GetIndexer().IndexKeys("node", "node")
		require.NoError(t, err)
		require.Equal(t, []string{"default/one"}, onNode)
		c, err := mapInformer.Lister().ConfigMaps("default").Get("c")
		require.NoError(t, err)
		require.Equal(t, map[string]string{"k": "v"}, c.Data)
		require.Empty(t, c.Annotations)
		require.Equal(t, "transformed", c.GenerateName)
		stop()
	})
}

// Factories with the same options share an object cache, and no informer with another one or none.
func TestSharedObjectCaches(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "one", "app", "web")
		create(t, s, "two", "app", "db")
		registry := factory.New()
		web := typed.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "app=web" })
		same := []*typed.Factory{
			cached(s, objectcache.Options{Keep: []string{"metadata.labels", "spec"}}, typed.WithFactory(registry)),
			cached(s, objectcache.Options{Keep: []string{"spec", "metadata.labels", "spec"}, Name: "other"}, typed.WithFactory(registry)),
		}
		others := []*typed.Factory{
			over(s, typed.WithFactory(registry)),
			cached(s, objectcache.Options{}, typed.WithFactory(registry)),
			cached(s, objectcache.Options{}, typed.WithFactory(registry), web),
			cached(s, objectcache.Options{Keep: []string{"spec"}}, typed.WithFactory(registry)),
			cached(s, objectcache.Options{Prune: []string{"spec"}}, typed.WithFactory(registry)),
			cached(s, objectcache.Options{HotBytes: -1}, typed.WithFactory(registry)),
			cached(s, objectcache.Options{Indexers: cache.Indexers{"i": cache.MetaNamespaceIndexFunc}}, typed.WithFactory(registry)),
			cached(s, objectcache.Options{ListMode: informer.ListModePaged}, typed.WithFactory(registry)),
			cached(s, objectcache.Options{WatchListPageSize: 7}, typed.WithFactory(registry)),
			cached(s, objectcache.Options{StallTimeout: time.Minute}, typed.WithFactory(registry)),
			cached(s, objectcache.Options{Budget: informer.NewBudget(1 << 20)}, typed.WithFactory(registry)),
			cached(s, objectcache.Options{AuditEvery: time.Hour}, typed.WithFactory(registry)),
			cached(s, objectcache.Options{AuditOptions: informer.AuditOptions{Repair: true}}, typed.WithFactory(registry)),
		}
		ctx, cancel := context.WithCancel(t.Context())
		stores := map[*objectcache.Informer]bool{}
		all := append(slices.Clone(same), others...)
		for _, f := range all {
			i := f.Core().V1().Pods().Informer()
			stores[typed.ObjectCache(i)] = true
			f.StartWithContext(ctx)
			synced(t, f)
			want := []string{"default/one", "default/two"}
			if f == others[2] {
				want = want[:1]
			}
			require.ElementsMatch(t, want, keys(i))
		}
		require.Same(t, typed.ObjectCache(same[0].Core().V1().Pods().Informer()), typed.ObjectCache(same[1].Core().V1().Pods().Informer()))
		decoded := 0
		for i := range stores {
			if i.Store() == nil {
				decoded++
			}
		}
		require.Equal(t, 1, decoded, "the informer without an object cache")
		require.Len(t, stores, len(all)-1)
		key, err := same[1].KeyFor(pods)
		require.NoError(t, err)
		require.Equal(t, `object cache keep ["metadata.labels" "spec"]`, key.Variant)
		status, ok := registry.Status(key)
		require.True(t, ok)
		require.Equal(t, 2, status.Leases)
		require.Equal(t, informer.PhaseWatching, status.Phase)
		cancel()
		for _, f := range all {
			f.Shutdown()
		}
		require.Empty(t, registry.Statuses())
	})
}

func TestObjectCacheRefuses(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		for says, options := range map[string][]typed.SharedInformerOption{
			"typed: WithObjectCache without WithRESTConfig or WithClientLists: nothing says how its objects are read": {
				typed.WithObjectCache(objectcache.Options{}),
			},
			"typed: WithObjectCache beside WithInformerName, whose metrics are those of client-go's own informers": {
				typed.WithRESTConfig(s.Config()), typed.WithObjectCache(objectcache.Options{}), typed.WithInformerName(&cache.InformerName{}),
			},
			"typed: WithObjectCache: ResyncPeriod is an argument of New, or WithCustomResyncConfig": {
				typed.WithRESTConfig(s.Config()), typed.WithObjectCache(objectcache.Options{}), typed.WithObjectCache(objectcache.Options{ResyncPeriod: time.Second}, &corev1.Pod{}),
			},
			"typed: WithObjectCache: WatchListPageSize is -1": {
				typed.WithRESTConfig(s.Config()), typed.WithObjectCache(objectcache.Options{WatchListPageSize: -1}),
			},
			`typed: WithObjectCache: keep "data": v1.Pod has no field "data"`: {
				typed.WithRESTConfig(s.Config()), typed.WithObjectCache(objectcache.Options{Keep: []string{"data"}}, &corev1.Pod{}),
			},
			"typed: WithObjectCache: a Snapshot is one informer's: give it with exactly one example": {
				typed.WithRESTConfig(s.Config()), typed.WithObjectCache(objectcache.Options{Snapshot: informer.FileCheckpoint("unused")}, &corev1.Pod{}, &corev1.Node{}),
			},
			"typed: WithObjectCache: an example is nil": {
				typed.WithRESTConfig(s.Config()), typed.WithObjectCache(objectcache.Options{}, nil),
			},
			"typed: WithObjectCache: Transform is set with WithTransform": {
				typed.WithRESTConfig(s.Config()), typed.WithObjectCache(objectcache.Options{Transform: func(obj any) (any, error) { return obj, nil }}),
			},
		} {
			require.PanicsWithValue(t, says, func() { typed.New(fake.NewClientset(), 0, options...) })
		}
		require.PanicsWithValue(t, "typed: WithObjectCache: a Snapshot is one informer's: give it with exactly one example", func() {
			cached(s, objectcache.Options{Snapshot: informer.FileCheckpoint("unused")})
		})
		f := cached(s, objectcache.Options{Keep: []string{"spec.nodeName"}})
		defer f.Shutdown()
		f.Core().V1().Pods().Informer()
		require.PanicsWithValue(t, `objectcache: informer "services": keep "spec.nodeName": v1.ServiceSpec has no field "nodeName"`, func() { f.Core().V1().Services().Informer() })
	})
}

// Resyncs come in the period of the factory, and its watch error handler learns what goes wrong.
func TestResyncsAndErrorsOfAnObjectCache(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "one")
		f := typed.New(nil, time.Hour, typed.WithRESTConfig(s.Config()), typed.WithObjectCache(objectcache.Options{}),
			typed.WithCustomResyncConfig(map[metav1.Object]time.Duration{&corev1.Pod{}: time.Minute}))
		i := f.Core().V1().Pods().Informer()
		told := handles(t, i)
		var failed []error
		require.NoError(t, i.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { failed = append(failed, err) }))
		stop := started(t, f)
		time.Sleep(10*time.Minute + time.Second)
		require.EqualValues(t, 10, told.updated.Load())
		heal := s.Inject(informertest.Fault{Effect: informertest.Status(403)})
		s.CloseClientConnections()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.NotEmpty(t, failed)
		require.True(t, apierrors.IsForbidden(failed[len(failed)-1]), "%v", failed)
		heal()
		stop()
	})
}

// What handlers are told is right, and so is what is stored, whatever breaks.
func TestBrokenAnswersOfAnObjectCacheLoseNothing(t *testing.T) {
	for name, opts := range encodings {
		for _, text := range listFaults {
			if strings.HasPrefix(text, "list") && strings.Contains(text, "garbage") {
				continue // the list goes on without the object
			}
			bubbleRun(t, name+" "+text, opts, func(t *testing.T, s *informertest.Server) {
				f := cached(s, objectcache.Options{WatchListPageSize: 3, ListMode: informer.ListModePaged})
				losesNothing(t, s, text, oracle.Options{}, f, 10*time.Minute)
			})
		}
	}
}

func TestRandomDaysOfAnObjectCache(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			opts := encodings[[]string{"protobuf", "json"}[seed%2]]
			opts.Seed = seed
			bubble(t, opts, func(t *testing.T, s *informertest.Server) {
				registry := factory.New()
				randomDay(t, s, rand.New(rand.NewPCG(seed, 7)), oracle.Options{}, func() *typed.Factory {
					return cached(s, objectcache.Options{ListMode: informer.ListMode(seed % 4), WatchListPageSize: 4}, typed.WithFactory(registry))
				}, func() {
					relist(s, func() { create(t, s, "last") }) // what could not be read of a list is read by the next
				})
				require.Empty(t, registry.Statuses())
			})
		})
	}
}
