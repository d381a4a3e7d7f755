package controller_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/rvinformer/informer/controller"
	"github.com/rvinformer/informer/tests/harness"
)

// S4-01, S4-03: what is there is upserted as the store has it, what is gone is deleted with
// its last state.
func TestUpsertAndDelete(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1", "a/2")
		var x target
		c := &controller.Controller{Resource: x.of(w.shared())}
		require.False(w, c.HasSynced())
		require.Empty(w, c.LastSyncResourceVersion())
		defer start(c)()
		synctest.Wait()
		require.True(w, c.HasSynced())
		require.NotEmpty(w, c.LastSyncResourceVersion())
		require.ElementsMatch(w, []string{"upsert a/1=1", "upsert a/2=1"}, x.told())

		w.UpdatePod("a/1", "2")
		synctest.Wait()
		require.Equal(w, []string{"upsert a/1=2"}, x.told())
		require.Equal(w, w.ResourceVersion(), c.LastSyncResourceVersion())

		w.DeletePods("a/1")
		w.create("b/3")
		synctest.Wait()
		require.ElementsMatch(w, []string{"delete a/1=2", "upsert b/3=1"}, x.told())
		require.Equal(w, w.has(), x.has())
		require.Empty(w, w.reported())
	})
}

// Bug a of S4: each event was an item of its own. S4-03: what is processed is the newest.
func TestEventsOfAKeyAreOneItem(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1")
		busy := make(chan struct{})
		x := target{before: func(call string) error {
			if call == "upsert a/1=1" {
				<-busy
			}
			return nil
		}}
		defer start(&controller.Controller{Resource: x.of(w.shared())})()
		synctest.Wait()
		for i := range 10 {
			w.UpdatePod("a/1", fmt.Sprint(i+2))
			synctest.Wait()
		}
		close(busy)
		synctest.Wait()
		require.Equal(w, []string{"upsert a/1=1", "upsert a/1=11"}, x.told())
	})
}

// Bug b of S4: an object that was added and deleted at once was deleted twice. It is
// deleted once, because an earlier process may have known it.
func TestAddedAndDeletedAtOnceIsDeletedOnce(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/busy")
		busy := make(chan struct{})
		x := target{before: func(call string) error {
			if call == "upsert a/busy=1" {
				<-busy
			}
			return nil
		}}
		defer start(&controller.Controller{Resource: x.of(w.shared())})()
		synctest.Wait()
		w.create("a/1")
		w.UpdatePod("a/1", "2")
		w.DeletePods("a/1")
		w.create("a/2")
		w.DeletePods("a/2")
		w.create("a/2") // level-triggered: it is there when its turn comes
		synctest.Wait()
		close(busy)
		synctest.Wait()
		require.Equal(w, []string{"upsert a/busy=1", "delete a/1=2", "upsert a/2=1"}, x.told())
	})
}

// A Delete that fails is tried again with the same last state, and not after the object
// is back.
func TestAFailedDeleteIsTriedAgain(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1", "a/2")
		x := target{before: refusing(2, "delete")}
		defer start(&controller.Controller{Resource: x.of(w.shared()), RateLimiter: slowly(time.Minute)})()
		synctest.Wait()
		x.told()
		w.DeletePods("a/1")
		synctest.Wait()
		w.DeletePods("a/2")
		synctest.Wait()
		w.create("a/2")
		time.Sleep(time.Hour)
		require.Equal(w, []string{"delete a/1=1", "delete a/2=1", "upsert a/2=1", "delete a/1=1"}, x.told())
		require.Equal(w, w.has(), x.has())
	})
}

func slowly(delay time.Duration) workqueue.TypedRateLimiter[string] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[string](delay, delay)
}

// S4-04: of a deletion that a list found, Delete is given the object that was last known.
func TestADeletionThatAListFound(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1", "a/2")
		var x target
		defer start(&controller.Controller{Resource: x.of(w.shared())})()
		synctest.Wait()
		x.told()
		w.unseen(func() { w.DeletePods("a/1") })
		time.Sleep(5 * time.Minute)
		require.Contains(w, x.told(), "delete a/1=1")
		require.Equal(w, w.has(), x.has())
	})
}

// tapped is an informer whose handler a test calls, and whose registrations it counts.
type tapped struct {
	cache.SharedIndexInformer
	added, removed atomic.Int32
	handler        atomic.Pointer[cache.ResourceEventHandler]
	returned       atomic.Bool
}

func (i *tapped) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.added.Add(1)
	i.handler.Store(&handler)
	return i.SharedIndexInformer.AddEventHandler(handler)
}

func (i *tapped) RemoveEventHandler(r cache.ResourceEventHandlerRegistration) error {
	i.removed.Add(1)
	return i.SharedIndexInformer.RemoveEventHandler(r)
}

// S4-04: a tombstone may hold nothing; what has no key is dropped, with a line in the log.
func TestOddObjects(t *testing.T) {
	bubble(t, func(w *world) {
		i := &tapped{SharedIndexInformer: w.shared()}
		var x target
		log := newJournal()
		defer start(&controller.Controller{Resource: x.of(i), Log: log})()
		synctest.Wait()
		handler := *i.handler.Load()
		handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "a/gone"})
		handler.OnAdd(42, false)
		handler.OnUpdate(nil, []string{"no", "hash"})
		handler.OnDelete(struct{}{})
		synctest.Wait()
		require.Equal(w, []string{"delete a/gone=nil"}, x.told())
		require.Contains(w, log.String(), "level=DEBUG")
		require.Contains(w, log.String(), "type=int")
		require.NotContains(w, log.String(), "BADKEY")
	})
}

