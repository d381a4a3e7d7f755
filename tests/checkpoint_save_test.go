package tests_test

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
)

// The first list is saved when the handler has returned from the last call of it, and
// not before, however slow it is.
func TestACheckpointIsSavedWhenTheListIsAcknowledged(t *testing.T) {
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeFull, informer.ListModeWatchList} {
		t.Run(mode.String(), func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
				w.create(keys(5)...)
				s := &memoryCheckpoint{}
				r := &recorder{before: func(string) { time.Sleep(time.Second) }}
				i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, ListMode: mode, WatchListPageSize: 2})
				w.run(i)
				time.Sleep(4900 * time.Millisecond)
				synctest.Wait()
				require.Zero(t, s.saves(), "after %v", r.events())
				time.Sleep(200 * time.Millisecond)
				synctest.Wait()
				require.True(t, i.HasSynced())
				require.Equal(t, 1, s.saves())
				w.requireSaved(s)
			})
		})
	}
}

// The list of a set that is empty is saved too.
func TestACheckpointOfNothing(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1")
		w.remove("a/1")
		s, r := &memoryCheckpoint{}, &recorder{}
		i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		stop := w.run(i)
		synctest.Wait()
		w.requireSaved(s)
		stop()
		require.Equal(t, 1, s.saves())
	})
}

// While a BatchHandler fails for some of the first list, no checkpoint says that the
// list is acknowledged: it has no resource version, and a restart lists.
func TestACheckpointWaitsForABatchHandler(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(9)...)
		s := &memoryCheckpoint{}
		var healthy atomic.Bool
		b := &batches{fail: func(batch []string) error {
			if strings.Contains(strings.Join(batch, " "), "a/0004") && !healthy.Load() {
				return errors.New("the database is away")
			}
			return nil
		}}
		i := follow(w, informer.InformerConfig{BatchHandler: b, MaxBatch: 2, Checkpoint: s})
		w.run(i)
		for range 5 {
			time.Sleep(time.Minute)
			synctest.Wait()
			require.False(t, i.HasSynced())
			if content := s.bytes(); content != nil {
				require.Empty(t, readSaved(t, content).resume)
				// The handler may have begun to take it in.
				require.Empty(t, readSaved(t, content).state()["a/0004"])
			}
		}
		before := s.saves()
		healthy.Store(true)
		time.Sleep(31 * time.Second)
		synctest.Wait()
		require.True(t, i.HasSynced())
		require.Equal(t, before+1, s.saves())
		w.requireSaved(s)
	})
}

// Changes are saved when there are enough of them, or when an interval is over; and not
// again if nothing has changed.
func TestACheckpointIsSavedAsChangesAccumulate(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		s, r := &memoryCheckpoint{}, &recorder{}
		i := follow(w, informer.InformerConfig{
			Handler: r, Checkpoint: s, CheckpointChanges: 10, CheckpointInterval: time.Hour,
		})
		w.run(i)
		synctest.Wait()
		s.requireListed(t)
		for n := range 9 {
			w.update("a/0001", fmt.Sprint(n))
			synctest.Wait()
		}
		require.Equal(t, 1, s.saves())
		last := w.ResourceVersion()
		w.remove("a/0002")
		synctest.Wait()
		require.Equal(t, 2, s.saves())
		// It may be saved between the tenth change and the step of the resource version that
		// follows.
		now := readSaved(t, s.bytes())
		require.NotContains(t, now.state(), "a/0002")
		require.Contains(t, []string{last, w.ResourceVersion()}, now.resume)

		w.create("a/new")
		time.Sleep(65 * time.Minute)
		require.Equal(t, 3, s.saves())
		w.requireSaved(s)
		time.Sleep(24 * time.Hour)
		require.Equal(t, 3, s.saves())
	})
}

// The defaults are a minute, and 10,000 changes.
func TestTheDefaultsOfCheckpoints(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(2)...)
		s, r := &memoryCheckpoint{}, &recorder{}
		i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		w.run(i)
		synctest.Wait()
		s.requireListed(t)
		w.update("a/0001", "changed")
		time.Sleep(30 * time.Second)
		require.Equal(t, 1, s.saves())
		time.Sleep(31 * time.Second)
		require.Equal(t, 2, s.saves())
		w.requireSaved(s)
	})
}

