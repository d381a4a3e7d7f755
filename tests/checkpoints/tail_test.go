package checkpoints_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// appends appends text.
func appends(store informer.CheckpointStore, text string) error {
	return store.(informer.CheckpointAppender).Append(context.Background(), []byte(text))
}

// What is appended is behind what was saved, for others too, and gone with the next Save.
func TestAppendedTextFollowsWhatWasSaved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pods")
	store := informer.FileCheckpoint(path)
	require.ErrorIs(t, appends(store, "too early"), fs.ErrNotExist)
	for range 2 {
		require.NoError(t, save(store, "saved"))
		require.NoError(t, appends(store, " one"))
		require.NoError(t, appends(store, " two"))
		require.NoError(t, store.(informer.CheckpointAppender).Sync(t.Context()))
		require.Equal(t, "saved one two", kept(t, informer.FileCheckpoint(path)))
	}
	requireFree(t, path)
}

// What is appended while a Save runs is behind what that keeps, or, if it fails, behind what was
// kept before.
func TestTextAppendedDuringASaveIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pods")
	store := informer.FileCheckpoint(path)
	unlock, err := store.(informer.CheckpointLocker).Lock()
	require.NoError(t, err)
	require.NoError(t, save(store, "first"))
	for _, before := range []string{"", " before"} { // the file is open then, or not
		if before != "" {
			require.NoError(t, appends(store, before))
		}
		failed := errors.New("failed")
		write := func(result error) func(w io.Writer) error {
			return func(w io.Writer) error {
				require.NoError(t, appends(store, " during"))
				_, err := io.WriteString(w, "saved")
				return errors.Join(err, result)
			}
		}
		content := kept(t, store)
		require.ErrorIs(t, store.Save(t.Context(), write(failed)), failed)
		require.Equal(t, content+" during", kept(t, store))
		require.NoError(t, store.Save(t.Context(), write(nil)))
		require.Equal(t, "saved during", kept(t, store))
		require.NoError(t, appends(store, " after"))
		require.Equal(t, "saved during after", kept(t, store))
	}
	require.NoError(t, unlock())
	requireFree(t, path)
}

// Appends and Saves side by side lose nothing: each text is in what was saved after it, or behind.
func TestAppendsBesideSaves(t *testing.T) {
	store := informer.FileCheckpoint(filepath.Join(t.TempDir(), "pods"))
	unlock, err := store.(informer.CheckpointLocker).Lock()
	require.NoError(t, err)
	defer func() { require.NoError(t, unlock()) }()
	require.NoError(t, save(store, "."))
	var mu sync.Mutex
	var all []byte // what was appended, in order
	var workers sync.WaitGroup
	workers.Go(func() {
		for n := range 2000 {
			letter := byte('a' + n%26)
			mu.Lock()
			all = append(all, letter)
			mu.Unlock()
			if err := appends(store, string(letter)); err != nil {
				panic(err)
			}
		}
	})
	for range 20 {
		var saved []byte
		require.NoError(t, store.Save(t.Context(), func(w io.Writer) error {
			mu.Lock() // the last letter may come again behind it
			saved = bytes.Clone(all)
			mu.Unlock()
			_, err := w.Write(append(saved, '.'))
			return err
		}))
	}
	workers.Wait()
	content := kept(t, store)
	before, after, _ := bytes.Cut([]byte(content), []byte("."))
	require.True(t, bytes.HasPrefix(all, before))
	require.True(t, bytes.HasSuffix(all, after))
	require.GreaterOrEqual(t, len(before)+len(after), len(all))
}

// A journal that was cut at any byte, as by a full disk, is read up to its last whole frame, and
// the process goes on with that.
func TestATornJournalIsReadToItsLastWholeFrame(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		path := filepath.Join(t.TempDir(), "pods")
		r := &harness.Recorder{}
		config := func() informer.InformerConfig {
			return informer.InformerConfig{Handler: r, Checkpoint: informer.FileCheckpoint(path)}
		}
		w.CreatePods(harness.Keys(3)...)
		stop := w.Run(harness.Follow(w, config()))
		time.Sleep(10 * time.Second)
		w.CreatePods("a/new")
		time.Sleep(10 * time.Second)
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		stop()
		whole := len(harness.ReadSaved(t, content).Begun) // of a/new, before its call
		require.Equal(t, 1, whole)
		w.DeletePods("a/new", "a/0001")
		w.Compact()
		random := rand.New(rand.NewPCG(1, 2))
		for range 20 {
			cut := len(content) - random.IntN(24)
			require.NoError(t, os.WriteFile(path, content[:cut], 0o600))
			r.Forget()
			stop := w.Run(harness.Follow(w, config()))
			time.Sleep(10 * time.Second)
			require.Contains(t, deletionsTold(r), "delete a/0001 unknown")
			if cut == len(content) {
				require.Contains(t, deletionsTold(r), "delete a/new unknown")
			}
			stop()
			again, err := os.ReadFile(path)
			require.NoError(t, err)
			left := harness.ReadSaved(t, again)
			require.Equal(t, w.ResourceVersion(), left.Resume)
			require.Len(t, left.Versions, 2)
			require.Empty(t, left.Begun)
		}
	})
}

// memoryJournal is a MemoryCheckpoint that takes a journal, and keeps what it had after each change.
type memoryJournal struct {
	*harness.MemoryCheckpoint
	mu      sync.Mutex
	moments [][]byte
}

var _ informer.CheckpointAppender = &memoryJournal{}

func (s *memoryJournal) Save(ctx context.Context, write func(io.Writer) error) error {
	err := s.MemoryCheckpoint.Save(ctx, write)
	s.keep()
	return err
}

func (s *memoryJournal) Append(_ context.Context, b []byte) error {
	s.Put(slices.Concat(s.Bytes(), b))
	s.keep()
	return nil
}

func (s *memoryJournal) keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moments = append(s.moments, s.Bytes())
}

func (s *memoryJournal) Sync(context.Context) error { return nil }

// A key that a handler may have begun to take in is in a store at every moment, also between a save
// of the whole checkpoint, such as that at the beginning of a second Run, and what is appended
// next.
func TestKeysThatAreBegunAreInTheStoreAtEveryMoment(t *testing.T) {
	harness.SurvivePanics(t)
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s, r := &memoryJournal{MemoryCheckpoint: &harness.MemoryCheckpoint{}}, &harness.Recorder{}
		told := 0 // how many moments there were when it was told of a/0001
		r.Before = func(call string) {
			if call == "add a/0001 initial" {
				if told == 0 {
					told = len(s.moments)
				}
				panic("half taken in")
			}
		}
		i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, ErrorHandler: harness.IgnoreErrors})
		for range 3 {
			w.RunFor(i, 10*time.Second)
		}
		require.Positive(t, told)
		w.DeletePods("a/0001")
		w.Compact()
		for n, content := range s.moments[told-1:] {
			r := &harness.Recorder{}
			stop := w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: &harness.MemoryCheckpoint{Content: content}}))
			time.Sleep(10 * time.Second)
			require.Equal(t, []string{"delete a/0001 unknown"}, deletionsTold(r), "moment %d of %d", told+n, len(s.moments))
			stop()
		}
	})
}
