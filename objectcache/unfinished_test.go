package objectcache_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/testkit/samples"
	"github.com/rvinformer/informer/objectcache"
)

// busyPods is an informer of pods that are updated again and again.
type busyPods struct {
	*objectcache.Informer
	t       *testing.T
	cluster samples.Cluster
	events  *watch.FakeWatcher
	rounds  int
}

const fewPods = 50

// runBusyPods runs an informer of fewPods pods until the test ends.
func runBusyPods(t *testing.T, opts objectcache.Options) *busyPods {
	b := &busyPods{t: t, cluster: samples.Cluster{Seed: 1}, events: watch.NewFake()}
	opts.HotBytes = -1
	b.Informer = newInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListFunc: func(metav1.ListOptions) (apiruntime.Object, error) {
			list := &corev1.PodList{}
			for _, pod := range b.cluster.Pods(0, fewPods, 0) {
				list.Items = append(list.Items, *pod)
			}
			return list, nil
		},
		WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return b.events, nil },
	}, noWatchLists{}), &corev1.Pod{}, opts)
	return b
}

func (b *busyPods) run() (stop func()) {
	w := &world{t: b.t}
	stop = w.run(b.Informer)
	require.True(b.t, b.HasSynced())
	return stop
}

// update updates each pod so many times.
func (b *busyPods) update(times int) {
	for range times {
		b.rounds++
		for n := range fewPods {
			b.events.Modify(b.cluster.Pod(n, b.rounds))
		}
	}
	synctest.Wait()
}

// requireLittleMemory fails the test if more memory is in use than before, beyond what the informer
// says. What is replaced takes 690 bytes for each update.
func (b *busyPods) requireLittleMemory(before int64, updates int) {
	b.t.Helper()
	more, queued := liveBytes()-before, b.Status().QueuedBytes
	b.t.Logf("%d updates: %d bytes more in use, and the informer says %d", updates, more, queued)
	require.Less(b.t, more, queued+int64(690*updates)/4)
}

// A handler whose initial list is not finished may need objects that were replaced since it was
// added. What only later handlers could have needed, or earlier ones that have gone, is kept no
// longer.
func TestHandlersThatComeAndGoKeepNoReplacedObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := runBusyPods(t, objectcache.Options{})
		defer b.run()()
		add := func() (release func()) {
			goOn := make(chan struct{})
			r, err := b.AddChangeHandler(func(objectcache.Change) { <-goOn }, cache.HandlerOptions{})
			require.NoError(t, err)
			return sync.OnceFunc(func() {
				require.NoError(t, b.RemoveEventHandler(r))
				close(goOn)
				synctest.Wait()
			})
		}
		b.update(10)
		before := liveBytes()
		release := add()
		defer func() { release() }()
		const handlers, times = 20, 1
		for range handlers {
			b.update(times)
			next := add() // one has an unfinished list at each moment
			release()
			release = next
		}
		b.requireLittleMemory(before, handlers*times*fewPods)
		require.Less(t, b.Status().QueuedBytes, int64(100_000))
		release()
		require.Zero(t, b.Status().QueuedBytes)
	})
}

// Three handlers are always in a resync, which take turns to finish, and none is ever behind.
func TestResyncsThatOverlapKeepNoReplacedObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := runBusyPods(t, objectcache.Options{ResyncPeriod: time.Second})
		for _, takes := range []time.Duration{1500, 2500, 3500} {
			_, err := b.AddChangeHandler(func(c objectcache.Change) {
				if c.Type == informer.Synced {
					time.Sleep(takes * time.Millisecond / fewPods)
				}
			}, cache.HandlerOptions{})
			require.NoError(t, err)
		}
		defer b.run()()
		time.Sleep(1100 * time.Millisecond)
		b.update(10)
		before := liveBytes()
		const steps, times = 110, 1
		for range steps { // until 12.1 s after the start: 12.5 s after it, all have finished
			time.Sleep(100 * time.Millisecond)
			b.update(times)
		}
		time.Sleep(300 * time.Millisecond)
		b.requireLittleMemory(before, steps*times*fewPods)
	})
}

// Handlers whose lists overlap are each called with the states that the store had when they were
// added, in whichever order they finish.
func TestUnfinishedListsHaveTheirOwnStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := runBusyPods(t, objectcache.Options{})
		defer b.run()()
		type handler struct {
			step  chan struct{}
			round int
			mu    sync.Mutex
			last  map[string]string
		}
		var handlers []*handler
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		for n := range 6 {
			if n%2 == 0 { // two each begin with the same states
				b.update(1)
			}
			h := &handler{step: make(chan struct{}), round: b.rounds, last: map[string]string{}}
			_, err := b.AddChangeHandler(func(c objectcache.Change) {
				select {
				case <-h.step:
				case <-ctx.Done():
					return
				}
				h.mu.Lock()
				defer h.mu.Unlock()
				obj, err := c.New.Decode()
				if !assert.NoError(t, err) {
					return
				}
				version := obj.(*corev1.Pod).ResourceVersion
				if c.Type == informer.Added {
					assert.True(t, c.IsInInitialList)
					assert.Empty(t, h.last[c.Key])
				} else {
					old, err := c.Old.Decode()
					assert.NoError(t, err)
					assert.Equal(t, h.last[c.Key], old.(*corev1.Pod).ResourceVersion)
				}
				h.last[c.Key] = version
			}, cache.HandlerOptions{})
			require.NoError(t, err)
			handlers = append(handlers, h)
		}
		step := func(h *handler, times int) {
			for range times {
				h.step <- struct{}{}
			}
			synctest.Wait()
		}
		for k, h := range handlers {
			step(h, 10*k) // each is at another place
		}
		b.update(2)
		for k := range handlers {
			step(handlers[len(handlers)-1-k], fewPods-10*(len(handlers)-1-k))
			b.update(1)
		}
		for _, h := range handlers {
			step(h, (b.rounds-h.round)*fewPods)
			require.Len(t, h.last, fewPods)
			for n := range fewPods {
				pod := b.cluster.Pod(n, b.rounds)
				require.Equal(t, pod.ResourceVersion, h.last[pod.Namespace+"/"+pod.Name])
			}
		}
		require.Zero(t, b.Status().Queued)
	})
}
