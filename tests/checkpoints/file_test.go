package checkpoints_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// save saves text, in pieces.
func save(store informer.CheckpointStore, text string) error {
	return store.Save(context.Background(), func(w io.Writer) error {
		for b := []byte(text); len(b) > 0; {
			n, err := w.Write(b[:min(len(b), 4<<10)])
			if err != nil {
				return err
			}
			b = b[n:]
		}
		return nil
	})
}

// absent is what kept returns where there is no checkpoint.
const absent = "no checkpoint"

// kept returns what a store has.
func kept(t require.TestingT, store informer.CheckpointStore) string {
	r, err := store.Load(context.Background())
	if errors.Is(err, fs.ErrNotExist) {
		return absent
	}
	require.NoError(t, err)
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	return string(b)
}

// names are those in a directory.
func names(t require.TestingT, directory string) (names []string) {
	entries, err := os.ReadDir(directory)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// lock locks a file, or returns the error of it.
func lock(path string) (unlock func() error, err error) {
	return informer.FileCheckpoint(path).(informer.CheckpointLocker).Lock()
}

// requireFree checks that a file is not held, and that nothing was left beside it.
func requireFree(t require.TestingT, path string) {
	unlock, err := lock(path)
	require.NoError(t, err)
	leftovers, err := filepath.Glob(path + ".tmp*")
	require.NoError(t, err)
	require.Empty(t, leftovers)
	require.NoError(t, unlock())
}

func TestFileCheckpoint(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pods")
	store := informer.FileCheckpoint(path)
	require.Equal(t, absent, kept(t, store))
	require.Empty(t, names(t, filepath.Dir(path)), "to load leaves nothing")

	require.NoError(t, save(store, "the first, which is longer"))
	require.Equal(t, "the first, which is longer", kept(t, store))
	first, err := store.Load(t.Context())
	require.NoError(t, err)
	require.NoError(t, store.Save(t.Context(), func(w io.Writer) error {
		require.Equal(t, "the first, which is longer", kept(t, store), "until it is saved")
		_, err := io.WriteString(w, "the second")
		return err
	}))
	require.Equal(t, "the second", kept(t, informer.FileCheckpoint(path)))
	if runtime.GOOS != "windows" {
		b, err := io.ReadAll(first)
		require.NoError(t, err)
		require.Equal(t, "the first, which is longer", string(b), "a Load under way is not disturbed")
	}
	require.NoError(t, first.Close())

	require.NoError(t, save(store, ""))
	require.Equal(t, "", kept(t, store))
	require.Equal(t, []string{"pods", "pods.lock"}, names(t, filepath.Dir(path)))
}

func TestFileCheckpointOfAStorage(t *testing.T) {
	store := informer.FileCheckpoint(filepath.Join(t.TempDir(), "pods"))
	s := informer.NewResourceVersionStorage()
	for i := range 5000 {
		require.NoError(t, s.Add(harness.PartialObject("a", strconv.Itoa(i), "7", string(podUID(i)))))
	}
	require.NoError(t, store.Save(t.Context(), func(w io.Writer) error {
		_, err := s.WriteTo(w)
		return err
	}))
	r, err := store.Load(t.Context())
	require.NoError(t, err)
	read := informer.NewResourceVersionStorage()
	_, err = read.ReadFrom(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(t, held(t, s), held(t, read))
}

func TestFileCheckpointThatIsEmpty(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pods")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	store := informer.FileCheckpoint(path)
	r, err := store.Load(t.Context())
	require.NoError(t, err)
	_, err = informer.NewResourceVersionStorage().ReadFrom(r)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.NoError(t, r.Close())
	require.NoError(t, save(store, "text"))
	require.Equal(t, "text", kept(t, store))
}

func TestFileCheckpointPermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has others")
	}
	path := filepath.Join(t.TempDir(), "pods")
	store := informer.FileCheckpoint(path)
	mode := func() fs.FileMode {
		info, err := os.Stat(path)
		require.NoError(t, err)
		return info.Mode()
	}
	require.NoError(t, save(store, "1"))
	require.Equal(t, fs.FileMode(0o600), mode())
	for _, m := range []fs.FileMode{0o664, 0o440} {
		require.NoError(t, os.Chmod(path, m))
		require.NoError(t, save(store, "2"))
		require.Equal(t, m, mode())
	}
}

