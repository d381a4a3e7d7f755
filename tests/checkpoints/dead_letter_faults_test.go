package checkpoints_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// refusingKeys is what a handler returns that does not take in these keys, while it does not.
func refusingKeys(while func() bool, keys ...string) func(batch []string) error {
	return func(batch []string) error {
		var failed informer.FailedEvents
		for n, event := range batch {
			for _, key := range keys {
				if while() && strings.Fields(event)[1] == key {
					failed = append(failed, informer.FailedEvent{Index: n, Err: errors.New("the row is refused")})
				}
			}
		}
		if failed == nil {
			return nil
		}
		return failed
	}
}

func always() bool { return true }

// actingFile is a FileCheckpoint that does something first before each Append and each Write of a
// Save.
type actingFile struct {
	informer.CheckpointStore
	path     string
	appends  func(b []byte) error
	writes   func()
	attempts atomic.Int32
}

func newActingFile(t *testing.T) *actingFile {
	path := filepath.Join(t.TempDir(), "pods")
	return &actingFile{CheckpointStore: informer.FileCheckpoint(path), path: path, appends: func([]byte) error { return nil }, writes: func() {}}
}

func (s *actingFile) Save(ctx context.Context, write func(io.Writer) error) error {
	s.attempts.Add(1)
	return s.CheckpointStore.Save(ctx, func(w io.Writer) error { return write(actingWriter{s, w}) })
}

func (s *actingFile) Append(ctx context.Context, b []byte) error {
	if err := s.appends(b); err != nil {
		return err
	}
	return s.CheckpointStore.(informer.CheckpointAppender).Append(ctx, b)
}

func (s *actingFile) Sync(ctx context.Context) error {
	return s.CheckpointStore.(informer.CheckpointAppender).Sync(ctx)
}

// left is a store with what a kill would leave now.
func (s *actingFile) left(t *testing.T) informer.CheckpointStore {
	content, err := os.ReadFile(s.path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(s.path+".left", content, 0o600))
	return informer.FileCheckpoint(s.path + ".left")
}

type actingWriter struct {
	s *actingFile
	io.Writer
}

func (w actingWriter) Write(b []byte) (int, error) {
	w.s.writes()
	return w.Writer.Write(b)
}

// plainStore hides that a store takes a journal.
type plainStore struct{ informer.CheckpointStore }

// A store may end the goroutine that writes down a dead letter, as a failed assertion of a test does.
// No key is lost by that.
func TestStoreThatEndsTheGoroutineOfADeadLetter(t *testing.T) {
	for _, exits := range []bool{false, true} {
		harness.BubbleRun(t, fmt.Sprintf("and so does the handler: %v", exits), informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/1", "a/2", "a/3", "a/4")
			s := newActingFile(t)
			var done, exited atomic.Bool
			s.appends = func(b []byte) error {
				if strings.Contains(string(b), "firstError") && done.CompareAndSwap(false, true) {
					runtime.Goexit()
				}
				return nil
			}
			refuses := refusingKeys(func() bool { return !exits && !exited.Load() }, "a/2", "a/3")
			b := harness.Batches{Fail: func(batch []string) error {
				if exits && exited.CompareAndSwap(false, true) {
					runtime.Goexit()
				}
				return refuses(batch)
			}}
			i := harness.Follow(w, informer.InformerConfig{BatchHandler: &b, MaxAttempts: 2, Checkpoint: s})
			defer w.Run(i)()
			time.Sleep(time.Hour)
			require.True(t, done.Load())
			require.Zero(t, i.Status().Queued)
			require.True(t, i.HasSynced())
			require.NotEmpty(t, i.DeadLetters())
			exited.Store(true)
			w.Relist()
			time.Sleep(time.Hour)
			w.RequireState(&b.Recorder)
			require.Zero(t, i.Status().Queued)
			require.Empty(t, i.DeadLetters())
		})
	}
}

// An ErrorHandler may end the goroutine that reports a dead letter.
func TestErrorHandlerThatEndsTheGoroutineOfADeadLetter(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2", "a/3")
		var done atomic.Bool
		b := harness.Batches{Fail: refusingKeys(func() bool { return !done.Load() }, "a/2", "a/3")}
		i := harness.Follow(w, informer.InformerConfig{BatchHandler: &b, MaxAttempts: 3, ErrorHandler: func(_ *informer.Reflector, err error) {
			if errors.Is(err, informer.ErrPassedOver) && done.CompareAndSwap(false, true) {
				runtime.Goexit()
			}
		}})
		defer w.Run(i)()
		time.Sleep(150 * time.Millisecond)
		w.UpdatePod("a/2", "newer")
		time.Sleep(time.Hour)
		require.True(t, done.Load())
		require.Zero(t, i.Status().Queued)
		require.True(t, i.HasSynced())
	})
}

// A dead letter that ends while it is saved is not there after a kill, although it was read before.
func TestDeadLetterThatEndsWhileItIsSaved(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var pods []string
		for n := range 6000 {
			pods = append(pods, fmt.Sprintf("a/a-rather-long-name-of-a-pod-%d", n*7919%100000))
		}
		dead := pods[:20]
		w.CreatePods(pods...)
		s := newActingFile(t)
		var slow, healthy atomic.Bool
		s.writes = func() {
			if slow.Load() {
				time.Sleep(10 * time.Second)
			}
		}
		b := harness.Batches{Fail: refusingKeys(func() bool { return !healthy.Load() }, dead...)}
		config := informer.InformerConfig{BatchHandler: &b, MaxAttempts: 1, Checkpoint: plainStore{s}}
		i := harness.Follow(w, config)
		defer w.Run(i)()
		time.Sleep(5 * time.Minute)
		require.Len(t, i.DeadLetters(), 20)
		slow.Store(true)
		begun := s.attempts.Load()
		for n := 0; s.attempts.Load() == begun; n++ {
			w.UpdatePod(pods[100], fmt.Sprint(n))
			time.Sleep(time.Second)
		}
		healthy.Store(true)
		for _, key := range dead {
			w.UpdatePod(key, "newer")
		}
		time.Sleep(3 * time.Minute)
		require.Empty(t, i.DeadLetters())
		config.Checkpoint = plainStore{s.left(t)}
		i = harness.Follow(w, config)
		defer w.Run(i)()
		time.Sleep(time.Hour)
		w.RequireState(&b.Recorder)
		require.Empty(t, i.DeadLetters())
	})
}

