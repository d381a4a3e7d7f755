package objectcache_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/objectcache"
)

// crowd is a store of pods, each with labels and values in an index of its own, beside the versions
// that it has.
type crowd struct {
	t      *testing.T
	store  *objectcache.Store
	has    map[int]int
	latest int
}

func newCrowd(t *testing.T) *crowd {
	s := objectcache.NewStore(&corev1.Pod{}, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		"node and name": func(obj interface{}) ([]string, error) {
			pod := obj.(*corev1.Pod)
			return []string{pod.Spec.NodeName, pod.Name}, nil
		},
	}, objectcache.StoreOptions{HotBytes: 64 << 10})
	return &crowd{t: t, store: s, has: map[int]int{}}
}

func crowdPod(n, version int) *corev1.Pod {
	pod := podOf(fmt.Sprint("namespace-", n%13), fmt.Sprint("pod-", n), "u", strconv.Itoa(version))
	pod.Labels = map[string]string{"name": pod.Name}
	pod.Spec.NodeName = fmt.Sprint("node-", n%101)
	return pod
}

func crowdKey(n int) string { return fmt.Sprintf("namespace-%d/pod-%d", n%13, n) }

func (c *crowd) put(n int) {
	c.latest++
	require.NoError(c.t, c.store.Add(crowdPod(n, c.latest)))
	c.has[n] = c.latest
}

func (c *crowd) remove(n int) {
	require.NoError(c.t, c.store.Delete(crowdPod(n, c.latest)))
	delete(c.has, n)
}

// check compares all that the store has.
func (c *crowd) check() {
	require.NoError(c.t, c.store.Check())
	require.Equal(c.t, len(c.has), c.store.Len())
	nodes := map[string]int{}
	for n, version := range c.has {
		obj, exists, err := c.store.GetByKey(crowdKey(n))
		require.True(c.t, exists && err == nil, "%v", err)
		require.Equal(c.t, strconv.Itoa(version), obj.(*corev1.Pod).ResourceVersion)
		nodes[fmt.Sprint("node-", n%101)]++
		keys, err := c.store.IndexKeys("node and name", fmt.Sprint("pod-", n))
		require.NoError(c.t, err)
		require.Equal(c.t, []string{crowdKey(n)}, keys)
	}
	for node, count := range nodes {
		keys, err := c.store.IndexKeys("node and name", node)
		require.NoError(c.t, err)
		require.Len(c.t, keys, count)
	}
}

func TestStoreGivesMemoryBackAfterPeak(t *testing.T) {
	c := newCrowd(t)
	r := rand.New(rand.NewPCG(1, 2))
	const most = 8000
	for n := range most {
		c.put(n)
	}
	full := c.store.SizeBytes()
	for range 2 {
		for n := range most {
			if n%10 != 3 {
				c.remove(n)
			}
		}
		c.check()
		t.Logf("%d bytes for %d objects, %d for a tenth", full, most, c.store.SizeBytes())
		require.Less(t, c.store.SizeBytes(), full/4)
		for range most / 2 {
			switch n := r.IntN(most); {
			case c.has[n] != 0 && r.IntN(2) == 0:
				c.remove(n)
			default:
				c.put(n)
			}
		}
		c.check()
	}
	keep := slices.Sorted(maps.Keys(c.has))[:2]
	var list []interface{}
	for _, n := range keep {
		list = append(list, crowdPod(n, c.has[n]))
	}
	require.NoError(t, c.store.Replace(list, "1"))
	c.has = map[int]int{keep[0]: c.has[keep[0]], keep[1]: c.has[keep[1]]}
	c.check()
	require.Less(t, c.store.SizeBytes(), full/10)
}

// A store that shrinks during a list still knows which objects the list has shown. It does not
// shrink while the list has staged objects.
func TestListGoesOnInStoreThatShrinks(t *testing.T) {
	for name, staged := range map[string]bool{"nothing is staged": false, "staged": true} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t)
			const most = 4000
			for n := range most {
				c.put(n)
			}
			full := c.store.SizeBytes()
			g := c.store.Begin()
			for n := 0; n < most; n += 5 {
				require.True(t, g.Show(crowdKey(n), strconv.Itoa(c.has[n]), "u"))
			}
			if staged {
				for n := most; n < most+10; n++ {
					require.NoError(t, g.Put(crowdPod(n, n)))
				}
			}
			for n := range most {
				if n%5 != 0 && n%7 != 0 {
					c.remove(n)
				}
			}
			require.NoError(t, c.store.Check())
			require.Equal(t, staged, c.store.SizeBytes() > full*2/3, "%d of %d bytes", c.store.SizeBytes(), full)
			g.End("9", true)
			maps.DeleteFunc(c.has, func(n, _ int) bool { return n%5 != 0 })
			if staged {
				for n := most; n < most+10; n++ {
					c.has[n] = n
				}
			}
			c.check()
		})
	}
}

// An audit goes through a store in parts, while that shrinks.
func TestAuditOfShrinkingStoreMissesNoKey(t *testing.T) {
	c := newCrowd(t)
	const most = 6000
	for n := range most {
		c.put(n)
	}
	lent := map[string]bool{}
	visit := func(key string) { lent[key] = true }
	cursor := c.store.LendKeys(0, most*2/3, visit)
	require.NotZero(t, cursor)
	for n := range most {
		if n%4 != 0 {
			c.remove(n)
		}
	}
	for cursor != 0 {
		cursor = c.store.LendKeys(cursor, 100, visit)
	}
	for n := range c.has {
		require.True(t, lent[crowdKey(n)], crowdKey(n))
	}
}

// A handler that has not finished its initial list knows objects by their place in the store.
func TestInformerShrinksWhenHandlersHaveTheirLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 5000
		events := watch.NewFake()
		i := newInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListFunc: func(metav1.ListOptions) (apiruntime.Object, error) {
				list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
				for n := range most {
					list.Items = append(list.Items, *crowdPod(n, 1))
				}
				return list, nil
			},
			WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return events, nil },
		}, noWatchLists{}), &corev1.Pod{}, objectcache.Options{HotBytes: -1})
		w := &world{t: t}
		defer w.run(i)()
		full := i.Store().SizeBytes()
		goOn := make(chan struct{})
		added, deleted := map[string]bool{}, map[string]bool{}
		_, err := i.AddChangeHandler(func(c objectcache.Change) {
			<-goOn
			if c.Type == informer.Added {
				added[c.Key] = true
			} else {
				deleted[c.Key] = true
			}
		}, cache.HandlerOptions{})
		require.NoError(t, err)
		for n := range most {
			if n%10 != 3 {
				events.Delete(crowdPod(n, 2+n))
			}
		}
		synctest.Wait()
		close(goOn)
		synctest.Wait()
		require.Len(t, added, most)
		require.Len(t, deleted, most*9/10)
		for n := range 20 {
			events.Modify(crowdPod(3, 2+most+n))
		}
		synctest.Wait()
		require.NoError(t, i.Store().Check())
		require.Equal(t, most/10, i.Store().Len())
		t.Logf("%d bytes for %d objects, %d for a tenth", full, most, i.Store().SizeBytes())
		require.Less(t, i.Store().SizeBytes(), full/4)
	})
}
