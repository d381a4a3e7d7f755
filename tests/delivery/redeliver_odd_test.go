package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// An answer that shows nothing, in a version that is missing, without an order, or older, ends nothing
// of what is delivered again: neither an object that the handler has refused, nor the redelivery.
func TestRedeliverWaitsWhileAnswersAreOdd(t *testing.T) {
	for _, version := range []string{"", "0", "v-1", "3"} {
		for name, o := range map[string]informer.RedeliverOptions{"all": {}, "keys": {Keys: []string{"a/0001", "a/0002"}}} {
			var odd harness.OtherAnswer
			harness.BubbleRun(t, fmt.Sprintf("%s/%q", name, version), informertest.Options{Wrap: odd.Wrap}, func(t *testing.T, w *harness.World) {
				w.CreateKubeSystem()
				w.CreatePods(harness.Keys(3)...)
				var b harness.Batches
				var refuses atomic.Bool
				refuses.Store(true)
				i := harness.Running(w, informer.InformerConfig{MaxBatch: 1, MaxAttempts: 2, BatchHandler: informer.BatchHandlerFunc(func(ctx context.Context, events []informer.Event) error {
					if refuses.Load() && events[0].Key == "a/0002" {
						return errors.New("refused")
					}
					return b.OnBatch(ctx, events)
				})})
				require.Eventually(t, func() bool { return i.Status().DeadLetters > 0 && i.HasSynced() }, time.Hour, time.Second)
				refuses.Store(false)
				b.Forget()
				odd.Set(fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":%q},"items":[]}`, version))
				done := make(chan error, 1)
				go func() { done <- i.Redeliver(t.Context(), o) }()
				time.Sleep(30 * time.Second)
				require.NotNil(t, i.Status().Redelivery)
				require.ErrorContains(t, i.Status().Redelivery.Err, "does not show what is known")
				odd.Set("")
				time.Sleep(2 * time.Minute)
				require.NoError(t, <-done)
				want := []string{"update a/0001", "add a/0002"}
				if len(o.Keys) == 0 {
					want = append(want, "update a/0000")
				}
				require.ElementsMatch(t, want, b.Events())
			})
		}
	}
}

// A redelivery waits for the version of an object that the watch brings later, and not for that of the
// list, to which a quiet watch without bookmarks does not come. Where versions have several changes, no
// more of that one may come either.
func TestRedeliverOfWhatTheWatchBringsLater(t *testing.T) {
	item := func(rv int) string { return harness.ItemJSON("a", "u1", rv, "") }
	for name, o := range map[string]informer.RedeliverOptions{"all": {}, "keys": {Keys: []string{"d/a"}}} {
		for _, shared := range []bool{false, true} {
			var told harness.Told
			harness.BubbleRun(t, fmt.Sprintf("%s, shared=%t", name, shared), informertest.Options{Wrap: told.Wrap}, func(t *testing.T, w *harness.World) {
				told.List(item(100))
				var r harness.Recorder
				i := harness.Running(w, informer.InformerConfig{Handler: &r})
				time.Sleep(time.Second)
				if shared {
					for _, key := range []string{"b", "c"} {
						told.Send("ADDED", harness.ItemJSON(key, key, 1200, ""))
					}
					for _, key := range []string{"b", "c"} {
						told.Send("DELETED", harness.ItemJSON(key, key, 1300, ""))
					}
					time.Sleep(time.Second)
				}
				r.Forget()
				told.List(item(1500))
				done := make(chan error, 1)
				go func() { done <- i.Redeliver(t.Context(), o) }()
				time.Sleep(time.Second)
				told.Send("MODIFIED", item(1500))
				time.Sleep(time.Minute)
				require.Nil(t, i.Status().Redelivery)
				require.NoError(t, <-done)
				require.Equal(t, []string{"update d/a"}, r.Events())
			})
		}
	}
}

// The handler has refused an object, and the watch is behind the server. An answer that does not show the
// object, in no version, says nothing of what the watch still brings: the deletion comes after that.
func TestRedeliverOfAnEndWithoutAVersion(t *testing.T) {
	for name, o := range map[string]informer.RedeliverOptions{"all": {}, "keys": {Keys: []string{"d/a"}}} {
		bubbleWithARefusal(t, name, func(t *testing.T, told *harness.Told, i informer.ResourceVersionInformer, b *harness.Batches) {
			require.NoError(t, i.Redeliver(t.Context(), o))
			time.Sleep(time.Second)
			require.Empty(t, b.Events())
			told.Send("MODIFIED", harness.ItemJSON("a", "u1", 191, ""))
			told.Send("DELETED", harness.ItemJSON("a", "u1", 278, ""))
			time.Sleep(time.Second)
			require.Equal(t, []string{"add d/a", "delete d/a"}, b.Events())
		})
	}
}

// What was deleted between two watches, so that none brings it, a list ends.
func TestListAfterARedeliverOfAnEndWithoutAVersion(t *testing.T) {
	bubbleWithARefusal(t, "", func(t *testing.T, told *harness.Told, i informer.ResourceVersionInformer, b *harness.Batches) {
		require.NoError(t, i.Redeliver(t.Context(), informer.RedeliverOptions{}))
		told.Relist()
		require.Equal(t, []string{"delete d/a unknown"}, b.Events())
		require.Zero(t, i.Status().DeadLetters)
	})
}

// bubbleWithARefusal runs f in a bubble, with an informer whose lists have no version and no objects. Its
// handler has refused the object d/a, which the watch has brought, and accepts everything from now on.
func bubbleWithARefusal(t *testing.T, name string, f func(*testing.T, *harness.Told, informer.ResourceVersionInformer, *harness.Batches)) {
	var told harness.Told
	harness.BubbleRun(t, name, informertest.Options{Wrap: told.Wrap}, func(t *testing.T, w *harness.World) {
		told.Bare()
		told.List()
		var b harness.Batches
		var accepts atomic.Bool
		i := harness.Running(w, informer.InformerConfig{MaxAttempts: 1, BatchHandler: informer.BatchHandlerFunc(func(ctx context.Context, events []informer.Event) error {
			if !accepts.Load() && events[0].Key != "" {
				return errors.New("refused")
			}
			return b.OnBatch(ctx, events)
		})})
		time.Sleep(time.Second)
		told.Send("ADDED", harness.ItemJSON("a", "u1", 100, ""))
		require.Eventually(t, func() bool { return i.Status().DeadLetters > 0 }, time.Hour, time.Second)
		accepts.Store(true)
		b.Forget()
		f(t, &told, i, &b)
	})
}