// What may happen while it is written leaves what was there.
func TestFileCheckpointIsAllOrNothing(t *testing.T) {
	boom := errors.New("boom")
	for name, test := range map[string]struct {
		write func(cancel func(), w io.Writer) error
		is    error
		says  string
	}{
		"an error at once":   {func(func(), io.Writer) error { return boom }, boom, "write: boom"},
		"an error, later on": {func(_ func(), w io.Writer) error { _, err := io.WriteString(w, "half"); return errors.Join(err, boom) }, boom, "write: boom"},
		"a disk that is full": {func(_ func(), w io.Writer) error {
			_, err := io.WriteString(w, "half")
			return errors.Join(err, &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
		}, syscall.ENOSPC, "write: write x: no space left on device"},
		"the context's end before a write": {func(cancel func(), w io.Writer) error {
			if _, err := io.WriteString(w, "half"); err != nil {
				return err
			}
			cancel()
			_, err := io.WriteString(w, "more")
			return err
		}, context.Canceled, "write: context canceled"},
		"the context's end before a write whose error is not looked at": {func(cancel func(), w io.Writer) error {
			cancel()
			_, _ = io.WriteString(w, "more")
			return nil
		}, context.Canceled, "write: context canceled"},
		"the context's end after the writes": {func(cancel func(), w io.Writer) error {
			_, err := io.WriteString(w, "all")
			cancel()
			return err
		}, context.Canceled, "sync: context canceled"},
	} {
		for _, before := range []string{absent, "before"} {
			t.Run(name+", "+before, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "pods")
				store := informer.FileCheckpoint(path)
				if before != absent {
					require.NoError(t, save(store, before))
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				err := store.Save(ctx, func(w io.Writer) error { return test.write(cancel, w) })
				require.ErrorIs(t, err, test.is)
				require.ErrorContains(t, err, "checkpoint "+path+": "+test.says)
				require.Equal(t, before, kept(t, store))
				require.NotContains(t, fmt.Sprint(names(t, filepath.Dir(path))), ".tmp-")
				requireFree(t, path)
				require.NoError(t, save(store, "after"))
				require.Equal(t, "after", kept(t, store))
			})
		}
	}
}

func TestFileCheckpointWhenAWritePanics(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pods")
	store := informer.FileCheckpoint(path)
	require.NoError(t, save(store, "before"))
	half := func(then func()) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, "half")
			then()
			return err
		}
	}
	require.PanicsWithValue(t, "boom", func() {
		_ = store.Save(t.Context(), half(func() { panic("boom") }))
	})
	require.Equal(t, []string{"pods", "pods.lock"}, names(t, filepath.Dir(path)))
	var wg sync.WaitGroup
	wg.Go(func() { _ = store.Save(context.Background(), half(runtime.Goexit)) })
	wg.Wait()
	require.Equal(t, []string{"pods", "pods.lock"}, names(t, filepath.Dir(path)))
	require.Equal(t, "before", kept(t, store))
	requireFree(t, path)
	require.NoError(t, save(store, "after"))
}

func TestFileCheckpointAfterTheContextsEnd(t *testing.T) {
	directory := t.TempDir()
	store := informer.FileCheckpoint(filepath.Join(directory, "pods"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, store.Save(ctx, func(io.Writer) error { panic("called") }), context.Canceled)
	_, err := store.Load(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, names(t, directory))
}

// Saves take turns, and the wait for a turn ends with the context.
func TestFileCheckpointSavesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := informer.FileCheckpoint(filepath.Join(t.TempDir(), "pods"))
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, store.Save(t.Context(), func(w io.Writer) error {
			time.AfterFunc(time.Millisecond, cancel) // when the other one waits
			err := store.Save(ctx, func(io.Writer) error { panic("called") })
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorContains(t, err, "wait for another Save")
			_, err = io.WriteString(w, "first")
			return err
		}))
		require.Equal(t, "first", kept(t, store))
	})
}

