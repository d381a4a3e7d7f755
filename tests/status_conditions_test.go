package tests_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// A checkpoint that is not this informer's to replace is in Status for as long as it is there, with
// its name.
func TestStatusNamesARefusedCheckpoint(t *testing.T) {
	for name, test := range map[string]struct {
		spoil  func(w *world, content []byte) []byte
		reason error
	}{
		"of another cluster": {func(w *world, content []byte) []byte {
			require.NoError(w.t, w.Delete(namespaces, "", "kube-system"))
			w.createKubeSystem()
			return content
		}, informer.ErrCheckpointSource},
		"no checkpoint":      {func(*world, []byte) []byte { return []byte("#!/bin/sh\nexit 0\n") }, informer.ErrCheckpointFormat},
		"of a newer version": {func(_ *world, content []byte) []byte { content[9] += 9; return content }, informer.ErrCheckpointVersion},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
				w.createKubeSystem()
				w.create(keys(3)...)
				path := filepath.Join(t.TempDir(), "pods")
				require.NoError(t, os.WriteFile(path, test.spoil(w, w.lived(&recorder{}).bytes()), 0o600))
				var f failures
				i := follow(w, informer.InformerConfig{Handler: &recorder{}, Checkpoint: informer.FileCheckpoint(path), ErrorHandler: f.handle})
				require.Equal(t, path, i.Status().Checkpoint)
				require.NoError(t, i.Status().CheckpointError)
				for range 2 {
					stop := w.run(i)
					for range 3 {
						time.Sleep(time.Hour)
						status := i.Status()
						requireAwaited(t, i, test.reason)
						var unused *informer.UnusedCheckpointError
						require.ErrorAs(t, status.CheckpointError, &unused)
						require.Equal(t, path, unused.Checkpoint)
						require.ErrorContains(t, status.CheckpointError, path)
					}
					stop()
				}
				errs, _ := f.all()
				require.ErrorContains(t, errs[0], path)
			})
		})
	}
}

// A checkpoint that is in use, or that cannot be saved, is in Status until it is not.
func TestStatusNamesACheckpointUntilItIsInUse(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		full := errors.New("the disk is full")
		s := &memoryCheckpoint{}
		var mended atomic.Bool
		s.onSave = func(context.Context, int) error {
			if mended.Load() {
				return nil
			}
			return full
		}
		store := &lockable{memoryCheckpoint: s}
		unlock, err := store.Lock()
		require.NoError(t, err)
		i := follow(w, informer.InformerConfig{Handler: &recorder{}, Checkpoint: store})
		w.run(i)

		requireUnused := func(reason error) {
			t.Helper()
			status := i.Status()
			require.Equal(t, "*tests_test.lockable", status.Checkpoint)
			require.ErrorIs(t, status.CheckpointError, reason)
			var unused *informer.UnusedCheckpointError
			require.ErrorAs(t, status.CheckpointError, &unused)
			require.False(t, unused.NeverSaved)
			require.ErrorContains(t, status.CheckpointError, "lockable")
		}
		time.Sleep(time.Minute)
		requireUnused(informer.ErrCheckpointInUse)
		require.NoError(t, unlock())
		time.Sleep(10 * time.Second)
		requireUnused(full)
		mended.Store(true)
		time.Sleep(5 * time.Minute)
		require.NoError(t, i.Status().CheckpointError)
		require.NotZero(t, i.Status().CheckpointTime)
	})
}

func TestStatusNamesADamagedCheckpointUntilItIsReplaced(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		s := w.lived(&recorder{})
		s.content = s.content[:40]
		hold := make(chan struct{})
		i := follow(w, informer.InformerConfig{Handler: &recorder{before: func(string) { <-hold }}, Checkpoint: s})
		w.run(i)
		time.Sleep(time.Second)
		var damaged *informer.CheckpointError
		require.ErrorAs(t, i.Status().CheckpointError, &damaged)
		close(hold)
		time.Sleep(5 * time.Minute)
		require.NoError(t, i.Status().CheckpointError)
	})
}

func TestStatusTellsWhereARunResumed(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		s := w.lived(&recorder{})
		saved := readSaved(t, s.bytes()).resume
		w.update("a/0001", "changed")
		i := follow(w, informer.InformerConfig{Handler: &recorder{}, Checkpoint: s})
		began := time.Now()
		stop := w.run(i)
		time.Sleep(time.Hour)
		require.Equal(t, saved, i.Status().ResumedFrom)
		require.WithinDuration(t, began, i.Status().ResumedTime, time.Second)
		stop()
		require.Equal(t, saved, i.Status().ResumedFrom)

		w.update("a/0001", "again")
		w.Compact()
		w.run(i)
		time.Sleep(time.Minute)
		require.Empty(t, i.Status().ResumedFrom, "it had to list")
		require.Zero(t, i.Status().ResumedTime)
	})
}

