package checkpoints_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
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

// stores are the kinds of checkpoint stores: one that takes a journal, and one that does not.
func stores(t *testing.T) map[string]informer.CheckpointStore {
	return map[string]informer.CheckpointStore{
		"journal":    informer.FileCheckpoint(filepath.Join(t.TempDir(), "pods")),
		"no journal": &harness.MemoryCheckpoint{},
	}
}

// Dead letters are known after a restart, whether or not the store takes a journal. What is dead is
// not handed over again, although the checkpoint is past it, until it changes or is listed.
func TestDeadLettersAreKnownAfterARestart(t *testing.T) {
	for _, end := range []string{"change", "deletion", "list"} {
		for name, s := range stores(t) {
			harness.BubbleRun(t, end+", "+name, informertest.Options{}, func(t *testing.T, w *harness.World) {
				w.CreatePods("a/1", "a/2", "a/3")
				var healthy atomic.Bool
				b := harness.Batches{Fail: func(batch []string) error {
					for n, event := range batch {
						if strings.Contains(event, "a/2") && !healthy.Load() {
							return informer.FailedEvents{{Index: n, Err: errors.New("the row is refused")}}
						}
					}
					return nil
				}}
				config := informer.InformerConfig{BatchHandler: &b, MaxAttempts: 3, Checkpoint: s}
				i := harness.Follow(w, config)
				stop := w.Run(i)
				time.Sleep(time.Minute)
				w.UpdatePod("a/1", "changed")
				time.Sleep(time.Minute)
				before := i.DeadLetters()
				require.Len(t, before, 1)
				stop()

				healthy.Store(true)
				for range 3 { // the checkpoint of a run that has nothing to do has them too
					b.Forget()
					i = harness.Follow(w, config)
					stop = w.Run(i)
					time.Sleep(time.Hour)
					require.True(t, i.HasSynced())
					require.Empty(t, b.Events())
					after := i.DeadLetters()
					require.WithinDuration(t, before[0].Since, after[0].Since, 0)
					after[0].Since = before[0].Since
					require.Equal(t, before, after)
					require.Equal(t, informer.ReasonDeadLetters, i.Status().Condition.Reason)
					require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion)
					stop()
				}
				require.Len(t, w.Lists(), 1, "each run goes on with a watch")

				i = harness.Follow(w, config)
				defer w.Run(i)()
				synctest.Wait()
				switch end {
				case "change":
					w.UpdatePod("a/2", "changed")
				case "deletion":
					w.DeletePods("a/2")
				case "list":
					w.Relist()
				}
				time.Sleep(time.Minute)
				w.RequireState(&b.Recorder)
				require.Empty(t, i.DeadLetters())
				if end == "deletion" {
					require.Contains(t, b.Events(), "delete a/2", "the handler may have begun to take it in")
				}
			})
		}
	}
}

// A Storage that is filled from the handler's data stays as it is, and the dead letters of the
// checkpoint come to it. Where the data have one of them, the two do not fit: all is listed.
func TestDeadLettersBesideAStorage(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2", "a/3")
		refuses := true
		b := harness.Batches{Fail: func(batch []string) error {
			if refuses && strings.Contains(strings.Join(batch, " "), "a/2") {
				return errors.New("refused")
			}
			return nil
		}}
		s := &harness.MemoryCheckpoint{}
		i := harness.Follow(w, informer.InformerConfig{BatchHandler: &b, MaxAttempts: 1, MaxBatch: 1, Checkpoint: s})
		stop := w.Run(i)
		time.Sleep(time.Second)
		w.UpdatePod("a/1", "changed")
		time.Sleep(time.Minute)
		require.Len(t, i.DeadLetters(), 1)
		stop()
		refuses = false
		for _, has := range []bool{false, true} {
			storage := informer.NewResourceVersionStorage()
			versions := w.Versions()
			all := map[string]interface{}{}
			for key, version := range versions {
				if key != "a/2" || has {
					all[key] = version
				}
			}
			require.NoError(t, storage.Replace(all))
			i = harness.Follow(w, informer.InformerConfig{BatchHandler: &b, MaxAttempts: 1, Storage: storage, Checkpoint: s.Killed()})
			stop = w.Run(i)
			time.Sleep(time.Minute)
			if has { // which the checkpoint does not know
				require.Empty(t, i.DeadLetters())
			} else {
				require.Len(t, i.DeadLetters(), 1)
				require.Len(t, w.Lists(), 1)
			}
			stop()
		}
	})
}