// Where others write, and only the resource version moves on, the checkpoint is saved
// once in ten intervals.
func TestACheckpointOfWhichOnlyTheVersionMoved(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(2)...)
		s, r := &memoryCheckpoint{}, &recorder{}
		i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, CheckpointInterval: 2 * time.Minute})
		w.run(i)
		synctest.Wait()
		s.requireListed(t)
		other := func() {
			_, err := w.Create(widgets, object(widgets, "a/"+w.ResourceVersion(), ""))
			require.NoError(t, err)
		}
		for range 18 {
			other()
			time.Sleep(time.Minute)
		}
		require.Equal(t, 1, s.saves())
		for range 4 {
			other()
			time.Sleep(time.Minute)
		}
		require.Equal(t, 2, s.saves())
		require.NotEmpty(t, readSaved(t, s.bytes()).resume)
	})
}

// The end of a Run saves what it has not saved yet, and nothing else.
func TestACheckpointIsSavedAtTheEnd(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		s, r := &memoryCheckpoint{}, &recorder{}
		i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		stop := w.run(i)
		synctest.Wait()
		s.requireListed(t)
		w.update("a/0001", "changed")
		w.remove("a/0002")
		synctest.Wait()
		require.Equal(t, 1, s.saves())
		stop()
		require.Equal(t, 2, s.saves())
		w.requireSaved(s)

		stop = w.run(i)
		synctest.Wait()
		stop()
		require.Equal(t, 2, s.saves(), "nothing has changed")
	})
}

// What the handler has not returned from when Run ends is not in the checkpoint, and
// comes again.
func TestACheckpointHasNotWhatWaits(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		s := &memoryCheckpoint{}
		var slow atomic.Bool
		r := &recorder{before: func(string) {
			if slow.Load() {
				time.Sleep(time.Minute)
			}
		}}
		run := func() (stop func()) {
			return w.run(follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}))
		}
		stop := run()
		synctest.Wait()
		slow.Store(true)
		w.update("a/0000", "changed")
		w.update("a/0001", "changed")
		w.remove("a/0002")
		synctest.Wait()
		stop() // in the first of three calls
		require.Equal(t, []string{"update a/0000"}, r.events()[3:])
		slow.Store(false)
		defer run()()
		synctest.Wait()
		require.Equal(t, []string{"update a/0000", "update a/0001", "delete a/0002"}, r.events()[3:])
		require.Len(t, w.lists(), 1, "asked: %v", w.verbs())
		w.requireState(r)
	})
}

// No more than a twentieth of the time is spent on saving.
func TestASlowSaveIsRare(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		s := &memoryCheckpoint{onSave: func(context.Context, int) error { time.Sleep(10 * time.Second); return nil }}
		r := &recorder{}
		i := follow(w, informer.InformerConfig{
			Handler: r, Checkpoint: s, CheckpointChanges: 1, CheckpointInterval: time.Second,
		})
		stop := w.run(i)
		for n := range 2000 {
			w.update("a/0001", fmt.Sprint(n))
			time.Sleep(time.Second)
		}
		require.LessOrEqual(t, s.saves(), 11)
		require.GreaterOrEqual(t, s.saves(), 9)
		stop()
		w.requireSaved(s)
	})
}

// noVersion checks that a checkpoint has no resource version, and that an informer that goes on
// from it lists, and ends with what the server has.
func (w *world) noVersion(s *memoryCheckpoint, r *recorder) {
	w.t.Helper()
	require.NotNil(w.t, s.bytes())
	require.Empty(w.t, readSaved(w.t, s.bytes()).resume)
	before := len(w.lists())
	stop := w.run(follow(w, informer.InformerConfig{Handler: r, Checkpoint: s.killed()}))
	defer stop()
	time.Sleep(time.Minute)
	require.Greater(w.t, len(w.lists()), before, "asked: %v", w.verbs())
	w.requireState(r)
}

