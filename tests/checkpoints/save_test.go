package checkpoints_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// The first list is saved when the handler has returned from the last call of it, and
// not before, however slow it is.
func TestACheckpointIsSavedWhenTheListIsAcknowledged(t *testing.T) {
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeFull, informer.ListModeWatchList} {
		harness.BubbleRun(t, mode.String(), informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(5)...)
			s := &harness.MemoryCheckpoint{}
			r := &harness.Recorder{Before: func(string) { time.Sleep(time.Second) }}
			i := harness.Running(w, informer.InformerConfig{Handler: r, Checkpoint: s, ListMode: mode, WatchListPageSize: 2})
			harness.Sleep(4900 * time.Millisecond)
			require.Zero(t, s.Saves(), "after %v", r.Events())
			harness.Sleep(200 * time.Millisecond)
			require.True(t, i.HasSynced())
			require.Equal(t, 1, s.Saves())
			w.RequireSaved(s)
		})
	}
}

// The list of a set that is empty is saved too.
func TestACheckpointOfNothing(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		w.DeletePods("a/1")
		s, r := &harness.MemoryCheckpoint{}, &harness.Recorder{}
		i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		stop := w.Run(i)
		synctest.Wait()
		w.RequireSaved(s)
		stop()
		require.Equal(t, 1, s.Saves())
	})
}

// While a BatchHandler fails for some of the first list, no checkpoint says that the
// list is acknowledged: it has no resource version, and a restart lists.
func TestACheckpointWaitsForABatchHandler(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(9)...)
		s := &harness.MemoryCheckpoint{}
		var healthy atomic.Bool
		b := &harness.Batches{Fail: func(batch []string) error {
			if strings.Contains(strings.Join(batch, " "), "a/0004") && !healthy.Load() {
				return errors.New("the database is away")
			}
			return nil
		}}
		i := harness.Running(w, informer.InformerConfig{BatchHandler: b, MaxBatch: 2, Checkpoint: s})
		for range 5 {
			harness.Sleep(time.Minute)
			require.False(t, i.HasSynced())
			if content := s.Bytes(); content != nil {
				require.Empty(t, harness.ReadSaved(t, content).Resume)
				// The handler may have begun to take it in.
				require.Empty(t, harness.ReadSaved(t, content).State()["a/0004"])
			}
		}
		before := s.Saves()
		healthy.Store(true)
		harness.Sleep(31 * time.Second)
		require.True(t, i.HasSynced())
		require.Equal(t, before+1, s.Saves())
		w.RequireSaved(s)
	})
}

// Changes are saved when there are enough of them, or when an interval is over; and not
// again if nothing has changed.
func TestACheckpointIsSavedAsChangesAccumulate(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s, r := &harness.MemoryCheckpoint{}, &harness.Recorder{}
		harness.Settled(w, informer.InformerConfig{
			Handler: r, Checkpoint: s, CheckpointChanges: 10, CheckpointInterval: time.Hour,
		})
		s.RequireListed(t)
		for n := range 9 {
			w.UpdatePod("a/0001", fmt.Sprint(n))
			synctest.Wait()
		}
		require.Equal(t, 1, s.Saves())
		last := w.ResourceVersion()
		w.DeletePods("a/0002")
		synctest.Wait()
		require.Equal(t, 2, s.Saves())
		// It may be saved between the tenth change and the step of the resource version that
		// follows.
		now := harness.ReadSaved(t, s.Bytes())
		require.NotContains(t, now.State(), "a/0002")
		require.Contains(t, []string{last, w.ResourceVersion()}, now.Resume)

		w.CreatePods("a/new")
		time.Sleep(65 * time.Minute)
		require.Equal(t, 3, s.Saves())
		w.RequireSaved(s)
		time.Sleep(24 * time.Hour)
		require.Equal(t, 3, s.Saves())
	})
}

// The defaults are a minute, and 10,000 changes.
func TestTheDefaultsOfCheckpoints(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(2)...)
		s, r := &harness.MemoryCheckpoint{}, &harness.Recorder{}
		harness.Settled(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		s.RequireListed(t)
		w.UpdatePod("a/0001", "changed")
		time.Sleep(30 * time.Second)
		require.Equal(t, 1, s.Saves())
		time.Sleep(31 * time.Second)
		require.Equal(t, 2, s.Saves())
		w.RequireSaved(s)
	})
}

