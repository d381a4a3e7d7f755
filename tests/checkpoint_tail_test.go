package tests_test

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
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		path := filepath.Join(t.TempDir(), "pods")
		r := &recorder{}
		config := func() informer.InformerConfig {
			return informer.InformerConfig{Handler: r, Checkpoint: informer.FileCheckpoint(path)}
		}
		w.create(keys(3)...)
		stop := w.run(follow(w, config()))
		time.Sleep(10 * time.Second)
		w.create("a/new")
		time.Sleep(10 * time.Second)
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		stop()
		whole := len(readSaved(t, content).begun) // of a/new, before its call
		require.Equal(t, 1, whole)
		w.remove("a/new", "a/0001")
		w.Compact()
		random := rand.New(rand.NewPCG(1, 2))
		for range 20 {
			cut := len(content) - random.IntN(24)
			require.NoError(t, os.WriteFile(path, content[:cut], 0o600))
			r.forget()
			stop := w.run(follow(w, config()))
			time.Sleep(10 * time.Second)
			require.Contains(t, deletionsTold(r), "delete a/0001 unknown")
			if cut == len(content) {
				require.Contains(t, deletionsTold(r), "delete a/new unknown")
			}
			stop()
			again, err := os.ReadFile(path)
			require.NoError(t, err)
			left := readSaved(t, again)
			require.Equal(t, w.ResourceVersion(), left.resume)
			require.Len(t, left.versions, 2)
			require.Empty(t, left.begun)
		}
	})
}

// memoryJournal is a memoryCheckpoint that takes a journal, and keeps what it had after each change.
type memoryJournal struct {
	*memoryCheckpoint
	moments [][]byte
}

var _ informer.CheckpointAppender = &memoryJournal{}

func (s *memoryJournal) Save(ctx context.Context, write func(io.Writer) error) error {
	err := s.memoryCheckpoint.Save(ctx, write)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moments = append(s.moments, s.content)
	return err
}

func (s *memoryJournal) Append(_ context.Context, b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.content = slices.Concat(s.content, b)
	s.moments = append(s.moments, s.content)
	return nil
}

func (s *memoryJournal) Sync(context.Context) error { return nil }

// A key that a handler may have begun to take in is in a store at every moment, also between a save
// of the whole checkpoint, such as that at the beginning of a second Run, and what is appended
// next.
func TestKeysThatAreBegunAreInTheStoreAtEveryMoment(t *testing.T) {
	survivePanics(t)
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		s, r := &memoryJournal{memoryCheckpoint: &memoryCheckpoint{}}, &recorder{}
		told := 0 // how many moments there were when it was told of a/0001
		r.before = func(call string) {
			if call == "add a/0001 initial" {
				if told == 0 {
					told = len(s.moments)
				}
				panic("half taken in")
			}
		}
		i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, ErrorHandler: quiet})
		for range 3 {
			stop := w.run(i)
			time.Sleep(10 * time.Second)
			stop()
		}
		require.Positive(t, told)
		w.remove("a/0001")
		w.Compact()
		for n, content := range s.moments[told-1:] {
			r := &recorder{}
			stop := w.run(follow(w, informer.InformerConfig{Handler: r, Checkpoint: &memoryCheckpoint{content: content}}))
			time.Sleep(10 * time.Second)
			require.Equal(t, []string{"delete a/0001 unknown"}, deletionsTold(r), "moment %d of %d", told+n, len(s.moments))
			stop()
		}
	})
}