// While a list is under way, no checkpoint has a resource version.
func TestNoVersionWhileAListIsUnderWay(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(6)...)
		s := &memoryCheckpoint{}
		r := &recorder{before: func(string) { time.Sleep(time.Second) }}
		stop := w.run(follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, WatchListPageSize: 2}))
		time.Sleep(2500 * time.Millisecond)
		stop()
		require.Len(t, readSaved(t, s.bytes()).versions, 3)
		w.remove("a/0000")
		w.noVersion(s, r)
	})
}

// The same while the list follows a watch whose version has expired: until it is
// complete, what the checkpoint says of the time before stays.
func TestNoVersionWhileTheNextListIsUnderWay(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(6)...)
		s := &memoryCheckpoint{}
		var slow atomic.Bool
		r := &recorder{before: func(string) {
			if slow.Load() {
				time.Sleep(time.Minute)
			}
		}}
		stop := w.run(follow(w, informer.InformerConfig{
			Handler: r, Checkpoint: s, WatchListPageSize: 2, CheckpointChanges: 1, CheckpointInterval: time.Second,
		}))
		synctest.Wait()
		require.Positive(t, s.saves())
		first := readSaved(t, s.bytes()).resume
		w.blocked.Lock()
		w.CloseClientConnections()
		synctest.Wait()
		for _, key := range keys(6) {
			w.update(key, "changed")
		}
		w.Compact()
		slow.Store(true)
		w.blocked.Unlock()
		time.Sleep(150 * time.Second)
		require.Less(t, len(r.events()), 11)
		// All is acknowledged only up to where it was before.
		require.Contains(t, []string{"", first}, readSaved(t, s.bytes()).resume)
		slow.Store(false)
		stop()
		require.Contains(t, []string{"", first}, readSaved(t, s.bytes()).resume)
		w.run(follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}))
		time.Sleep(time.Minute)
		w.requireState(r)
	})
}

// What could not be read leaves a gap that only a list can close: an event of a watch.
func TestNoVersionAfterAnUnreadableEvent(t *testing.T) {
	var spoil atomic.Bool
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		s, r := &memoryCheckpoint{}, &recorder{}
		transform := func(obj interface{}) (interface{}, error) {
			if spoil.Load() && key(obj) == "a/0001" {
				return nil, errors.New("spoilt")
			}
			return obj, nil
		}
		i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, Transform: transform})
		stop := w.run(i)
		synctest.Wait()
		spoil.Store(true)
		w.update("a/0001", "changed")
		w.update("a/0002", "changed")
		synctest.Wait()
		require.EqualValues(t, 1, i.Status().Skipped)
		stop()
		require.Empty(t, readSaved(t, s.bytes()).resume)

		// It stays so while a list cannot read it either.
		stop = w.run(i)
		time.Sleep(time.Minute)
		stop()
		require.Empty(t, readSaved(t, s.bytes()).resume)

		// And is over with a list that can.
		spoil.Store(false)
		stop = w.run(i)
		time.Sleep(time.Minute)
		w.requireSaved(s)
		w.requireState(r)
		stop()
		before := len(w.lists())
		stop = w.run(i)
		time.Sleep(time.Minute)
		stop()
		require.Len(t, w.lists(), before)
	})
}

// A list with an object whose key is not known is never complete: what is
// acknowledged is saved all the same, without a version.
func TestACheckpointOfAnIncompleteList(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		gone := atomic.Bool{}
		l := tapOn(script{}.lw())
		l.onList = func(context.Context, int, metav1.ListOptions) (runtime.Object, error) {
			if gone.Load() {
				return list("9", "", pod("a/1", "1")), nil
			}
			return list("5", "", pod("a/1", "1"), pod("a/2", "2"), strange("", "3")), nil
		}
		l.onWatch = watches(open())
		s, r := &memoryCheckpoint{}, &recorder{}
		stop := w.run(follow(w, informer.InformerConfig{ListerWatcher: l, Handler: r, Checkpoint: s}))
		time.Sleep(5 * time.Minute)
		left := s.killed()
		again := &recorder{folded: r.state()}
		stop()
		require.Equal(t, map[string]string{"a/1": "1", "a/2": "2"}, again.state())
		require.NotNil(t, left.bytes(), "nothing was saved")
		require.Empty(t, readSaved(t, left.bytes()).resume)

		gone.Store(true)
		w.run(follow(w, informer.InformerConfig{ListerWatcher: l, Handler: again, Checkpoint: left}))
		time.Sleep(5 * time.Minute)
		require.Equal(t, map[string]string{"a/1": "1"}, again.state())
	})
}