// Where others write, and only the resource version moves on, the checkpoint is saved
// once in ten intervals.
func TestACheckpointOfWhichOnlyTheVersionMoved(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(2)...)
		s, r := &harness.MemoryCheckpoint{}, &harness.Recorder{}
		harness.Settled(w, informer.InformerConfig{Handler: r, Checkpoint: s, CheckpointInterval: 2 * time.Minute})
		s.RequireListed(t)
		other := func() {
			_, err := w.Create(harness.Widgets, harness.Object(harness.Widgets, "a/"+w.ResourceVersion(), ""))
			require.NoError(t, err)
		}
		for range 18 {
			other()
			time.Sleep(time.Minute)
		}
		require.Equal(t, 1, s.Saves())
		for range 4 {
			other()
			time.Sleep(time.Minute)
		}
		require.Equal(t, 2, s.Saves())
		require.NotEmpty(t, harness.ReadSaved(t, s.Bytes()).Resume)
	})
}

// The end of a Run saves what it has not saved yet, and nothing else.
func TestACheckpointIsSavedAtTheEnd(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s, r := &harness.MemoryCheckpoint{}, &harness.Recorder{}
		i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		stop := w.Run(i)
		synctest.Wait()
		s.RequireListed(t)
		w.UpdatePod("a/0001", "changed")
		w.DeletePods("a/0002")
		synctest.Wait()
		require.Equal(t, 1, s.Saves())
		stop()
		require.Equal(t, 2, s.Saves())
		w.RequireSaved(s)

		stop = w.Run(i)
		synctest.Wait()
		stop()
		require.Equal(t, 2, s.Saves(), "nothing has changed")
	})
}

// What the handler has not returned from when Run ends is not in the checkpoint, and
// comes again.
func TestACheckpointHasNotWhatWaits(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s := &harness.MemoryCheckpoint{}
		var slow atomic.Bool
		r := &harness.Recorder{Before: func(string) {
			if slow.Load() {
				time.Sleep(time.Minute)
			}
		}}
		run := func() (stop func()) {
			return w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}))
		}
		stop := run()
		synctest.Wait()
		slow.Store(true)
		w.UpdatePod("a/0000", "changed")
		w.UpdatePod("a/0001", "changed")
		w.DeletePods("a/0002")
		synctest.Wait()
		stop() // in the first of three calls
		require.Equal(t, []string{"update a/0000"}, r.Events()[3:])
		slow.Store(false)
		defer run()()
		synctest.Wait()
		require.Equal(t, []string{"update a/0000", "update a/0001", "delete a/0002"}, r.Events()[3:])
		require.Len(t, w.Lists(), 1, "asked: %v", w.Verbs())
		w.RequireState(r)
	})
}

// No more than a twentieth of the time is spent on saving.
func TestASlowSaveIsRare(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s := &harness.MemoryCheckpoint{OnSave: func(context.Context, int) error { time.Sleep(10 * time.Second); return nil }}
		r := &harness.Recorder{}
		i := harness.Follow(w, informer.InformerConfig{
			Handler: r, Checkpoint: s, CheckpointChanges: 1, CheckpointInterval: time.Second,
		})
		stop := w.Run(i)
		for n := range 2000 {
			w.UpdatePod("a/0001", fmt.Sprint(n))
			time.Sleep(time.Second)
		}
		require.LessOrEqual(t, s.Saves(), 11)
		require.GreaterOrEqual(t, s.Saves(), 9)
		stop()
		w.RequireSaved(s)
	})
}

// noVersion checks that a checkpoint has no resource version, and that an informer that goes on
// from it lists, and ends with what the server has.
func noVersion(w *harness.World, s *harness.MemoryCheckpoint, r *harness.Recorder) {
	w.T.Helper()
	require.NotNil(w.T, s.Bytes())
	require.Empty(w.T, harness.ReadSaved(w.T, s.Bytes()).Resume)
	before := len(w.Lists())
	stop := w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s.Killed()}))
	defer stop()
	time.Sleep(time.Minute)
	require.Greater(w.T, len(w.Lists()), before, "asked: %v", w.Verbs())
	w.RequireState(r)
}

// While a list is under way, no checkpoint has a resource version.
func TestNoVersionWhileAListIsUnderWay(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(6)...)
		s := &harness.MemoryCheckpoint{}
		r := &harness.Recorder{Before: func(string) { time.Sleep(time.Second) }}
		w.RunFor(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, WatchListPageSize: 2}), 2500*time.Millisecond)
		require.Len(t, harness.ReadSaved(t, s.Bytes()).Versions, 3)
		w.DeletePods("a/0000")
		noVersion(w, s, r)
	})
}