// An ExampleObject of another type than the resource has is an error for as long as it is so.
func TestStatusTellsWhyItemsAreSkipped(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		wrong := follow(w, informer.InformerConfig{Handler: &recorder{}, ExampleObject: &corev1.ConfigMap{}})
		w.run(wrong)
		for range 5 {
			time.Sleep(time.Hour)
			require.ErrorIs(t, wrong.Status().LastError, informer.ErrNotList)
			var skipped *informer.ItemError
			require.ErrorAs(t, wrong.Status().SkippedError, &skipped)
			require.ErrorContains(t, skipped, "ConfigMap")
			w.relist()
		}
	})
}

func TestSkippedErrorEndsWithACompleteList(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		heal := w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"list"}}, Effect: informertest.Mistyped(1)})
		i := follow(w, informer.InformerConfig{Handler: &recorder{}, ExampleObject: &corev1.Pod{}})
		w.run(i)
		synctest.Wait()
		require.Error(t, i.Status().SkippedError)
		heal()
		w.relist()
		require.NoError(t, i.Status().SkippedError)
		require.EqualValues(t, 3, i.Status().Objects)
	})
}

func TestStatusOfSharedHandlersHasTheirConditions(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		shared := informer.NewSharedResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: w.lister(), ListMode: informer.ListModePaged})
		for _, content := range []string{"", "what is no checkpoint"} {
			s := &memoryCheckpoint{}
			if content != "" {
				s.content = []byte(content)
			}
			_, err := shared.AddHandler(informer.HandlerConfig{Handler: &recorder{}, Checkpoint: s, ErrorHandler: quiet})
			require.NoError(t, err)
		}
		defer start(shared.RunWithContext)()
		time.Sleep(time.Minute)
		require.ErrorIs(t, shared.Status().CheckpointError, informer.ErrCheckpointFormat)
		require.NoError(t, shared.Handlers()[0].Status().CheckpointError)
		require.Equal(t, fmt.Sprintf("%T", &memoryCheckpoint{}), shared.Status().Checkpoint)
	})
}

// All times of a Status have the reading of the monotonic clock. So ages and deadlines that follow
// from them, as in metrics and /livez, do not change when the wall clock is set, in either
// direction.
func TestTimesOfStatusDoNotFollowTheWallClock(t *testing.T) {
	w := &world{t: t, Server: informertest.NewServer(informertest.Options{InMemory: true})}
	defer w.Close()
	w.createKubeSystem()
	w.create(keys(3)...)
	var blocks atomic.Bool
	release := make(chan struct{})
	i := follow(w, informer.InformerConfig{
		ListMode: informer.ListModePaged, Checkpoint: &memoryCheckpoint{}, CheckpointInterval: time.Millisecond, AuditEvery: time.Hour,
		Handler: &recorder{before: func(string) {
			if blocks.Load() {
				<-release
			}
		}},
	})
	defer start(i.RunWithContext)()
	eventually := func(is func(s informer.Status) bool) informer.Status {
		t.Helper()
		var s informer.Status
		require.Eventually(t, func() bool { s = i.Status(); return is(s) }, time.Minute, time.Millisecond)
		return s
	}
	s := eventually(func(s informer.Status) bool { return s.Synced && !s.CheckpointTime.IsZero() && !s.CurrentAsOf.IsZero() })
	_, err := i.Audit(t.Context(), informer.AuditOptions{})
	require.NoError(t, err)
	blocks.Store(true)
	w.update("a/0001", "changed")
	queued := eventually(func(s informer.Status) bool { return s.Queued > 0 })
	close(release)
	w.Inject(informertest.Fault{Effect: informertest.Status(403)})
	w.CloseClientConnections()
	failing := eventually(func(s informer.Status) bool { return s.LastError != nil })
	for name, at := range map[string]time.Time{
		"LastContact": s.LastContact, "CurrentAsOf": s.CurrentAsOf, "CheckpointTime": s.CheckpointTime, "OldestQueued": queued.OldestQueued,
		"LastAudit": queued.LastAudit.Time, "LastAudited": queued.LastAudited, "LastErrorTime": failing.LastErrorTime,
		"FailingSince": failing.FailingSince, "Condition.Since": failing.Condition.Since, "Condition.Since, well": s.Condition.Since,
	} {
		require.False(t, at.IsZero(), name)
		require.Contains(t, at.String(), " m=", name)
		require.WithinDuration(t, time.Now(), at, 2*time.Minute, name)
	}
}
