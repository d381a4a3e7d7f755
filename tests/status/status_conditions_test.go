package status_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// A checkpoint that is in use, or that cannot be saved, is in Status until it is not.
func TestStatusNamesACheckpointUntilItIsInUse(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		full := errors.New("the disk is full")
		s := &harness.MemoryCheckpoint{}
		var mended atomic.Bool
		s.OnSave = func(context.Context, int) error {
			if mended.Load() {
				return nil
			}
			return full
		}
		store := &harness.Lockable{MemoryCheckpoint: s}
		unlock, err := store.Lock()
		require.NoError(t, err)
		i := harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{}, Checkpoint: store})

		requireUnused := func(reason error) {
			t.Helper()
			status := i.Status()
			require.Equal(t, "*harness.Lockable", status.Checkpoint)
			require.ErrorIs(t, status.CheckpointError, reason)
			unused := harness.ErrorAs[*informer.UnusedCheckpointError](t, status.CheckpointError)
			require.False(t, unused.NeverSaved)
			require.ErrorContains(t, status.CheckpointError, "Lockable")
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
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s := w.Lived(&harness.Recorder{})
		s.Content = s.Content[:40]
		hold := make(chan struct{})
		i := harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{Before: func(string) { <-hold }}, Checkpoint: s})
		time.Sleep(time.Second)
		harness.ErrorAs[*informer.CheckpointError](t, i.Status().CheckpointError)
		close(hold)
		time.Sleep(5 * time.Minute)
		require.NoError(t, i.Status().CheckpointError)
	})
}

func TestStatusTellsWhereARunResumed(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s := w.Lived(&harness.Recorder{})
		saved := harness.ReadSaved(t, s.Bytes()).Resume
		w.UpdatePod("a/0001", "changed")
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, Checkpoint: s})
		began := time.Now()
		stop := w.Run(i)
		time.Sleep(time.Hour)
		require.Equal(t, saved, i.Status().ResumedFrom)
		require.WithinDuration(t, began, i.Status().ResumedTime, time.Second)
		stop()
		require.Equal(t, saved, i.Status().ResumedFrom)

		w.UpdatePod("a/0001", "again")
		w.Compact()
		w.Run(i)
		time.Sleep(time.Minute)
		require.Empty(t, i.Status().ResumedFrom, "it had to list")
		require.Zero(t, i.Status().ResumedTime)
	})
}

// An ExampleObject of another type than the resource has is an error for as long as it is so.
func TestStatusTellsWhyItemsAreSkipped(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		wrong := harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{}, ExampleObject: &corev1.ConfigMap{}})
		for range 5 {
			time.Sleep(time.Hour)
			require.ErrorIs(t, wrong.Status().LastError, informer.ErrNotList)
			skipped := harness.ErrorAs[*informer.ItemError](t, wrong.Status().SkippedError)
			require.ErrorContains(t, skipped, "ConfigMap")
			w.Relist()
		}
	})
}

func TestSkippedErrorEndsWithACompleteList(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		heal := w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"list"}}, Effect: informertest.Mistyped(1)})
		i := harness.Settled(w, informer.InformerConfig{Handler: &harness.Recorder{}, ExampleObject: &corev1.Pod{}})
		require.Error(t, i.Status().SkippedError)
		heal()
		w.Relist()
		require.NoError(t, i.Status().SkippedError)
		require.EqualValues(t, 3, i.Status().Objects)
	})
}

func TestStatusOfSharedHandlersHasTheirConditions(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		shared := informer.NewSharedResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: w.Lister(), ListMode: informer.ListModePaged})
		for _, content := range []string{"", "what is no checkpoint"} {
			s := &harness.MemoryCheckpoint{}
			if content != "" {
				s.Content = []byte(content)
			}
			_, err := shared.AddHandler(informer.HandlerConfig{Handler: &harness.Recorder{}, Checkpoint: s, ErrorHandler: harness.IgnoreErrors})
			require.NoError(t, err)
		}
		defer harness.Start(shared.RunWithContext)()
		time.Sleep(time.Minute)
		require.ErrorIs(t, shared.Status().CheckpointError, informer.ErrCheckpointFormat)
		require.NoError(t, shared.Handlers()[0].Status().CheckpointError)
		require.Equal(t, fmt.Sprintf("%T", &harness.MemoryCheckpoint{}), shared.Status().Checkpoint)
	})
}

// All times of a Status have the reading of the monotonic clock. So ages and deadlines that follow
// from them, as in metrics and /livez, do not change when the wall clock is set, in either
// direction.
func TestTimesOfStatusDoNotFollowTheWallClock(t *testing.T) {
	w := &harness.World{T: t, Server: informertest.NewServer(informertest.Options{InMemory: true})}
	defer w.Close()
	w.CreateKubeSystem()
	w.CreatePods(harness.Keys(3)...)
	var blocks atomic.Bool
	release := make(chan struct{})
	i := harness.Follow(w, informer.InformerConfig{
		ListMode: informer.ListModePaged, Checkpoint: &harness.MemoryCheckpoint{}, CheckpointInterval: time.Millisecond, AuditEvery: time.Hour,
		Handler: &harness.Recorder{Before: func(string) {
			if blocks.Load() {
				<-release
			}
		}},
	})
	defer harness.Start(i.RunWithContext)()
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
	w.UpdatePod("a/0001", "changed")
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