// The same while the list follows a watch whose version has expired: until it is
// complete, what the checkpoint says of the time before stays.
func TestNoVersionWhileTheNextListIsUnderWay(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(6)...)
		s := &harness.MemoryCheckpoint{}
		var slow atomic.Bool
		r := &harness.Recorder{Before: func(string) {
			if slow.Load() {
				time.Sleep(time.Minute)
			}
		}}
		stop := w.Run(harness.Follow(w, informer.InformerConfig{
			Handler: r, Checkpoint: s, WatchListPageSize: 2, CheckpointChanges: 1, CheckpointInterval: time.Second,
		}))
		synctest.Wait()
		require.Positive(t, s.Saves())
		first := harness.ReadSaved(t, s.Bytes()).Resume
		w.Blocked.Lock()
		w.CloseClientConnections()
		synctest.Wait()
		for _, key := range harness.Keys(6) {
			w.UpdatePod(key, "changed")
		}
		w.Compact()
		slow.Store(true)
		w.Blocked.Unlock()
		time.Sleep(150 * time.Second)
		require.Less(t, len(r.Events()), 11)
		// All is acknowledged only up to where it was before.
		require.Contains(t, []string{"", first}, harness.ReadSaved(t, s.Bytes()).Resume)
		slow.Store(false)
		stop()
		require.Contains(t, []string{"", first}, harness.ReadSaved(t, s.Bytes()).Resume)
		w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}))
		time.Sleep(time.Minute)
		w.RequireState(r)
	})
}

// What could not be read leaves a gap that only a list can close: an event of a watch.
func TestNoVersionAfterAnUnreadableEvent(t *testing.T) {
	var spoil atomic.Bool
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s, r := &harness.MemoryCheckpoint{}, &harness.Recorder{}
		transform := func(obj interface{}) (interface{}, error) {
			if spoil.Load() && harness.Key(obj) == "a/0001" {
				return nil, errors.New("spoilt")
			}
			return obj, nil
		}
		i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, Transform: transform})
		stop := w.Run(i)
		synctest.Wait()
		spoil.Store(true)
		w.UpdatePod("a/0001", "changed")
		w.UpdatePod("a/0002", "changed")
		synctest.Wait()
		require.EqualValues(t, 1, i.Status().Skipped)
		stop()
		require.Empty(t, harness.ReadSaved(t, s.Bytes()).Resume)

		// It stays so while a list cannot read it either.
		w.RunFor(i, time.Minute)
		require.Empty(t, harness.ReadSaved(t, s.Bytes()).Resume)

		// And is over with a list that can.
		spoil.Store(false)
		stop = w.Run(i)
		time.Sleep(time.Minute)
		w.RequireSaved(s)
		w.RequireState(r)
		stop()
		before := len(w.Lists())
		w.RunFor(i, time.Minute)
		require.Len(t, w.Lists(), before)
	})
}

// A list with an object whose key is not known is never complete: what is
// acknowledged is saved all the same, without a version.
func TestACheckpointOfAnIncompleteList(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		gone := atomic.Bool{}
		l := harness.TapOn(harness.Script{}.LW())
		l.OnList = func(context.Context, int, metav1.ListOptions) (runtime.Object, error) {
			if gone.Load() {
				return harness.List("9", "", harness.Pod("a/1", "1")), nil
			}
			return harness.List("5", "", harness.Pod("a/1", "1"), harness.Pod("a/2", "2"), strange("", "3")), nil
		}
		l.OnWatch = harness.Watches(harness.Open())
		s, r := &harness.MemoryCheckpoint{}, &harness.Recorder{}
		stop := w.Run(harness.Follow(w, informer.InformerConfig{ListerWatcher: l, Handler: r, Checkpoint: s}))
		time.Sleep(5 * time.Minute)
		left := s.Killed()
		again := &harness.Recorder{Folded: r.State()}
		stop()
		require.Equal(t, map[string]string{"a/1": "1", "a/2": "2"}, again.State())
		require.NotNil(t, left.Bytes(), "nothing was saved")
		require.Empty(t, harness.ReadSaved(t, left.Bytes()).Resume)

		gone.Store(true)
		w.Run(harness.Follow(w, informer.InformerConfig{ListerWatcher: l, Handler: again, Checkpoint: left}))
		time.Sleep(5 * time.Minute)
		require.Equal(t, map[string]string{"a/1": "1"}, again.State())
	})
}