// Many Saves and Loads at once, of one store and of another one of the same file,
// locked and not. What is loaded is always whole.
func TestFileCheckpointConcurrency(t *testing.T) {
	for _, locked := range []bool{false, true} {
		t.Run(fmt.Sprintf("locked=%v", locked), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pods")
			store, other := informer.FileCheckpoint(path), informer.FileCheckpoint(path)
			if locked {
				unlock, err := store.(informer.CheckpointLocker).Lock()
				require.NoError(t, err)
				defer func() { require.NoError(t, unlock()) }()
			}
			var writing, saved, refused atomic.Int32
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					for j := range 10 {
						v := version(1 + 10*i + j)
						err := store.Save(t.Context(), func(w io.Writer) error {
							if writing.Add(1) > 1 {
								t.Error("two write at once")
							}
							defer writing.Add(-1)
							_, err := io.WriteString(w, v)
							return err
						})
						switch {
						case err == nil:
							saved.Add(1)
						case locked || !errors.Is(err, informer.ErrCheckpointInUse):
							t.Error(err)
						}
						if err := save(other, version(1)); errors.Is(err, informer.ErrCheckpointInUse) {
							refused.Add(1)
						} else if locked || err != nil {
							t.Errorf("error of the other store: %v", err)
						}
						if text := kept(t, other); text != absent {
							versionOf(t, text)
						}
					}
				})
			}
			wg.Wait()
			if locked {
				require.EqualValues(t, 40, saved.Load())
				require.EqualValues(t, 40, refused.Load())
			}
			versionOf(t, kept(t, store))
			require.Equal(t, []string{"pods", "pods.lock"}, names(t, filepath.Dir(path)))
		})
	}
}

func TestFileCheckpointLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pods")
	store, other := informer.FileCheckpoint(path), informer.FileCheckpoint(path)
	unlock, err := store.(informer.CheckpointLocker).Lock()
	require.NoError(t, err)
	for _, s := range []informer.CheckpointStore{store, other} {
		_, err = s.(informer.CheckpointLocker).Lock()
		require.ErrorIs(t, err, informer.ErrCheckpointInUse)
		require.ErrorContains(t, err, path)
	}
	err = other.Save(t.Context(), func(io.Writer) error { panic("called") })
	require.ErrorIs(t, err, informer.ErrCheckpointInUse)
	require.ErrorContains(t, err, path)
	require.NoError(t, save(store, "held"))
	require.NoError(t, save(store, "held again"))
	require.Equal(t, "held again", kept(t, other), "to load needs no lock")

	require.NoError(t, unlock())
	unlockOther, err := other.(informer.CheckpointLocker).Lock()
	require.NoError(t, err)
	require.NoError(t, unlock(), "it is unlocked already, and not the other's")
	require.ErrorIs(t, save(store, "not held"), informer.ErrCheckpointInUse)
	require.NoError(t, save(other, "held by the other"))
	require.NoError(t, unlockOther())
	require.NoError(t, save(store, "not held"))
	require.FileExists(t, path+".lock")
}

// A Lock and a Save of one store do not mind each other; the file is locked for
// others until both have ended.
func TestFileCheckpointLocksWhileItSaves(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pods")
	store := informer.FileCheckpoint(path)
	requireLocked := func() {
		_, err := lock(path)
		require.ErrorIs(t, err, informer.ErrCheckpointInUse)
	}
	var unlock func() error
	require.NoError(t, store.Save(t.Context(), func(io.Writer) error {
		requireLocked()
		var err error
		unlock, err = store.(informer.CheckpointLocker).Lock()
		return err
	}))
	requireLocked()
	require.NoError(t, store.Save(t.Context(), func(w io.Writer) error {
		require.NoError(t, unlock())
		requireLocked()
		_, err := io.WriteString(w, "text")
		return err
	}))
	requireFree(t, path)
	require.Equal(t, "text", kept(t, store))
}

// A Lock removes what a killed process has left, and nothing else.
func TestFileCheckpointLeftovers(t *testing.T) {
	directory := t.TempDir()
	for _, name := range []string{"pods.tmp-123", "pods.tmp-9", "pods.tmp", "pods-2.tmp-1", "my-pods.tmp-1"} {
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), []byte("half"), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(directory, "pods.tmp-dir"), 0o700))
	require.NoError(t, save(informer.FileCheckpoint(filepath.Join(directory, "pods")), "text"))
	require.Equal(t, []string{"my-pods.tmp-1", "pods", "pods-2.tmp-1", "pods.lock", "pods.tmp", "pods.tmp-dir"}, names(t, directory))
}

