package checkpoints_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// A checkpoint is past a dead letter, and has the object as it was before. So what the server has of
// such an object says neither that it was restored nor that it is another one: also where nobody may
// ask it which one it is, the next run goes on with a watch.
func TestDeadLetterIsNoSignOfAnotherServer(t *testing.T) {
	for change, do := range map[string]func(w *harness.World){
		"update":   func(w *harness.World) { w.UpdatePod("a/2", "poison") },
		"deletion": func(w *harness.World) { w.DeletePods("a/2") },
		"replacement": func(w *harness.World) {
			w.DeletePods("a/2")
			time.Sleep(time.Minute)
			w.CreatePods("a/2")
		},
	} {
		for _, others := range []string{"", "a/1"} {
			for _, forbidden := range []bool{false, true} {
				for name, s := range stores(t) {
					t.Run(testName(change, others, forbidden, name), func(t *testing.T) {
						var refuses atomic.Bool
						requireWatchAfterDeadLetter(t, s, forbidden, refuses.Load, func(w *harness.World) {
							if others != "" {
								w.CreatePods(others)
							}
							w.CreatePods("a/2")
						}, func(w *harness.World) {
							refuses.Store(true)
							do(w)
						})
					})
				}
			}
		}
	}
}

// A checkpoint that has nothing but a dead letter does not say that the server had no objects.
func TestAllObjectsAreDeadLetters(t *testing.T) {
	for _, forbidden := range []bool{false, true} {
		for name, s := range stores(t) {
			t.Run(testName("creation", "", forbidden, name), func(t *testing.T) {
				requireWatchAfterDeadLetter(t, s, forbidden, always, func(w *harness.World) { w.CreatePods("a/2") }, func(*harness.World) {})
			})
		}
	}
}

func testName(change, others string, forbidden bool, store string) string {
	name := change
	if others != "" {
		name += " beside another object"
	}
	if forbidden {
		name += " where kube-system is forbidden"
	}
	return name + ", " + store
}

// requireWatchAfterDeadLetter runs an informer whose handler refuses a/2 at times, until that is a
// dead letter. Then it requires that the next run goes on with a watch.
func requireWatchAfterDeadLetter(t *testing.T, s informer.CheckpointStore, forbidden bool, refuses func() bool, create, change func(w *harness.World)) {
	t.Helper()
	server := &restorable{forbidden: forbidden}
	harness.Bubble(t, informertest.Options{Wrap: server.wrap}, func(t *testing.T, w *harness.World) {
		server.w = w
		if !forbidden {
			w.CreateKubeSystem()
		}
		create(w)
		b := harness.Batches{Fail: refusingKeys(refuses, "a/2")}
		var f harness.Failures
		config := informer.InformerConfig{BatchHandler: &b, MaxAttempts: 3, Checkpoint: s, ErrorHandler: f.Handle}
		i := harness.Follow(w, config)
		stop := w.Run(i)
		time.Sleep(2 * time.Minute)
		change(w)
		time.Sleep(2 * time.Minute)
		require.Len(t, i.DeadLetters(), 1)
		stop()

		lists := len(w.Lists())
		f = harness.Failures{}
		i = harness.Follow(w, config)
		w.Run(i)
		time.Sleep(time.Minute)
		w.CreatePods("a/3")
		time.Sleep(time.Minute)
		require.True(t, i.HasSynced(), "%v", i.Status().Condition)
		require.Contains(t, b.Events(), "add a/3")
		require.Len(t, i.DeadLetters(), 1)
		require.Len(t, w.Lists(), lists, "the run goes on with a watch")
		require.Empty(t, f.Errors())
	})
}
