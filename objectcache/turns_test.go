package objectcache_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
)

// TestListsOfManyInformersTakeTurns starts many informers together, and counts the lists that are
// under way at a time: a quarter of the Budget, 256 KiB or a 64th of it each.
func TestListsOfManyInformersTakeTurns(t *testing.T) {
	for name, c := range map[string]struct {
		budget *informer.Budget
		most   int
	}{
		"default":      {nil, 16},
		"budget of 12": {informer.NewBudget(12), 3},
	} {
		for _, decoded := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var mu sync.Mutex
					underWay, peak := 0, 0
					note := func(n int) {
						mu.Lock()
						defer mu.Unlock()
						underWay += n
						peak = max(peak, underWay)
					}
					lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
						ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
							note(1)
							time.Sleep(10 * time.Millisecond)
							note(-1)
							return &corev1.PodList{}, nil
						},
						WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
					}, noWatchLists{})
					w := &world{t: t}
					var all []*objectcache.Informer
					for range 100 {
						i := newInformer(lw, &corev1.Pod{}, objectcache.Options{Budget: c.budget, Decoded: decoded})
						all = append(all, i)
						defer w.run(i)()
					}
					for _, i := range all {
						<-i.HasSyncedChecker().Done()
					}
					require.Equal(t, c.most, peak)
				})
			})
		}
	}
}

// TestListIsReadBesideBlockedFunctions starts 80 informers whose functions block while a list is
// read, and then one without such a function.
func TestListIsReadBesideBlockedFunctions(t *testing.T) {
	for name, blocked := range map[string]func(wait func()) objectcache.Options{
		"Transform": func(wait func()) objectcache.Options {
			return objectcache.Options{Transform: func(obj interface{}) (interface{}, error) { wait(); return obj, nil }}
		},
		"index function": func(wait func()) objectcache.Options {
			return objectcache.Options{Indexers: cache.Indexers{"blocked": func(interface{}) ([]string, error) { wait(); return nil, nil }}}
		},
	} {
		bubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *world) {
			w.create("a/b", "a/c", "b/a")
			release := make(chan struct{})
			released := sync.OnceFunc(func() { close(release) })
			budget := informer.NewBudget(1 << 20)
			options := blocked(func() { <-release })
			options.Budget = budget
			for range 80 {
				defer w.run(newInformer(w.lister(), &unstructured.Unstructured{}, options))()
			}
			defer released() // before they are stopped
			synctest.Wait()
			begun := time.Now()
			free := newInformer(w.lister(), &unstructured.Unstructured{}, objectcache.Options{Budget: budget})
			defer w.run(free)()
			<-free.HasSyncedChecker().Done()
			require.Less(t, time.Since(begun), 5*time.Second)
		})
	}
}