func TestFileCheckpointLinks(t *testing.T) {
	directory := t.TempDir()
	for _, name := range []string{"data", "links"} {
		require.NoError(t, os.Mkdir(filepath.Join(directory, name), 0o700))
	}
	target := filepath.Join(directory, "data", "pods")
	link := func(to, name string) string {
		path := filepath.Join(directory, "links", name)
		if err := os.Symlink(to, path); err != nil {
			t.Skip(err)
		}
		return path
	}
	absolute := link(target, "absolute")
	paths := []string{absolute, link("../data/pods", "relative"), link("absolute", "chain"), filepath.Join(link("../data", "directory"), "pods")}
	unlock, err := lock(absolute)
	require.NoError(t, err)
	for _, path := range append(paths, target) {
		_, err := lock(path)
		require.ErrorIs(t, err, informer.ErrCheckpointInUse, "they are one file")
	}
	require.NoError(t, unlock())
	require.Equal(t, absent, kept(t, informer.FileCheckpoint(absolute)))
	for _, path := range paths {
		require.NoError(t, save(informer.FileCheckpoint(path), path))
		require.Equal(t, path, kept(t, informer.FileCheckpoint(target)))
	}
	for _, path := range paths[:3] {
		info, err := os.Lstat(path)
		require.NoError(t, err)
		require.Equal(t, fs.ModeSymlink, info.Mode().Type(), "%s is still a link", path)
	}
	require.Equal(t, []string{"pods", "pods.lock"}, names(t, filepath.Join(directory, "data")))

	loop := informer.FileCheckpoint(link("loop", "loop"))
	require.ErrorContains(t, save(loop, "text"), "too many symbolic links")
	_, err = loop.Load(t.Context())
	require.ErrorContains(t, err, "too many symbolic links")
}

func TestFileCheckpointPaths(t *testing.T) {
	directory := t.TempDir()
	file := filepath.Join(directory, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	t.Chdir(directory)
	for name, test := range map[string]struct {
		path string
		is   error
		says string
		load error // nil: there is none
	}{
		"no directory":        {filepath.Join(directory, "none", "pods"), fs.ErrNotExist, "the directory is not there", nil},
		"a directory":         {directory, fs.ErrInvalid, "is not a file but drwx", fs.ErrInvalid},
		"a file for a parent": {filepath.Join(file, "pods"), syscall.ENOTDIR, "file", syscall.ENOTDIR},
		"no path":             {"", fs.ErrInvalid, "the path is empty", fs.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && test.is == syscall.ENOTDIR {
				t.Skip("Windows says something else")
			}
			store := informer.FileCheckpoint(test.path)
			_, err := store.(informer.CheckpointLocker).Lock()
			require.ErrorIs(t, err, test.is)
			require.ErrorContains(t, err, "checkpoint "+test.path+": lock: ")
			require.ErrorContains(t, err, test.says)
			require.Equal(t, err, store.Save(t.Context(), func(io.Writer) error { panic("called") }))
			r, err := store.Load(t.Context())
			require.Nil(t, r)
			if test.load == nil {
				require.ErrorIs(t, err, fs.ErrNotExist)
				return
			}
			require.ErrorIs(t, err, test.load)
			require.NotErrorIs(t, err, fs.ErrNotExist, "not a cold start")
			require.ErrorContains(t, err, "checkpoint "+test.path+": load: ")
		})
	}
	here := informer.FileCheckpoint("pods")
	require.NoError(t, save(here, "text"))
	require.Equal(t, "text", kept(t, here))
	require.Equal(t, []string{"file", "pods", "pods.lock"}, names(t, directory))
}