// An edit of the Storage by others is a gap too: the informer does not know at which resource
// version it was made.
func TestNoVersionAfterOthersEditedTheStorage(t *testing.T) {
	for name, edit := range map[string]func(t *testing.T, s *informer.ResourceVersionStorage){
		"Delete": func(t *testing.T, s *informer.ResourceVersionStorage) {
			require.NoError(t, s.Delete(pod("a/0001", "")))
		},
		"Add":      func(t *testing.T, s *informer.ResourceVersionStorage) { require.NoError(t, s.Add(pod("a/gone", "2"))) },
		"Replace":  func(t *testing.T, s *informer.ResourceVersionStorage) { require.NoError(t, s.Replace(nil)) },
		"ReadFrom": func(t *testing.T, s *informer.ResourceVersionStorage) { readNothing(t, s) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
				w.create(keys(3)...)
				s, r := &memoryCheckpoint{}, &recorder{}
				storage := informer.NewResourceVersionStorage()
				i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, Storage: storage})
				stop := w.run(i)
				synctest.Wait()
				edit(t, storage)
				w.create("a/new")
				synctest.Wait()
				stop()
				if name == "Add" {
					r.OnAdd(pod("a/gone", "2"), false) // as it says
				}
				w.noVersion(s, r)
			})
		})
	}
}

func readNothing(t *testing.T, s *informer.ResourceVersionStorage) {
	empty := informer.NewResourceVersionStorage()
	_, err := s.ReadFrom(strings.NewReader(string(checkpointOf(t, empty))))
	require.NoError(t, err)
}

// A key that the handler has panicked for is not acknowledged, and neither is what came
// with or after it.
func TestNoVersionWhileAKeyIsPassedOver(t *testing.T) {
	survivePanics(t)
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		s := &memoryCheckpoint{}
		var healthy atomic.Bool
		r := &recorder{before: func(call string) {
			if strings.Contains(call, "a/0001") && !healthy.Load() {
				panic("no")
			}
		}}
		stop := w.run(follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}))
		time.Sleep(time.Hour)
		w.update("a/0002", "changed")
		time.Sleep(time.Hour)
		require.Empty(t, readSaved(t, s.bytes()).resume)
		stop()
		require.Empty(t, readSaved(t, s.bytes()).resume)
		healthy.Store(true)
		w.noVersion(s, r)
	})
}

// The object that a handler panicked for may be gone after a restart: it is told so, for
// the handler may have begun to take it in.
func TestAKeyThatPanickedIsToldAsDeletedAfterARestart(t *testing.T) {
	survivePanics(t)
	for _, compact := range []bool{false, true} {
		t.Run(fmt.Sprintf("compacted=%v", compact), func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
				w.create(keys(2)...)
				s := &memoryCheckpoint{}
				var healthy atomic.Bool
				r := &recorder{before: func(call string) {
					if strings.Contains(call, "bad") && !healthy.Load() {
						panic("no")
					}
				}}
				stop := w.run(follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}))
				synctest.Wait()
				before := w.ResourceVersion()
				w.create("a/bad")
				w.update("a/0001", "changed")
				time.Sleep(time.Hour)
				stop()
				require.Equal(t, before, readSaved(t, s.bytes()).resume, "a watch from there brings it again")

				w.remove("a/bad")
				if compact {
					w.create("a/more")
					w.Compact()
				}
				healthy.Store(true)
				r.forget()
				w.run(follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}))
				time.Sleep(time.Minute)
				require.Contains(t, strings.Join(r.events(), "\n"), "delete a/bad")
				w.requireState(r)
			})
		})
	}
}

