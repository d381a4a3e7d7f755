package status_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
	"github.com/rvinformer/informer/tests/harness"
)

// An informer whose handler is blocked when its context ends is Stopping until Run returns. The log
// says what Run waits for.
func TestStoppingInformerSaysWhatItWaitsFor(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		release, log := make(chan struct{}), newLogbook()
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: w.Lister(), Workers: 2,
			Handler: informer.ResourceEventHandlerFuncs{AddFunc: func(interface{}) { <-release }},
		})
		stop := harness.Start(func(ctx context.Context) { i.RunWithContext(klog.NewContext(ctx, log.Logger)) })
		time.Sleep(time.Minute)
		require.Equal(t, informer.ReasonHandlerSlow, i.Status().Condition.Reason)

		ending := time.Now()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			stop()
		}()
		synctest.Wait()
		requireStopping(t, i.Status(), ending, "the handler, which has ", " and 1 more keys")
		require.NotEqual(t, informer.PhaseStopped, i.Status().Phase)
		time.Sleep(35 * time.Second)
		requireStopping(t, i.Status(), ending, "the handler, which has ", " and 1 more keys")

		close(release)
		<-ended
		require.Equal(t, informer.ReasonStopped, i.Status().Condition.Reason)
		require.Equal(t, informer.PhaseStopped, i.Status().Phase)
		var lines []string
		for _, e := range log.entries() {
			lines = append(lines, e.message+" "+e.values["for"])
		}
		require.Equal(t, []string{
			lineHeldUp + " 10s", lineEnds + " 10s", lineEnds + " 20s", lineEnds + " 30s", lineEnded + " ",
		}, lines)
		require.Contains(t, log.entries()[1].values["waitsFor"], "the handler, which has ")
		require.Equal(t, []string{"HandlerSlow 1m35s"}, log.outages(t))
	})
}

// An object cache waits for its handlers in the same way.
func TestStoppingObjectCacheSaysWhatItWaitsFor(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		release, log := make(chan struct{}), newLogbook()
		i := objectcache.NewSharedIndexInformerWithOptions(w.Lister(), &unstructured.Unstructured{}, objectcache.Options{Name: "pods"})
		_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(interface{}) { <-release }})
		require.NoError(t, err)
		stop := harness.Start(func(ctx context.Context) { i.RunWithContext(klog.NewContext(ctx, log.Logger)) })
		time.Sleep(time.Second)
		ending, ended := time.Now(), make(chan struct{})
		go func() {
			defer close(ended)
			stop()
		}()
		time.Sleep(15 * time.Second)
		requireStopping(t, i.Status(), ending, "a handler")
		close(release)
		<-ended
		require.Equal(t, informer.ReasonStopped, i.Status().Condition.Reason)
		require.True(t, slices.ContainsFunc(log.entries(), func(e entry) bool { return e.message == lineEnds && e.values["for"] == "10s" }))
	})
}

// An informer that ends at once says nothing.
func TestInformerThatEndsAtOnceLogsNoEnd(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		log := newLogbook()
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: w.Lister(), Checkpoint: &harness.MemoryCheckpoint{}, Handler: informer.ResourceEventHandlerFuncs{},
		})
		stop := harness.Start(func(ctx context.Context) { i.RunWithContext(klog.NewContext(ctx, log.Logger)) })
		time.Sleep(time.Minute)
		stop()
		require.Empty(t, log.entries())
		require.Equal(t, informer.ReasonStopped, i.Status().Condition.Reason)
	})
}

func requireStopping(t *testing.T, s informer.Status, since time.Time, words ...string) {
	t.Helper()
	require.Equal(t, informer.ReasonStopping, s.Condition.Reason)
	require.WithinDuration(t, since, s.Condition.Since, time.Second)
	for _, text := range words {
		require.Contains(t, s.Condition.Message, text)
	}
}