// A process that is killed after an event has become a dead letter leaves that known, if its store
// takes a journal. Killed at any other moment, or with another store, the event comes again.
func TestDeadLettersAfterAKillAtAnyMoment(t *testing.T) {
	for at := time.Duration(0); at < 3*time.Second; at += 50 * time.Millisecond {
		path := filepath.Join(t.TempDir(), "pods")
		killedWithADeadLetter(t, at, informer.FileCheckpoint(path), func() informer.CheckpointStore {
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path+".left", content, 0o600))
			return informer.FileCheckpoint(path + ".left")
		})
		s := &harness.MemoryCheckpoint{}
		killedWithADeadLetter(t, at, s, func() informer.CheckpointStore { return s.Killed() })
	}
}

// killedWithADeadLetter has a process that uses a store leave what it has after a time.
func killedWithADeadLetter(t *testing.T, at time.Duration, s informer.CheckpointStore, left func() informer.CheckpointStore) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2", "a/3")
		b := harness.Batches{Fail: func(batch []string) error {
			for n, event := range batch {
				if strings.Contains(event, "a/2") {
					return informer.FailedEvents{{Index: n, Err: errors.New("the row is refused")}}
				}
			}
			return nil
		}}
		config := informer.InformerConfig{BatchHandler: &b, MaxAttempts: 4, Checkpoint: s, CheckpointInterval: 100 * time.Millisecond}
		i := harness.Follow(w, config)
		stop := w.Run(i)
		harness.Sleep(at)
		known := len(i.DeadLetters())
		config.Checkpoint = left()
		stop()

		i = harness.Follow(w, config)
		defer w.Run(i)()
		if _, journal := s.(informer.CheckpointAppender); journal {
			synctest.Wait()
			require.GreaterOrEqual(t, len(i.DeadLetters()), known, "at %v", at)
		}
		time.Sleep(time.Minute)
		require.Len(t, i.DeadLetters(), 1, "at %v", at)
		require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion)
		require.Len(t, b.State(), 2)
	})
}

// An informer of a shard that begins with the checkpoint of the whole set lists if that has dead
// letters: what a letter is about may be another object than what has come in its place.
func TestDeadLettersOfAWiderShard(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(20)...)
		var refuses atomic.Bool
		b := harness.Batches{Fail: func(batch []string) error {
			if !refuses.Load() {
				return nil
			}
			var failed informer.FailedEvents
			for n := range batch {
				failed = append(failed, informer.FailedEvent{Index: n})
			}
			return failed
		}}
		s := &harness.MemoryCheckpoint{}
		i := harness.Follow(w, informer.InformerConfig{BatchHandler: &b, MaxAttempts: 1, Checkpoint: s})
		stop := w.Run(i)
		time.Sleep(time.Second)
		refuses.Store(true)
		for _, key := range harness.Keys(20) {
			w.DeletePods(key)
			w.CreatePods(key)
		}
		time.Sleep(time.Minute)
		require.NotEmpty(t, i.DeadLetters())
		refuses.Store(false)
		for n := range 10 { // by which each informer sees that the server was not restored
			w.CreatePods(fmt.Sprintf("b/%d", n))
		}
		time.Sleep(time.Minute)
		stop()
		told := map[string]bool{}
		for _, shard := range []informer.Shard{{Key: informer.ShardByUID, End: 1 << 63}, {Key: informer.ShardByUID, Start: 1 << 63}} {
			part := harness.Recorder{}
			i = harness.Follow(w, informer.InformerConfig{Handler: &part, Shard: shard, Checkpoint: s.Killed()})
			stop = w.Run(i)
			time.Sleep(time.Minute)
			for key := range part.State() {
				if strings.HasPrefix(key, "a/") {
					told[key] = true
				}
			}
			stop()
		}
		require.Len(t, told, 20)
	})
}

