package metrics_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/metrics"
	"github.com/rvinformer/informer/tests/harness"
)

// counters returns the series that only grow.
func counters(all map[string]float64) map[string]float64 {
	grow := map[string]float64{}
	for series, v := range all {
		if name, _, _ := strings.Cut(series, "{"); strings.HasSuffix(name, "_total") || strings.HasSuffix(name, "_latency_seconds") || strings.HasSuffix(name, "_size_events") {
			grow[series] = v
		}
	}
	return grow
}

// requireNoneLess requires that all counters of before are there, and none is less.
func requireNoneLess(t *testing.T, before, after map[string]float64) {
	t.Helper()
	require.NotEmpty(t, counters(before))
	for series, v := range counters(before) {
		require.Contains(t, after, series)
		require.GreaterOrEqual(t, after[series], v, series)
	}
}

const callsOfMirror = "rvinformer_handler_calls_total{cluster=east,group=,informer=mirror,resource=pods,version=v1}"

func TestCountersStayWhenOneOfSeveralInformersIsRemoved(t *testing.T) {
	c := metrics.NewCollector()
	first := busy
	removeFirst := c.Add(podLabels, &first)
	second := busy
	second.Skipped, second.Stale, second.Counts.HandlerCalls = 1, 1, 3
	removeSecond := c.Add(podLabels, &second)
	c.Add(metrics.Labels{Informer: "other"}, busy)
	before := gathered(t, c)
	require.InDelta(t, 11, before[callsOfMirror], 0)

	removeFirst()
	second.Counts.HandlerCalls++
	after := gathered(t, c)
	requireNoneLess(t, before, after)
	require.InDelta(t, 12, after[callsOfMirror], 0, "no more than the one call is added")
	require.InDelta(t, 7, after["rvinformer_objects{cluster=east,group=,informer=mirror,resource=pods,version=v1}"], 0, "what is there now")
	require.Equal(t, after[callsOfMirror], gathered(t, c)[callsOfMirror])

	third := busy
	third.Counts = informer.Counts{}
	removeThird := c.Add(podLabels, &third)
	removeSecond()
	third.Counts.HandlerCalls = 1
	last := gathered(t, c)
	requireNoneLess(t, after, last)
	require.InDelta(t, 13, last[callsOfMirror], 0)

	removeThird()
	require.NotContains(t, gathered(t, c), callsOfMirror)
	c.Add(podLabels, &third)
	require.InDelta(t, 1, gathered(t, c)[callsOfMirror], 0, "a series that has vanished begins at zero")
}

func TestCheckpointSavesAreShownIfAnyInformerHasACheckpoint(t *testing.T) {
	for range 20 { // in whatever order they are read
		c := metrics.NewCollector()
		c.Add(podLabels, busy)
		c.Add(podLabels, state{})
		require.Contains(t, gathered(t, c), "rvinformer_checkpoint_saves_total{cluster=east,group=,informer=mirror,resource=pods,version=v1}")
	}
}

// Informers of several namespaces have equal labels.
func TestCountersStayWhenOneOfSeveralInformersOfAFactoryEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := metrics.NewCollector(), factory.New()
		defer f.Shutdown()
		c.AddFactory(f)
		run := func(namespace string) (end func()) {
			lease, err := f.AcquireResourceVersion(schema.GroupVersionResource{Version: "v1", Resource: "pods"}, factory.InformerOptions{Cluster: "east", Namespace: namespace}, func() informer.ResourceVersionInformer {
				return informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: podsOf(namespace, 5), Handler: informer.ResourceEventHandlerFuncs{}})
			})
			require.NoError(t, err)
			require.NoError(t, lease.Start())
			<-lease.Informer.HasSyncedChecker().Done()
			synctest.Wait()
			return func() { <-lease.Release() }
		}
		end := run("a")
		run("b")
		before := gathered(t, c)
		const latency = "rvinformer_processing_latency_seconds{cluster=east,group=,informer=resource-version,resource=pods,version=v1}"
		require.InDelta(t, 10, before[latency], 0)
		end()
		after := gathered(t, c)
		requireNoneLess(t, before, after)
		require.InDelta(t, 10, after[latency], 0)
		end = run("a") // the next of its key
		again := gathered(t, c)
		requireNoneLess(t, after, again)
		require.InDelta(t, 15, again[latency], 0)
		end()
		requireNoneLess(t, again, gathered(t, c))
	})
}

func TestCountersStayWhenAHandlerOfASharedInformerIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := metrics.NewCollector()
		s := informer.NewSharedResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: podsOf("a", 5)})
		h, err := s.AddEventHandler(informer.ResourceEventHandlerFuncs{})
		require.NoError(t, err)
		hold := make(chan struct{})
		slow, err := s.AddEventHandler(informer.ResourceEventHandlerFuncs{AddFunc: func(interface{}) { <-hold }})
		require.NoError(t, err)
		c.Add(podLabels, s)
		defer harness.Settle(s.RunWithContext)()
		before := gathered(t, c)
		require.InDelta(t, 6, before[callsOfMirror], 0)
		<-s.RemoveHandler(h)
		requireNoneLess(t, before, gathered(t, c))
		ended := s.RemoveHandler(slow)
		requireNoneLess(t, before, gathered(t, c))
		close(hold)
		<-ended
		requireNoneLess(t, before, gathered(t, c))
	})
}

// podsOf has some pods in a namespace, which do not change.
func podsOf(namespace string, n int) cache.ListerWatcher {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "70"}}
	for i := range n {
		list.Items = append(list.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint(i), ResourceVersion: fmt.Sprint(i + 1), CreationTimestamp: metav1.NewTime(time.Now())}})
	}
	return &cache.ListWatch{
		ListFunc:  func(metav1.ListOptions) (runtime.Object, error) { return list.DeepCopy(), nil },
		WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}
}