// An edit of the Storage by others is a gap too: the informer does not know at which resource
// version it was made.
func TestNoVersionAfterOthersEditedTheStorage(t *testing.T) {
	for name, edit := range map[string]func(t *testing.T, s *informer.ResourceVersionStorage){
		"Delete": func(t *testing.T, s *informer.ResourceVersionStorage) {
			require.NoError(t, s.Delete(harness.Pod("a/0001", "")))
		},
		"Add": func(t *testing.T, s *informer.ResourceVersionStorage) {
			require.NoError(t, s.Add(harness.Pod("a/gone", "2")))
		},
		"Replace":  func(t *testing.T, s *informer.ResourceVersionStorage) { require.NoError(t, s.Replace(nil)) },
		"ReadFrom": func(t *testing.T, s *informer.ResourceVersionStorage) { readNothing(t, s) },
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(3)...)
			s, r := &harness.MemoryCheckpoint{}, &harness.Recorder{}
			storage := informer.NewResourceVersionStorage()
			i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, Storage: storage})
			stop := w.Run(i)
			synctest.Wait()
			edit(t, storage)
			w.CreatePods("a/new")
			synctest.Wait()
			stop()
			if name == "Add" {
				r.OnAdd(harness.Pod("a/gone", "2"), false) // as it says
			}
			noVersion(w, s, r)
		})
	}
}

func readNothing(t *testing.T, s *informer.ResourceVersionStorage) {
	empty := informer.NewResourceVersionStorage()
	_, err := s.ReadFrom(strings.NewReader(string(checkpointOf(t, empty))))
	require.NoError(t, err)
}

// The object that a handler panicked for may be gone after a restart: it is told so, for
// the handler may have begun to take it in.
func TestAKeyThatPanickedIsToldAsDeletedAfterARestart(t *testing.T) {
	harness.SurvivePanics(t)
	for _, compact := range []bool{false, true} {
		harness.BubbleRun(t, fmt.Sprintf("compacted=%v", compact), informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(2)...)
			s := &harness.MemoryCheckpoint{}
			var healthy atomic.Bool
			r := &harness.Recorder{Before: func(call string) {
				if strings.Contains(call, "bad") && !healthy.Load() {
					panic("no")
				}
			}}
			stop := w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}))
			synctest.Wait()
			w.CreatePods("a/bad")
			w.UpdatePod("a/0001", "changed")
			time.Sleep(time.Hour)
			stop()
			require.Equal(t, w.ResourceVersion(), harness.ReadSaved(t, s.Bytes()).Resume, "it is a dead letter")

			w.DeletePods("a/bad")
			if compact {
				w.CreatePods("a/more")
				w.Compact()
			}
			healthy.Store(true)
			r.Forget()
			w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}))
			time.Sleep(time.Minute)
			require.Contains(t, strings.Join(r.Events(), "\n"), "delete a/bad")
			w.RequireState(r)
		})
	}
}

// What a handler may have begun to take in when Run ended is in the checkpoint, though
// nothing else has changed since the last one: it may be gone when a list is made.
func TestWhatAHandlerBeganWithIsSavedAtTheEnd(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(2)...)
		s := &harness.MemoryCheckpoint{}
		taken := map[string]bool{}
		handler := informer.BatchHandlerFunc(func(ctx context.Context, events []informer.Event) error {
			for _, e := range events {
				if e.Type == informer.Deleted {
					delete(taken, e.Key)
				} else {
					taken[e.Key] = true
				}
				if e.Key == "a/late" && e.Type == informer.Added {
					<-ctx.Done()
					return context.Cause(ctx) // what is done is done
				}
			}
			return nil
		})
		stop := w.Run(harness.Follow(w, informer.InformerConfig{BatchHandler: handler, Checkpoint: s}))
		synctest.Wait()
		before := w.ResourceVersion()
		w.CreatePods("a/late")
		synctest.Wait()
		stop()
		require.True(t, taken["a/late"])
		left := harness.ReadSaved(t, s.Bytes())
		require.Equal(t, before, left.Resume)
		require.Contains(t, left.Versions, "a/late")

		w.DeletePods("a/late")
		w.CreatePods("a/other")
		w.Compact()
		w.Run(harness.Follow(w, informer.InformerConfig{BatchHandler: handler, Checkpoint: s}))
		harness.Sleep(time.Minute)
		require.Equal(t, map[string]bool{"a/0000": true, "a/0001": true, "a/other": true}, taken)
	})
}