// unreadable is an informer whose store fails a number of times.
type unreadable struct {
	cache.SharedIndexInformer
	times atomic.Int32
}

func (i *unreadable) GetIndexer() cache.Indexer {
	return brokenStore{i.SharedIndexInformer.GetIndexer(), i}
}

type brokenStore struct {
	cache.Indexer
	of *unreadable
}

func (s brokenStore) GetByKey(key string) (interface{}, bool, error) {
	if s.of.times.Add(-1) >= 0 {
		return nil, false, errRefused
	}
	return s.Indexer.GetByKey(key)
}

// A store that cannot be read is a failure, not a deletion.
func TestAStoreThatFails(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1")
		i := &unreadable{SharedIndexInformer: w.shared()}
		i.times.Store(8)
		var x target
		var gone givenUp
		defer start(&controller.Controller{Resource: x.of(i), OnGiveUp: gone.add})()
		time.Sleep(time.Minute)
		require.Empty(w, x.told())
		require.Equal(w, []string{`a/1=nil: Upsert "a/1", attempt 6: reading the store: refused`}, gone.list())
		w.UpdatePod("a/1", "2")
		time.Sleep(time.Minute)
		require.Equal(w, []string{"upsert a/1=2"}, x.told())
	})
}

// S4-09: a resync upserts every object.
func TestResync(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1", "a/2")
		var x target
		i := cache.NewSharedIndexInformer(w.Lister(), &unstructured.Unstructured{}, time.Minute, cache.Indexers{})
		defer start(&controller.Controller{Resource: x.of(i)})()
		synctest.Wait()
		x.told()
		time.Sleep(61 * time.Second)
		require.ElementsMatch(w, []string{"upsert a/1=1", "upsert a/2=1"}, x.told())
	})
}

// The store is ahead of the handler: an object that is not there any more is
// deleted once that is told, with the state that was told.
func TestTheStoreIsAhead(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/busy")
		i := &tapped{SharedIndexInformer: w.shared()}
		busy := make(chan struct{})
		x := target{before: func(string) error {
			<-busy
			return nil
		}}
		defer start(&controller.Controller{Resource: x.of(i)})()
		synctest.Wait()
		handler := *i.handler.Load()
		handler.OnDelete(harness.Object(pods, "a/1", "1"))
		handler.OnAdd(harness.Object(pods, "a/1", "2"), false)
		handler.OnAdd(harness.Object(pods, "a/2", "1"), false)
		close(busy)
		synctest.Wait()
		require.Equal(w, []string{"upsert a/busy=1"}, x.told())
		handler.OnDelete(harness.Object(pods, "a/1", "2"))
		handler.OnDelete(harness.Object(pods, "a/2", "1"))
		synctest.Wait()
		require.Equal(w, []string{"delete a/1=2", "delete a/2=1"}, x.told())
	})
}

// Workers are side by side, and never two for one key.
func TestWorkers(t *testing.T) {
	bubble(t, func(w *world) {
		for n := range 20 {
			w.create(fmt.Sprintf("a/%d", n))
		}
		var mu sync.Mutex
		busy, most := map[string]bool{}, 0
		x := &target{}
		upsert := func(key string, obj interface{}) error {
			mu.Lock()
			require.False(w, busy[key], key)
			busy[key] = true
			most = max(most, len(busy))
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			delete(busy, key)
			mu.Unlock()
			return x.Upsert(key, obj)
		}
		defer start(&controller.Controller{Resource: controller.NewResource(w.shared(), upsert, x.Delete), Workers: 4})()
		for n := range 10 {
			time.Sleep(500 * time.Millisecond)
			for k := range 20 {
				w.UpdatePod(fmt.Sprintf("a/%d", k), fmt.Sprint(n+2))
			}
		}
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		require.Equal(w, 4, most)
		require.Equal(w, w.has(), x.has())
	})
}

// The metrics of workqueue have the queue under the Controller's name.
func TestTheQueueHasMetrics(t *testing.T) {
	bubble(t, func(w *world) {
		var x target
		start(&controller.Controller{Resource: x.of(w.shared()), Name: "pods-of-test"})()
	})
	require.Contains(t, queueNames.list(), "pods-of-test")
}

// queueNames are those of all queues of the test: a process sets its provider once.
var queueNames = &metricNames{}

func init() { workqueue.SetProvider(queueNames) }

type metricNames struct {
	mu    sync.Mutex
	names []string
}

func (m *metricNames) list() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.names
}

type noMetric struct{}

func (noMetric) Inc()            {}
func (noMetric) Dec()            {}
func (noMetric) Set(float64)     {}
func (noMetric) Observe(float64) {}

func (m *metricNames) NewDepthMetric(name string) workqueue.GaugeMetric {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.names = append(m.names, name)
	return noMetric{}
}
func (m *metricNames) NewAddsMetric(string) workqueue.CounterMetric           { return noMetric{} }
func (m *metricNames) NewLatencyMetric(string) workqueue.HistogramMetric      { return noMetric{} }
func (m *metricNames) NewWorkDurationMetric(string) workqueue.HistogramMetric { return noMetric{} }
func (m *metricNames) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric {
	return noMetric{}
}
func (m *metricNames) NewLongestRunningProcessorSecondsMetric(string) workqueue.SettableGaugeMetric {
	return noMetric{}
}
func (m *metricNames) NewRetriesMetric(string) workqueue.CounterMetric { return noMetric{} }
