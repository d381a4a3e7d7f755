package checkpoints_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// refusing is a BatchHandler that takes nothing in while it refuses.
type refusing struct {
	harness.Batches
	refuses atomic.Bool
}

func (r *refusing) OnBatch(ctx context.Context, events []informer.Event) error {
	if r.refuses.Load() {
		return errors.New("not now")
	}
	return r.Batches.OnBatch(ctx, events)
}

// What a list found and the handler has not acknowledged is before the version that the
// checkpoint could go on from, and a watch from the one before the list may not tell it:
// the checkpoint has no version until it is acknowledged.
func TestNoVersionWhileWhatAListFoundIsNotAcknowledged(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s, h := &harness.MemoryCheckpoint{}, &refusing{}
		storage := informer.NewResourceVersionStorage()
		i := harness.Follow(w, informer.InformerConfig{BatchHandler: informer.IgnoreSynced(h), Checkpoint: s, Storage: storage})
		stop := w.Run(i)
		synctest.Wait()
		stop()
		require.NotEmpty(t, harness.ReadSaved(t, s.Bytes()).Resume)

		// Others have it told again, which only a list does.
		require.NoError(t, storage.Delete(harness.Pod("a/0001", "")))
		h.refuses.Store(true)
		h.Forget()
		w.RunFor(i, 10*time.Minute)
		require.Empty(t, harness.ReadSaved(t, s.Bytes()).Resume)

		h.refuses.Store(false)
		w.Run(harness.Follow(w, informer.InformerConfig{BatchHandler: informer.IgnoreSynced(h), Checkpoint: s}))
		time.Sleep(time.Minute)
		require.Equal(t, []string{"update a/0001"}, h.Events(), "the handler may have begun to take it in")
	})
}

// An object that cannot be read while a batch with it is under way, and that the next
// list shows unread for that reason, is a gap after that list too.
func TestNoVersionAfterAnUnreadableObjectInASlowBatch(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s := &harness.MemoryCheckpoint{}
		var slow atomic.Bool
		slow.Store(true)
		h := &harness.Batches{Fail: func([]string) error {
			if slow.CompareAndSwap(true, false) {
				time.Sleep(20 * time.Second)
			}
			return nil
		}}
		i := harness.Follow(w, informer.InformerConfig{
			BatchHandler: h, Checkpoint: s, ExampleObject: nil,
			Transform: func(obj interface{}) (interface{}, error) {
				if harness.Key(obj) == "a/0001" {
					return nil, errors.New("spoilt")
				}
				return obj, nil
			},
		})
		stop := w.Run(i)
		time.Sleep(time.Second) // the batch is under way
		w.Compact()
		w.UpdatePod("a/0002", "changed")
		w.CloseClientConnections()
		time.Sleep(5 * time.Minute)
		stop()
		require.Empty(t, harness.ReadSaved(t, s.Bytes()).Resume)
	})
}

// A server that was down, and then cannot say which cluster it is of for a moment, is
// asked again: connections that failed do not count as answers.
func TestAClusterRebuiltWhileDown(t *testing.T) {
	var down, once atomic.Bool
	wrap := harness.Before(func(rw http.ResponseWriter, r *http.Request) bool {
		switch {
		case down.Load():
			panic(http.ErrAbortHandler)
		case strings.HasSuffix(r.URL.Path, "/kube-system") && once.CompareAndSwap(true, false):
			harness.FailWith(rw, http.StatusServiceUnavailable, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":503}`)
			return false
		}
		return true
	})
	harness.Bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *harness.World) {
		w.CreateKubeSystem()
		w.CreatePods(harness.Keys(3)...)
		s := w.Lived(&harness.Recorder{})
		require.NoError(t, w.Delete(harness.Namespaces, "", "kube-system"))
		w.CreateKubeSystem() // it is another one
		var f harness.Failures
		r := &harness.Recorder{}
		down.Store(true)
		w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, ErrorHandler: f.Handle}))
		time.Sleep(10 * time.Minute)
		once.Store(true)
		down.Store(false)
		time.Sleep(5 * time.Minute)
		errs := f.Errors()
		require.ErrorIs(t, errs[len(errs)-1], informer.ErrCheckpointSource)
		require.Empty(t, r.Events())
	})
}

// An informer that has refused a checkpoint does not keep its owner from it.
func TestARefusedCheckpointIsNotLocked(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		path := filepath.Join(t.TempDir(), "pods")
		r := &harness.Recorder{}
		run := func(lw bool) (stop func()) {
			config := informer.InformerConfig{Handler: r, Checkpoint: informer.FileCheckpoint(path)}
			if !lw {
				config.ListerWatcher, config.Handler = w.Factory().ForResource("other", harness.Pods), &harness.Recorder{}
			}
			return w.Run(harness.Follow(w, config))
		}
		stop := run(true)
		synctest.Wait()
		stop()
		run(false)
		synctest.Wait()
		w.UpdatePod("a/0001", "changed")
		r.Forget()
		w.ResetRequests()
		run(true)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"update a/0001"}, r.Events())
	})
}