// A dead letter that ends while a save waits for an Append is written before what has ended it.
func TestDeadLetterThatEndsBeforeItsSaveBegins(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2", "a/3", "a/4")
		pods := harness.Keys(1000)
		w.CreatePods(pods...)
		s := newActingFile(t)
		var healthy, slow atomic.Bool
		s.appends = func([]byte) error {
			if slow.Load() {
				time.Sleep(10 * time.Second)
			}
			return nil
		}
		b := harness.Batches{Fail: refusingKeys(func() bool { return !healthy.Load() }, "a/2")}
		config := informer.InformerConfig{
			BatchHandler: &b, MaxAttempts: 1, Checkpoint: s, Workers: 3, CheckpointInterval: 10 * time.Second, CheckpointChanges: 1e6,
		}
		i := harness.Follow(w, config)
		defer w.Run(i)()
		time.Sleep(5 * time.Minute)
		require.Len(t, i.DeadLetters(), 1)
		for n := range 10 { // the journal is full: the next save is a whole one
			for _, key := range pods {
				w.UpdatePod(key, fmt.Sprint(n))
			}
			time.Sleep(300 * time.Millisecond)
		}
		begun := s.attempts.Load()
		slow.Store(true)
		for n := 0; s.attempts.Load() == begun; n++ { // an Append is under way all the time
			w.UpdatePod("a/3", fmt.Sprint(n))
			time.Sleep(9900 * time.Millisecond)
		}
		healthy.Store(true)
		w.UpdatePod("a/2", "newer")
		time.Sleep(5 * time.Second)
		slow.Store(false)
		time.Sleep(15 * time.Second)
		require.Empty(t, i.DeadLetters())
		config.Checkpoint = s.left(t)
		i = harness.Follow(w, config)
		defer w.Run(i)()
		time.Sleep(time.Hour)
		w.RequireState(&b.Recorder)
		require.Empty(t, i.DeadLetters())
	})
}

// An event becomes a dead letter while the journal is not in use, because an Append has failed, and
// a save waits for its turn: the save has the letter.
func TestDeadLetterWhileTheJournalIsNotInUse(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2", "a/3", "a/4")
		s := newActingFile(t)
		var full, refuses atomic.Bool
		s.appends = func([]byte) error {
			if full.CompareAndSwap(true, false) {
				return errors.New("disk full")
			}
			return nil
		}
		b := harness.Batches{Fail: refusingKeys(refuses.Load, "a/2")}
		config := informer.InformerConfig{
			BatchHandler: &b, MaxAttempts: 1, Checkpoint: s, Workers: 3, CheckpointInterval: 10 * time.Second,
			ErrorHandler: func(_ *informer.Reflector, err error) {
				if err != nil && strings.Contains(err.Error(), "disk full") {
					time.Sleep(20 * time.Second)
				}
			},
		}
		i := harness.Follow(w, config)
		defer w.Run(i)()
		time.Sleep(5*time.Minute + 3*time.Second)
		w.UpdatePod("a/4", "changed") // there is something to save
		time.Sleep(time.Second)
		full.Store(true)
		w.UpdatePod("a/3", "changed")
		time.Sleep(8 * time.Second)
		refuses.Store(true)
		w.UpdatePod("a/2", "changed")
		time.Sleep(time.Second)
		require.Len(t, i.DeadLetters(), 1)
		time.Sleep(30 * time.Second)
		w.UpdatePod("a/1", "changed")
		time.Sleep(10 * time.Minute)
		config.Checkpoint = s.left(t)
		i = harness.Follow(w, config)
		defer w.Run(i)()
		time.Sleep(time.Hour)
		require.Len(t, i.DeadLetters(), 1)
	})
}

// Dead letters with long texts do not make each save a whole one.
func TestDeadLettersLeaveSavesSmall(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		pods := harness.Keys(1000)
		w.CreatePods(pods...)
		s := newActingFile(t)
		var calls atomic.Int32
		refuses := refusingKeys(always, pods[:300]...)
		b := harness.Batches{Fail: func(batch []string) error {
			var failed informer.FailedEvents
			if errors.As(refuses(batch), &failed) {
				for n := range failed {
					failed[n].Err = errors.New(strings.Repeat("no row ", 70) + fmt.Sprint(calls.Add(1)))
				}
				return failed
			}
			return nil
		}}
		i := harness.Follow(w, informer.InformerConfig{BatchHandler: &b, MaxAttempts: 2, Checkpoint: s})
		defer w.Run(i)()
		time.Sleep(10 * time.Minute)
		require.Len(t, i.DeadLetters(), 300)
		before := s.attempts.Load()
		for n := range 60 {
			w.UpdatePod(pods[500], fmt.Sprint(n))
			time.Sleep(time.Minute)
		}
		require.Less(t, s.attempts.Load()-before, int32(10), "whole saves")
	})
}