// The letter of a deletion also stands for the object that has come in its place. When the handler has
// taken in the deletion, and not yet that object, the letter is still known: a process that ends then
// leaves the object to the next one. So does the letter of a handler that has ended its goroutine,
// which is the object's.
func TestDeadLetterOfADeletionLastsUntilTheNextObjectIsTakenIn(t *testing.T) {
	lasts := func(t *testing.T, w *harness.World, letter informer.EventType, exits, restarts bool, s informer.CheckpointStore) {
		w.CreatePods("a/1", "a/2")
		var refuses atomic.Value
		refuses.Store("none")
		var replaces atomic.Bool
		b := harness.Batches{See: replacing(w, &replaces), Fail: func(batch []string) error {
			for n, event := range batch {
				switch refused := refuses.Load().(string); {
				case !strings.Contains(event, refused):
				case exits && refused == "delete a/2":
					runtime.Goexit()
				default:
					return informer.FailedEvents{{Index: n, Err: errors.New("the row is refused")}}
				}
			}
			return nil
		}}
		config := informer.InformerConfig{BatchHandler: &b, MaxAttempts: 8, Checkpoint: s}
		i := harness.Follow(w, config)
		stop := w.Run(i)
		time.Sleep(time.Minute)
		refuses.Store("delete a/2")
		replaces.Store(true)
		w.UpdatePod("a/1", "busy")
		time.Sleep(time.Hour)
		w.UpdatePod("a/1", "changed")
		time.Sleep(time.Minute)
		require.Len(t, i.DeadLetters(), 1)
		require.Equal(t, letter, i.DeadLetters()[0].Type)
		if restarts {
			stop()
			i = harness.Follow(w, config)
			stop = w.Run(i)
			time.Sleep(time.Minute)
			require.Len(t, w.Lists(), 1)
		}

		refuses.Store("add a/2")
		ctx, giveUp := context.WithCancel(t.Context())
		redelivered := make(chan error, 1)
		go func() { redelivered <- i.Redeliver(ctx, informer.RedeliverOptions{Keys: []string{"a/2"}}) }()
		time.Sleep(time.Second)
		require.Equal(t, map[string]string{"a/1": w.ResourceVersion()}, b.State(), "the deletion is taken in")
		require.Len(t, i.DeadLetters(), 1)
		giveUp()
		require.Error(t, <-redelivered)
		stop()

		refuses.Store("none")
		i = harness.Follow(w, config)
		defer w.Run(i)()
		time.Sleep(time.Minute)
		require.Len(t, i.DeadLetters(), 1)
		require.NoError(t, i.Redeliver(t.Context(), informer.RedeliverOptions{Keys: []string{"a/2"}}))
		w.RequireState(&b.Recorder)
		require.Empty(t, i.DeadLetters())
	}
	for letter, exits := range map[informer.EventType]bool{informer.Deleted: false, informer.Added: true} {
		for _, opaque := range []bool{false, true} {
			for _, restarts := range []bool{false, true} {
				for name, s := range stores(t) {
					text := fmt.Sprintf("%s, exits=%v, opaque=%v, restarts=%v", name, exits, opaque, restarts)
					harness.BubbleRun(t, text, informertest.Options{OpaqueVersions: opaque}, func(t *testing.T, w *harness.World) {
						lasts(t, w, letter, exits, restarts, s)
					})
				}
			}
		}
	}
}

// replacing has another object take the place of a/2 while the handler is called, so that the two
// come together, when it is asked to.
func replacing(w *harness.World, asked *atomic.Bool) func([]informer.Event) {
	return func([]informer.Event) {
		if asked.Swap(false) {
			w.DeletePods("a/2")
			w.CreatePods("a/2")
			time.Sleep(time.Second)
		}
	}
}

