package checkpoints_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// Changes that a save could not write are saved at the end, also where the checkpoint has
// no version that could have moved.
func TestChangesOfAFailedSaveAreSavedAtTheEnd(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s := &harness.MemoryCheckpoint{}
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, Checkpoint: s})
		stop := w.Run(i)
		synctest.Wait()
		w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch"}}, Effect: informertest.Garbage(1), Times: 1})
		w.UpdatePod("a/0002", "unreadable")
		w.UpdatePod("a/0000", "changed")
		time.Sleep(2 * time.Minute)
		require.Empty(t, harness.ReadSaved(t, s.Bytes()).Resume, "what the event told is not known")
		before := s.Attempts()
		s.OnSave = func(_ context.Context, n int) error {
			if n == before+1 {
				return errors.New("the disk is full")
			}
			return nil
		}
		w.UpdatePod("a/0001", "changed")
		for s.Attempts() == before {
			harness.Sleep(time.Second)
		}
		stop()
		versions := w.Versions()
		require.Equal(t, versions["a/0001"], harness.ReadSaved(t, s.Bytes()).State()["a/0001"])
	})
}

// editing is a MemoryCheckpoint that edits a Storage while a checkpoint is written to it.
type editing struct {
	*harness.MemoryCheckpoint
	edit func()
}

func (s editing) Save(ctx context.Context, write func(io.Writer) error) error {
	return s.MemoryCheckpoint.Save(ctx, func(to io.Writer) error { return write(editingWriter{to, s.edit}) })
}

type editingWriter struct {
	io.Writer
	edit func()
}

func (w editingWriter) Write(p []byte) (int, error) {
	w.edit()
	return w.Writer.Write(p)
}

// A checkpoint may have entries that others added while it was written. No watch tells
// what became of them, so that it has no version.
func TestNoVersionWhereOthersEditTheStorageDuringASave(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		for n := range 1500 { // more than are written at once
			w.CreatePods(fmt.Sprintf("a/%x", sha256.Sum256(fmt.Append(nil, n))))
		}
		storage := informer.NewResourceVersionStorage()
		edited := false
		s := editing{MemoryCheckpoint: &harness.MemoryCheckpoint{}, edit: func() {
			if storage.Len() != 1500 || edited {
				return
			}
			edited = true
			for n := range 100 {
				require.NoError(t, storage.Add(harness.Pod(fmt.Sprintf("a/gone-%d", n), "2")))
			}
		}}
		r := &harness.Recorder{}
		w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, Storage: storage}))
		harness.Sleep(30 * time.Second)
		require.True(t, edited)
		saved := harness.ReadSaved(t, s.Bytes()).State()
		for n := range 100 {
			if key := fmt.Sprintf("a/gone-%d", n); saved[key] != "" {
				r.OnAdd(harness.Pod(key, "2"), false) // as the storage says
			}
		}
		require.Greater(t, len(r.State()), 1500, "some of them were written")
		noVersion(w, s.MemoryCheckpoint, r)
	})
}
