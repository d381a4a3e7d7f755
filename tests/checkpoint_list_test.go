package tests_test

import (
	"context"
	"errors"
	"io"
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
)

// refusing is a BatchHandler that takes nothing in while it refuses.
type refusing struct {
	batches
	refuses atomic.Bool
}

func (r *refusing) OnBatch(ctx context.Context, events []informer.Event) error {
	if r.refuses.Load() {
		return errors.New("not now")
	}
	return r.batches.OnBatch(ctx, events)
}

// What a list found and the handler has not acknowledged is before the version that the
// checkpoint could go on from, and a watch from the one before the list may not tell it:
// the checkpoint has no version until it is acknowledged.
func TestNoVersionWhileWhatAListFoundIsNotAcknowledged(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		s, h := &memoryCheckpoint{}, &refusing{}
		storage := informer.NewResourceVersionStorage()
		i := follow(w, informer.InformerConfig{BatchHandler: informer.IgnoreSynced(h), Checkpoint: s, Storage: storage})
		stop := w.run(i)
		synctest.Wait()
		stop()
		require.NotEmpty(t, readSaved(t, s.bytes()).resume)

		// Others have it told again, which only a list does.
		require.NoError(t, storage.Delete(pod("a/0001", "")))
		h.refuses.Store(true)
		h.forget()
		stop = w.run(i)
		time.Sleep(10 * time.Minute)
		stop()
		require.Empty(t, readSaved(t, s.bytes()).resume)

		h.refuses.Store(false)
		w.run(follow(w, informer.InformerConfig{BatchHandler: informer.IgnoreSynced(h), Checkpoint: s}))
		time.Sleep(time.Minute)
		require.Equal(t, []string{"update a/0001"}, h.events(), "the handler may have begun to take it in")
	})
}

// An object that cannot be read while a batch with it is under way, and that the next
// list shows unread for that reason, is a gap after that list too.
func TestNoVersionAfterAnUnreadableObjectInASlowBatch(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		s := &memoryCheckpoint{}
		var slow atomic.Bool
		slow.Store(true)
		h := &batches{fail: func([]string) error {
			if slow.CompareAndSwap(true, false) {
				time.Sleep(20 * time.Second)
			}
			return nil
		}}
		i := follow(w, informer.InformerConfig{
			BatchHandler: h, Checkpoint: s, ExampleObject: nil,
			Transform: func(obj interface{}) (interface{}, error) {
				if key(obj) == "a/0001" {
					return nil, errors.New("spoilt")
				}
				return obj, nil
			},
		})
		stop := w.run(i)
		time.Sleep(time.Second) // the batch is under way
		w.Compact()
		w.update("a/0002", "changed")
		w.CloseClientConnections()
		time.Sleep(5 * time.Minute)
		stop()
		require.Empty(t, readSaved(t, s.bytes()).resume)
	})
}

// A server that was down, and then cannot say which cluster it is of for a moment, is
// asked again: connections that failed do not count as answers.
func TestAClusterRebuiltWhileDown(t *testing.T) {
	var down, once atomic.Bool
	wrap := before(func(rw http.ResponseWriter, r *http.Request) bool {
		switch {
		case down.Load():
			panic(http.ErrAbortHandler)
		case strings.HasSuffix(r.URL.Path, "/kube-system") && once.CompareAndSwap(true, false):
			failWith(rw, http.StatusServiceUnavailable, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":503}`)
			return false
		}
		return true
	})
	bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *world) {
		w.createKubeSystem()
		w.create(keys(3)...)
		s := w.lived(&recorder{})
		require.NoError(t, w.Delete(namespaces, "", "kube-system"))
		w.createKubeSystem() // it is another one
		var f failures
		r := &recorder{}
		down.Store(true)
		w.run(follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, ErrorHandler: f.handle}))
		time.Sleep(10 * time.Minute)
		once.Store(true)
		down.Store(false)
		time.Sleep(5 * time.Minute)
		errs, _ := f.all()
		require.ErrorIs(t, errs[len(errs)-1], informer.ErrCheckpointSource)
		require.Empty(t, r.events())
	})
}

// An informer that has refused a checkpoint does not keep its owner from it.
func TestARefusedCheckpointIsNotLocked(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		path := filepath.Join(t.TempDir(), "pods")
		r := &recorder{}
		run := func(lw bool) (stop func()) {
			config := informer.InformerConfig{Handler: r, Checkpoint: informer.FileCheckpoint(path)}
			if !lw {
				config.ListerWatcher, config.Handler = w.factory().ForResource("other", pods), &recorder{}
			}
			return w.run(follow(w, config))
		}
		stop := run(true)
		synctest.Wait()
		stop()
		run(false)
		synctest.Wait()
		w.update("a/0001", "changed")
		r.forget()
		w.ResetRequests()
		run(true)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"update a/0001"}, r.events())
	})
}

// A store that fails when an informer starts is asked a few times: to begin with nothing
// would lose every deletion.
func TestAStoreThatFailsToLoadForAMoment(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		r := &recorder{}
		s := w.lived(r)
		w.remove("a/0001")
		failing := &failingLoads{memoryCheckpoint: &memoryCheckpoint{content: s.bytes()}}
		w.run(follow(w, informer.InformerConfig{Handler: r, Checkpoint: failing}))
		time.Sleep(5 * time.Minute)
		require.EqualValues(t, 4, failing.loads.Load())
		require.Equal(t, []string{"delete a/0001"}, r.events())
		require.Empty(t, w.lists())
	})
}

// failingLoads fails three times.
type failingLoads struct {
	*memoryCheckpoint
	loads atomic.Int32
}

func (s *failingLoads) Load(ctx context.Context) (io.ReadCloser, error) {
	if s.loads.Add(1) <= 3 {
		return nil, errors.New("database is locked")
	}
	return s.memoryCheckpoint.Load(ctx)
}