// Where the server cannot be reached, nothing moves and nothing is saved.
func TestNothingIsSavedWhileTheServerIsDown(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s, r := &harness.MemoryCheckpoint{}, &harness.Recorder{}
		harness.Settled(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		s.RequireListed(t)
		w.Blocked.Lock()
		w.CloseClientConnections()
		time.Sleep(3 * time.Hour)
		require.Equal(t, 1, s.Saves())
		w.Blocked.Unlock()
		w.UpdatePod("a/0001", "changed")
		time.Sleep(2 * time.Minute)
		require.Equal(t, 2, s.Saves())
		w.RequireSaved(s)
	})
}

// A save that fails is tried again soon, however long the interval is.
func TestASaveThatFailedIsTriedAgainSoon(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s := &harness.MemoryCheckpoint{OnSave: func(_ context.Context, n int) error {
			if n <= 3 {
				return errors.New("the disk is full")
			}
			return nil
		}}
		i := harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{}, Checkpoint: s, CheckpointInterval: time.Hour})
		harness.Sleep(20 * time.Second)
		require.Equal(t, 4, s.Attempts())
		w.RequireSaved(s)
		require.NoError(t, i.Status().LastError)
	})
}

// The first checkpoint of a shard is that of the complete list, as it is without a shard.
func TestFirstCheckpointOfShardIsResumable(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(5)...)
		s := &harness.MemoryCheckpoint{}
		r := &harness.Recorder{Before: func(string) { time.Sleep(time.Second) }}
		shard := informer.Shard{Key: informer.ShardByNamespace, Start: 1} // of all but one namespace in 2^64
		w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, Shard: shard}))
		harness.Sleep(4900 * time.Millisecond)
		require.Zero(t, s.Attempts())
		harness.Sleep(200 * time.Millisecond)
		require.Equal(t, 1, s.Saves())
		require.Equal(t, w.ResourceVersion(), harness.ReadSaved(t, s.Bytes()).Resume)
	})
}

// A redelivery does not wait for the interval: a process that is killed goes on with it.
func TestARedeliveryIsSavedAtOnce(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(2)...)
		s := &harness.MemoryCheckpoint{}
		i := harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{}, Checkpoint: s, CheckpointInterval: time.Hour})
		time.Sleep(time.Minute)
		done := make(chan error)
		go func() {
			done <- i.Redeliver(t.Context(), informer.RedeliverOptions{Keys: []string{"a/0000", "a/0001"}, PerSecond: 1})
		}()
		time.Sleep(time.Second / 2)
		require.NotEmpty(t, harness.ReadSaved(t, s.Bytes()).Metadata["redelivery"])
		require.NoError(t, <-done)
	})
}

// A checkpoint that was saved when a list began has no resource version. However long that took,
// the list is saved as soon as it is acknowledged: a process that is killed before would list
// again.
func TestCompleteListIsSavedWithoutPause(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(5)...)
		s := &harness.MemoryCheckpoint{OnSave: func(context.Context, int) error { time.Sleep(10 * time.Second); return nil }}
		r := &harness.Recorder{Before: func(string) { time.Sleep(4 * time.Second) }}
		storage := informer.NewResourceVersionStorage()
		require.NoError(t, storage.Replace(map[string]any{"a/gone": "1"})) // no checkpoint has this key yet
		w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, Storage: storage}))
		harness.Sleep(11 * time.Second)
		require.Equal(t, 1, s.Saves())
		require.Empty(t, harness.ReadSaved(t, s.Bytes()).Resume)
		time.Sleep(24 * time.Second) // six calls, and ten seconds for the save
		synctest.Wait()
		require.Equal(t, 2, s.Saves())
		require.Equal(t, w.ResourceVersion(), harness.ReadSaved(t, s.Bytes()).Resume)
		w.UpdatePod("a/0001", "changed")
		time.Sleep(180 * time.Second) // after nineteen times ten seconds
		require.Equal(t, 2, s.Attempts())
		time.Sleep(30 * time.Second)
		require.Equal(t, 3, s.Saves())
	})
}