// A process that is killed at any moment leaves the newest version that it has
// saved, or the one that it was saving, and no lock.
func TestFileCheckpointWhenAProcessIsKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pods")
	random := rand.New(rand.NewPCG(rand.Uint64(), 1))
	saved, amid := 0, 0
	for kills := 0; kills < 25 || amid == 0 && kills < 500; kills++ {
		p := harness.StartProcess(t, "saves", path)
		v, err := strconv.Atoi(p.Line()) // it has begun
		require.NoError(t, err)
		require.Equal(t, saved+1, v)
		saved = v
		killer := time.AfterFunc(time.Duration(random.Int64N(int64(20*time.Millisecond))), p.Kill)
		for line := p.Line(); line != ""; line = p.Line() {
			v, err := strconv.Atoi(line)
			require.NoError(t, err)
			require.Equal(t, saved+1, v)
			saved = v
		}
		p.Wait()
		killer.Stop()
		leftovers, err := filepath.Glob(path + ".tmp-*")
		require.NoError(t, err)
		require.LessOrEqual(t, len(leftovers), 1)
		amid += len(leftovers)
		text := kept(t, informer.FileCheckpoint(path))
		v = versionOf(t, text)
		require.LessOrEqual(t, saved, v)
		require.LessOrEqual(t, v, saved+1)
		saved = v
		requireFree(t, path)
		require.Equal(t, text, kept(t, informer.FileCheckpoint(path)))
	}
	t.Logf("%d of them amid a Save", amid)
	require.NotZero(t, amid)
	require.Equal(t, []string{"pods", "pods.lock"}, names(t, filepath.Dir(path)))
}

func TestFileCheckpointIsLockedByAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pods")
	store := informer.FileCheckpoint(path)
	require.NoError(t, save(store, "text"))
	p := harness.StartProcess(t, "locks", path)
	require.Equal(t, "locked", p.Line())
	_, err := lock(path)
	require.ErrorIs(t, err, informer.ErrCheckpointInUse)
	require.ErrorContains(t, err, path)
	require.ErrorIs(t, save(store, "more"), informer.ErrCheckpointInUse)
	require.Equal(t, "text", kept(t, store))
	p.Kill()
	p.Wait()
	requireFree(t, path)
	require.NoError(t, save(store, "more"))
}

// Two processes and this one save the same file, each its own version.
func TestFileCheckpointOfManyProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pods")
	store := informer.FileCheckpoint(path)
	others := []*harness.Process{harness.StartProcess(t, "competes", path), harness.StartProcess(t, "competes", path)}
	for _, p := range others {
		require.Equal(t, "begins", p.Line())
	}
	for range 100 {
		if err := save(store, version(0)); !errors.Is(err, informer.ErrCheckpointInUse) {
			require.NoError(t, err)
		}
		if text := kept(t, store); text != absent {
			versionOf(t, text)
		}
	}
	for _, p := range others {
		p.Kill()
		p.Wait()
	}
	requireFree(t, path)
}

// version is a content that tells whether it is whole.
func version(v int) string {
	random := rand.New(rand.NewPCG(uint64(v), 1))
	var b bytes.Buffer
	fmt.Fprintln(&b, v)
	for range random.IntN(3000) {
		fmt.Fprintf(&b, "%016x", random.Uint64())
	}
	return b.String()
}

// versionOf checks that a content is whole.
func versionOf(t require.TestingT, text string) int {
	var v int
	_, err := fmt.Sscanln(text, &v)
	require.NoError(t, err)
	require.True(t, text == version(v), "version %d is not whole", v)
	return v
}

var _ = harness.Role("saves", func(t require.TestingT, path string) {
	store, v := informer.FileCheckpoint(path), 0
	if text := kept(t, store); text != absent {
		v = versionOf(t, text)
	}
	if v%2 == 0 { // with and without a lock around all
		_, err := store.(informer.CheckpointLocker).Lock()
		require.NoError(t, err)
	}
	for {
		v++
		require.NoError(t, save(store, version(v)))
		fmt.Println(v)
	}
})

var _ = harness.Role("locks", func(t require.TestingT, path string) {
	_, err := lock(path)
	require.NoError(t, err)
	fmt.Println("locked")
	time.Sleep(time.Hour)
})

var _ = harness.Role("competes", func(t require.TestingT, path string) {
	fmt.Println("begins")
	store := informer.FileCheckpoint(path)
	for {
		if err := save(store, version(os.Getpid())); !errors.Is(err, informer.ErrCheckpointInUse) {
			require.NoError(t, err)
		}
	}
})

// The save with which a run begins is no watch and no failure.
func TestFirstSaveReportsNothing(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		var f harness.Failures
		file := informer.FileCheckpoint(filepath.Join(t.TempDir(), "checkpoint"))
		stop := w.Run(harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, Checkpoint: file, ErrorHandler: f.Handle}))
		synctest.Wait()
		stop()
		errs, started := f.All()
		require.Empty(t, errs)
		require.Equal(t, 1, started)
	})
}