// The handler has refused the end of an object, and another one has come in its place. A process that
// goes on from the checkpoint delivers both when it is asked to, also where versions have no order, and
// nothing that is older than what the watch tells.
func TestDeadLetterOfADeletionIsRedeliveredAfterARestart(t *testing.T) {
	behind := func(w *harness.World, delay time.Duration) {
		w.DeletePods("a/1")
		time.Sleep(delay)
		w.CreatePods("a/1")
		time.Sleep(time.Hour)
	}
	none := func(*harness.World) {}
	for name, c := range map[string]struct {
		first, second func(w *harness.World) // while the first process runs, and before the second one does
		watched       []string               // what the watch of the second one brings
		want          []string
	}{
		"nothing behind": {
			first: func(w *harness.World) { w.DeletePods("a/1"); time.Sleep(time.Hour) }, second: none,
			want: []string{"delete a/1 unknown"},
		},
		"behind": {
			first: func(w *harness.World) { behind(w, time.Minute) }, second: none,
			want: []string{"delete a/1 unknown", "add a/1"},
		},
		"came with it": {
			first: func(w *harness.World) { behind(w, 0) }, second: none,
			want: []string{"delete a/1 unknown", "add a/1"},
		},
		"changed behind": {
			first:  func(w *harness.World) { behind(w, time.Minute); w.UpdatePod("a/1", "changed"); time.Sleep(time.Hour) },
			second: none, want: []string{"delete a/1 unknown", "add a/1"},
		},
		"another behind": {
			first: func(w *harness.World) { behind(w, time.Minute); behind(w, time.Minute) }, second: none,
			want: []string{"delete a/1 unknown", "add a/1"},
		},
		"gone behind": {
			first:  func(w *harness.World) { behind(w, time.Minute); w.DeletePods("a/1"); time.Sleep(time.Hour) },
			second: none, want: []string{"delete a/1 unknown"},
		},
		"changed later": {
			first: func(w *harness.World) { behind(w, time.Minute) }, second: func(w *harness.World) { w.UpdatePod("a/1", "changed") },
			watched: []string{"delete a/1 unknown", "add a/1"}, want: []string{"update a/1"},
		},
		"gone later": {
			first: func(w *harness.World) { behind(w, time.Minute) }, second: func(w *harness.World) { w.DeletePods("a/1") },
			watched: []string{"delete a/1 unknown"},
		},
		"came later": {
			first:   func(w *harness.World) { w.DeletePods("a/1"); time.Sleep(time.Hour) },
			second:  func(w *harness.World) { w.CreatePods("a/1") },
			watched: []string{"delete a/1 unknown", "add a/1"}, want: []string{"update a/1"},
		},
	} {
		for kind, o := range map[string]informer.RedeliverOptions{"all": {}, "keys": {Keys: []string{"a/1"}}} {
			for _, opaque := range []bool{false, true} {
				for store, s := range stores(t) {
					harness.BubbleRun(t, fmt.Sprintf("%s, %s, opaque=%v, %s", name, kind, opaque, store), informertest.Options{OpaqueVersions: opaque}, func(t *testing.T, w *harness.World) {
						w.CreatePods("a/1")
						var refuses atomic.Bool
						b := harness.Batches{Fail: refusingKeys(refuses.Load, "a/1")}
						config := informer.InformerConfig{BatchHandler: &b, MaxAttempts: 3, Checkpoint: s}
						i := harness.Follow(w, config)
						stop := w.Run(i)
						time.Sleep(5 * time.Minute)
						refuses.Store(true)
						c.first(w)
						before := i.DeadLetters()
						require.Len(t, before, 1)
						require.Equal(t, informer.Deleted, before[0].Type)
						require.Equal(t, w.ResourceVersion(), before[0].Newest)
						stop()
						w.Run(harness.Follow(w, config))() // one that has nothing to do
						c.second(w)

						refuses.Store(false)
						b.Forget()
						i = harness.Follow(w, config)
						w.Run(i)
						time.Sleep(time.Hour)
						require.Len(t, w.Lists(), 1, "each process goes on with a watch")
						require.Equal(t, c.watched, b.Events())
						require.Equal(t, c.watched == nil, len(i.DeadLetters()) == 1)
						b.Forget()
						require.NoError(t, i.Redeliver(t.Context(), o))
						want := c.want
						if len(o.Keys) > 0 && want == nil { // it is gone, and named
							want = []string{"delete a/1 unknown"}
						}
						require.Equal(t, want, b.Events())
						w.RequireState(&b.Recorder)
						require.Empty(t, i.DeadLetters())
					})
				}
			}
		}
	}
}

// An object that has come in the place of one whose deletion was a dead letter, and goes before the
// handler is given it, leaves no dead letter, and no deletion of it is delivered.
func TestDeadLetterOfADeletionEndsWithTheNextObject(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2")
		var refuses, slow atomic.Bool
		b := harness.Batches{Fail: func(batch []string) error {
			for n, event := range batch {
				switch {
				case !strings.Contains(event, "a/2"):
				case refuses.Load():
					return informer.FailedEvents{{Index: n, Err: errors.New("the row is refused")}}
				case slow.Swap(false):
					w.DeletePods("a/2") // the next one
					time.Sleep(time.Second)
				}
			}
			return nil
		}}
		i := harness.Follow(w, informer.InformerConfig{BatchHandler: &b, MaxAttempts: 3})
		defer w.Run(i)()
		time.Sleep(time.Minute)
		refuses.Store(true)
		w.DeletePods("a/2")
		w.CreatePods("a/2")
		time.Sleep(time.Hour)
		require.Len(t, i.DeadLetters(), 1)

		refuses.Store(false)
		slow.Store(true)
		b.Forget()
		w.Relist()
		time.Sleep(time.Minute)
		require.Equal(t, []string{"sync a/1", "delete a/2 unknown"}, b.Events())
		require.Empty(t, i.DeadLetters())
	})
}