// What a handler may have begun to take in when Run ended is in the checkpoint, though
// nothing else has changed since the last one: it may be gone when a list is made.
func TestWhatAHandlerBeganWithIsSavedAtTheEnd(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(2)...)
		s := &memoryCheckpoint{}
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
		stop := w.run(follow(w, informer.InformerConfig{BatchHandler: handler, Checkpoint: s}))
		synctest.Wait()
		before := w.ResourceVersion()
		w.create("a/late")
		synctest.Wait()
		stop()
		require.True(t, taken["a/late"])
		left := readSaved(t, s.bytes())
		require.Equal(t, before, left.resume)
		require.Contains(t, left.versions, "a/late")

		w.remove("a/late")
		w.create("a/other")
		w.Compact()
		w.run(follow(w, informer.InformerConfig{BatchHandler: handler, Checkpoint: s}))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, map[string]bool{"a/0000": true, "a/0001": true, "a/other": true}, taken)
	})
}

// Where the server cannot be reached, nothing moves and nothing is saved.
func TestNothingIsSavedWhileTheServerIsDown(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		s, r := &memoryCheckpoint{}, &recorder{}
		i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		w.run(i)
		synctest.Wait()
		s.requireListed(t)
		w.blocked.Lock()
		w.CloseClientConnections()
		time.Sleep(3 * time.Hour)
		require.Equal(t, 1, s.saves())
		w.blocked.Unlock()
		w.update("a/0001", "changed")
		time.Sleep(2 * time.Minute)
		require.Equal(t, 2, s.saves())
		w.requireSaved(s)
	})
}

// A save that fails is tried again soon, however long the interval is.
func TestASaveThatFailedIsTriedAgainSoon(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		s := &memoryCheckpoint{onSave: func(_ context.Context, n int) error {
			if n <= 3 {
				return errors.New("the disk is full")
			}
			return nil
		}}
		i := follow(w, informer.InformerConfig{Handler: &recorder{}, Checkpoint: s, CheckpointInterval: time.Hour})
		w.run(i)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		require.Equal(t, 4, s.attempts())
		w.requireSaved(s)
		require.NoError(t, i.Status().LastError)
	})
}

// The first checkpoint of a shard is that of the complete list, as it is without a shard.
func TestFirstCheckpointOfShardIsResumable(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(5)...)
		s := &memoryCheckpoint{}
		r := &recorder{before: func(string) { time.Sleep(time.Second) }}
		shard := informer.Shard{Key: informer.ShardByNamespace, Start: 1} // of all but one namespace in 2^64
		w.run(follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, Shard: shard}))
		time.Sleep(4900 * time.Millisecond)
		synctest.Wait()
		require.Zero(t, s.attempts())
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, 1, s.saves())
		require.Equal(t, w.ResourceVersion(), readSaved(t, s.bytes()).resume)
	})
}

// A checkpoint that was saved when a list began has no resource version. However long that took,
// the list is saved as soon as it is acknowledged: a process that is killed before would list
// again.
func TestCompleteListIsSavedWithoutPause(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(5)...)
		s := &memoryCheckpoint{onSave: func(context.Context, int) error { time.Sleep(10 * time.Second); return nil }}
		r := &recorder{before: func(string) { time.Sleep(4 * time.Second) }}
		storage := informer.NewResourceVersionStorage()
		require.NoError(t, storage.Replace(map[string]any{"a/gone": "1"})) // no checkpoint has this key yet
		w.run(follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, Storage: storage}))
		time.Sleep(11 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, s.saves())
		require.Empty(t, readSaved(t, s.bytes()).resume)
		time.Sleep(24 * time.Second) // six calls, and ten seconds for the save
		synctest.Wait()
		require.Equal(t, 2, s.saves())
		require.Equal(t, w.ResourceVersion(), readSaved(t, s.bytes()).resume)
		w.update("a/0001", "changed")
		time.Sleep(180 * time.Second) // after nineteen times ten seconds
		require.Equal(t, 2, s.attempts())
		time.Sleep(30 * time.Second)
		require.Equal(t, 3, s.saves())
	})
}
