package checkpoints_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/tests/harness"
)

// A checkpoint of another source stays, and nothing is delivered: the data that it belongs to would
// be overwritten. The reason says in what they differ.
func TestCheckpointOfAnotherSourceIsAwaited(t *testing.T) {
	factory := func(w *harness.World) informer.DynamicListerWatcherFactory {
		return w.Factory()
	}
	selecting := func(label, field string) informer.TweakListOptionsFunc {
		return func(opts *metav1.ListOptions) { opts.LabelSelector, opts.FieldSelector = label, field }
	}
	for field, other := range map[string]func(w *harness.World) cache.ListerWatcher{
		"namespace": func(w *harness.World) cache.ListerWatcher { return factory(w).ForResource("a", harness.Pods) },
		"labelSelector": func(w *harness.World) cache.ListerWatcher {
			return informer.NewFilteredListerWatcher(w.Lister(), selecting("a!=b", ""))
		},
		"fieldSelector": func(w *harness.World) cache.ListerWatcher {
			return informer.NewFilteredListerWatcher(w.Lister(), selecting("", "metadata.name!=none"))
		},
		"server": func(w *harness.World) cache.ListerWatcher { return harness.TapOn(w.Lister()) }, // nothing is known of it
		"cluster": func(w *harness.World) cache.ListerWatcher {
			require.NoError(w.T, w.Delete(harness.Namespaces, "", "kube-system"))
			w.CreateKubeSystem()
			return w.Lister()
		},
	} {
		harness.BubbleRun(t, field, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreateKubeSystem()
			w.CreatePods(harness.Keys(3)...)
			s := w.Lived(&harness.Recorder{})
			before := s.Bytes()
			var f harness.Failures
			r := &harness.Recorder{}
			i := harness.Follow(w, informer.InformerConfig{
				ListerWatcher: other(w), Handler: r, Checkpoint: s, ErrorHandler: f.Handle, CheckpointInterval: time.Minute, CheckpointChanges: 1,
			})
			w.ResetRequests()
			for n := range 2 { // a second Run of it neither
				stop := w.Run(i)
				synctest.Wait()
				harness.RequireAwaited(t, i, informer.ErrCheckpointSource)
				time.Sleep(10 * time.Minute)
				w.UpdatePod("a/0001", fmt.Sprint(n))
				w.CreatePods(fmt.Sprint("a/new", n))
				time.Sleep(10 * time.Minute)
				harness.RequireAwaited(t, i, informer.ErrCheckpointSource)
				stop()
				require.Equal(t, before, s.Bytes(), "it belongs to others")
			}
			require.Empty(t, r.Events())
			for _, verb := range w.Verbs() {
				require.NotContains(t, verb, "watch")
			}
			errs := f.Errors()
			require.Greater(t, len(errs), 10)
			require.Less(t, len(errs), 100)
			for _, err := range errs {
				require.ErrorIs(t, err, informer.ErrCheckpointSource)
				require.ErrorContains(t, err, field)
			}
			require.Equal(t, field, harness.Only[*informer.CheckpointSourceError](&f)[0].Differences[0].Field)
		})
	}
}

// Once another checkpoint is in the place of the awaited one, or the address leads to the right
// cluster again, the informer resumes.
func TestAwaitedCheckpointIsResumed(t *testing.T) {
	for _, mended := range []string{"file", "server"} {
		t.Run(mended, func(t *testing.T) {
			inTwoClusters(t, false, func(t *testing.T, c *twoClusters) {
				r := &harness.Recorder{}
				s := &harness.Lockable{MemoryCheckpoint: c.Lived(r)}
				right := s.Bytes()
				switch mended {
				case "file":
					s.Content = []byte("milk, bread, a new disk")
				case "server":
					c.replace()
				}
				i := harness.Follow(c.World, informer.InformerConfig{Handler: r, Checkpoint: s})
				c.Run(i)
				time.Sleep(10 * time.Minute)
				require.Error(t, i.Status().CheckpointError)
				require.False(t, s.IsLocked(), "its owner may use it")
				require.Empty(t, r.Events())
				c.UpdatePod("a/0001", "changed")
				s.Put(right)
				c.replaced.Store(false)
				c.CloseClientConnections()
				time.Sleep(time.Minute)
				require.Equal(t, []string{"update a/0001"}, r.Events())
				require.Empty(t, c.Lists())
				require.NoError(t, i.Status().LastError)
				require.NoError(t, i.Status().CheckpointError)
				require.True(t, s.IsLocked())
			})
		})
	}
}

// With BeginAnew, a checkpoint that is not the informer's is reported and replaced, and everything
// is listed.
func TestBeginAnewReplacesACheckpoint(t *testing.T) {
	for name, spoil := range map[string]func(w *harness.World, s *harness.MemoryCheckpoint){
		"another cluster": func(w *harness.World, _ *harness.MemoryCheckpoint) {
			require.NoError(w.T, w.Delete(harness.Namespaces, "", "kube-system"))
			w.CreateKubeSystem()
		},
		"no checkpoint": func(_ *harness.World, s *harness.MemoryCheckpoint) { s.Content = []byte("milk, bread, a new disk") },
		"newer version": func(_ *harness.World, s *harness.MemoryCheckpoint) { s.Content[9] = checkpoint.VersionJournaled + 1 },
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreateKubeSystem()
			w.CreatePods(harness.Keys(3)...)
			s := w.Lived(&harness.Recorder{})
			spoil(w, s)
			var f harness.Failures
			r := &harness.Recorder{}
			i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, BeginAnew: true, ErrorHandler: f.Handle})
			stop := w.Run(i)
			time.Sleep(time.Minute)
			require.True(t, i.HasSynced())
			require.NoError(t, i.Status().CheckpointError)
			w.RequireState(r)
			require.Len(t, w.Lists(), 1)
			unused := harness.Only[*informer.UnusedCheckpointError](&f)
			require.Len(t, unused, 1)
			require.False(t, unused[0].NeverSaved)
			stop()
			w.RequireSaved(s)

			r.Forget()
			w.ResetRequests()
			w.UpdatePod("a/0001", "changed")
			defer w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}))()
			time.Sleep(time.Minute)
			require.Equal(t, []string{"update a/0001"}, r.Events())
			require.Empty(t, w.Lists())
		})
	}
}

// An informer that may read kube-system only at times resumes all the same.
func TestACheckpointOfAClusterThatIsUnknownForAWhile(t *testing.T) {
	var forbidden atomic.Bool
	wrap := harness.Refusing(http.StatusForbidden, func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "kube-system") && forbidden.Load()
	})
	harness.Bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *harness.World) {
		w.CreateKubeSystem()
		w.CreatePods(harness.Keys(3)...)
		r := &harness.Recorder{}
		s := w.Lived(r)
		cluster := harness.ReadSaved(t, s.Bytes()).Metadata["cluster"]
		require.NotEmpty(t, cluster)
		forbidden.Store(true)
		i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		for range 2 {
			r.Forget()
			w.UpdatePod("a/0001", w.ResourceVersion())
			w.RunFor(i, time.Minute)
			require.Equal(t, []string{"update a/0001"}, r.Events())
			require.Empty(t, w.Lists())
			require.Equal(t, cluster, harness.ReadSaved(t, s.Bytes()).Metadata["cluster"], "what was known stays")
		}
	})
}

// A server that answers each question for its cluster with an error is asked for some minutes, and
// then followed without.
func TestAServerThatNeverSaysWhichClusterItIs(t *testing.T) {
	var asked atomic.Int32
	wrap := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "kube-system") {
			asked.Add(1)
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return false
		}
		return true
	})
	harness.Bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		r := &harness.Recorder{}
		i := harness.Running(w, informer.InformerConfig{Handler: r, Checkpoint: &harness.MemoryCheckpoint{}})
		time.Sleep(time.Minute)
		require.False(t, i.HasSynced())
		time.Sleep(20 * time.Minute)
		require.True(t, i.HasSynced())
		require.Less(t, asked.Load(), int32(30))
		w.RequireState(r)
	})
}

// A second Run that meets another cluster at the same address does not go on from a
// version of the one before: it says so, and lists.
func TestASecondRunOnAnotherCluster(t *testing.T) {
	var noLists atomic.Bool
	wrap := harness.Refusing(http.StatusServiceUnavailable, func(r *http.Request) bool {
		return noLists.Load() && strings.HasSuffix(r.URL.Path, "/pods")
	})
	harness.Bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *harness.World) {
		w.CreateKubeSystem()
		w.CreatePods(harness.Keys(3)...)
		var f harness.Failures
		r, s := &harness.Recorder{}, &harness.MemoryCheckpoint{}
		i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, ErrorHandler: f.Handle})
		stop := w.Run(i)
		time.Sleep(time.Minute)
		stop()
		require.NoError(t, w.Delete(harness.Namespaces, "", "kube-system"))
		w.CreateKubeSystem()
		w.UpdatePod("a/0001", "changed")
		for n := range 2 { // also where it could not list the first time
			w.ResetRequests()
			if n == 0 {
				noLists.Store(true)
			}
			stop = w.Run(i)
			time.Sleep(time.Minute)
			noLists.Store(false)
			stop()
			require.NotEmpty(t, w.Lists(), "asked %v", w.Verbs())
		}
		w.RequireState(r)
		w.RequireSaved(s)
		require.Equal(t, "cluster", harness.Only[*informer.CheckpointSourceError](&f)[0].Differences[0].Field)

		w.ResetRequests()
		w.Run(i)
		time.Sleep(time.Minute)
		require.Empty(t, w.Lists())
		require.Len(t, harness.Only[*informer.CheckpointSourceError](&f), 1)
	})
}

// A file that is no checkpoint is not replaced: somebody has named the wrong path.
func TestAForeignFileIsLeftAsItIs(t *testing.T) {
	requireLeft(t, informer.ErrCheckpointFormat, func(*harness.World) []byte { return []byte("milk, bread, a new disk") })
}

// A checkpoint of a newer version of the library is not replaced by an older one.
func TestANewerCheckpointStays(t *testing.T) {
	requireLeft(t, informer.ErrCheckpointVersion, func(w *harness.World) []byte {
		newer := w.Lived(&harness.Recorder{}).Bytes()
		newer[9] = checkpoint.VersionJournaled + 1
		return newer
	})
}

// requireLeft requires that an informer waits for an hour with an error that names the file of its
// checkpoint, delivers nothing, and leaves the file as it is.
func requireLeft(t *testing.T, is error, content func(w *harness.World) []byte) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		before, path := content(w), filepath.Join(t.TempDir(), "pods")
		require.NoError(t, os.WriteFile(path, before, 0o600))
		var f harness.Failures
		r := &harness.Recorder{}
		i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: informer.FileCheckpoint(path), ErrorHandler: f.Handle})
		require.NoError(t, i.Status().CheckpointError)
		stop := w.Run(i)
		time.Sleep(time.Hour)
		harness.RequireAwaited(t, i, is)
		require.Empty(t, r.Events())
		status := i.Status()
		require.Equal(t, path, status.Checkpoint)
		require.Equal(t, path, harness.ErrorAs[*informer.UnusedCheckpointError](t, status.CheckpointError).Checkpoint)
		require.ErrorContains(t, status.CheckpointError, path)
		stop()
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, before, after)
		require.ErrorIs(t, f.Errors()[0], is)
		require.ErrorContains(t, f.Errors()[0], path)
	})
}

// A checkpoint that is damaged, cut, or empty is a reported cold start, and replaced.
func TestADamagedCheckpointIsReplaced(t *testing.T) {
	damages := map[string]func(b []byte) []byte{
		"0 bytes":     func([]byte) []byte { return []byte{} },
		"a bit":       func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
		"checksum":    func(b []byte) []byte { b[len(b)-1] ^= 4; return b },
		"a hole":      func(b []byte) []byte { copy(b[20:], make([]byte, 16)); return b },
		"zeros":       func(b []byte) []byte { return append(b[:20], make([]byte, len(b)-20)...) },
		"cut twice":   func(b []byte) []byte { return append(b[:30], b[50:]...) },
		"cut at once": func(b []byte) []byte { return b[:3] },
		"continued":   func(b []byte) []byte { return append(b, 0) },
	}
	for _, at := range []int{8, 9, 10, 15, 40, 90, -20, -5, -1} {
		damages[fmt.Sprintf("cut at %d", at)] = func(b []byte) []byte { return b[:(at+len(b))%len(b)] }
	}
	for name, damage := range damages {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(5)...)
			s := w.Lived(&harness.Recorder{})
			path := filepath.Join(t.TempDir(), "pods")
			require.NoError(t, os.WriteFile(path, damage(s.Bytes()), 0o600))
			var f harness.Failures
			r := &harness.Recorder{}
			i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: informer.FileCheckpoint(path), ErrorHandler: f.Handle})
			stop := w.Run(i)
			time.Sleep(time.Minute)
			require.True(t, i.HasSynced())
			w.RequireState(r)
			require.Contains(t, r.Events(), "add a/0001 initial", "a cold start")
			stop()
			harness.ErrorAs[*informer.CheckpointError](t, f.One(t))

			w.UpdatePod("a/0001", "changed")
			w.ResetRequests()
			r.Forget()
			w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: informer.FileCheckpoint(path)}))
			time.Sleep(time.Minute)
			require.Equal(t, []string{"update a/0001"}, r.Events())
			require.Empty(t, w.Lists())
		})
	}
}

// An informer waits for a store that cannot be read, and says so in its Status. It then goes on
// from the checkpoint, and neither tells everything again nor misses a deletion.
func TestAStoreThatFailsToLoad(t *testing.T) {
	broken := errors.New("the disk is on fire")
	for name, load := range map[string]func(content []byte) (io.ReadCloser, error){
		"Load": func([]byte) (io.ReadCloser, error) { return nil, broken },
		"Read": func(content []byte) (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(bytes.NewReader(content[:len(content)/2]), iotest.ErrReader(broken))), nil
		},
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(5)...)
			r := &harness.Recorder{}
			s := w.Lived(r)
			content := s.Bytes()
			var mended atomic.Bool
			s.OnLoad = func(context.Context) (io.ReadCloser, error) {
				if mended.Load() {
					return nil, harness.ErrPass
				}
				return load(content)
			}
			w.DeletePods("a/0001")
			w.Compact()
			var f harness.Failures
			i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, ErrorHandler: f.Handle})
			stop := w.Run(i)
			time.Sleep(time.Hour)
			require.Empty(t, r.Events())
			require.Equal(t, content, s.Bytes())
			require.ErrorIs(t, i.Status().LastError, broken)
			require.Equal(t, informer.PhaseBackoff, i.Status().Phase)
			require.Less(t, len(f.Errors()), 130, "twice a minute at most")
			if name == "Load" {
				require.Equal(t, "CheckpointStore.Load", harness.Only[*informer.StoreError](&f)[0].Op)
			}
			stop()
			require.Equal(t, content, s.Bytes(), "nothing that could not be read is replaced")

			w.Run(i)
			time.Sleep(time.Minute)
			mended.Store(true)
			time.Sleep(time.Minute)
			require.True(t, i.HasSynced())
			require.Contains(t, r.Events(), "delete a/0001 unknown")
			w.RequireState(r)
			require.NoError(t, i.Status().LastError)
			w.RequireSaved(s)
		})
	}
}

// What a store fails with when all of a checkpoint was read is reported, and no more.
func TestAStoreThatFailsToClose(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(5)...)
		r := &harness.Recorder{}
		s := w.Lived(r)
		broken := errors.New("the disk is on fire")
		content := s.Bytes()
		s.OnLoad = func(context.Context) (io.ReadCloser, error) {
			return closeFails{bytes.NewReader(content), broken}, nil
		}
		var f harness.Failures
		i := harness.Running(w, informer.InformerConfig{Handler: r, Checkpoint: s, ErrorHandler: f.Handle})
		time.Sleep(time.Minute)
		require.ErrorIs(t, f.One(t), broken)
		require.True(t, i.HasSynced())
		require.Empty(t, r.Events())
	})
}

type closeFails struct {
	io.Reader
	err error
}

func (c closeFails) Close() error { return c.err }

// A Save that fails is reported and tried again, in the end after an interval; what was saved
// before stays, and the informer runs on.
func TestAStoreThatFailsToSave(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		var full atomic.Bool
		full.Store(true)
		s := &harness.MemoryCheckpoint{OnSave: func(context.Context, int) error {
			if full.Load() {
				return &os.PathError{Op: "write", Path: "pods", Err: syscall.ENOSPC}
			}
			return nil
		}}
		var f harness.Failures
		r := &harness.Recorder{}
		i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, ErrorHandler: f.Handle, CheckpointInterval: time.Minute})
		stop := w.Run(i)
		time.Sleep(10*time.Minute + time.Second)
		require.True(t, i.HasSynced())
		errs := f.Errors()
		require.InDelta(t, 16, len(errs), 1, "after 0, 1, 3, 7, 15, 31 and 63 s, and then once a minute")
		for _, err := range errs {
			require.ErrorIs(t, err, syscall.ENOSPC)
		}
		require.Equal(t, "CheckpointStore.Save", harness.Only[*informer.StoreError](&f)[0].Op)
		w.UpdatePod("a/0001", "changed")
		time.Sleep(time.Minute)
		w.RequireState(r)
		require.ErrorIs(t, i.Status().LastError, syscall.ENOSPC)
		full.Store(false)
		time.Sleep(2 * time.Minute)
		w.RequireSaved(s)
		require.NoError(t, i.Status().LastError)
		require.Zero(t, i.Status().LastErrorTime)

		full.Store(true)
		w.UpdatePod("a/0001", "again")
		before := s.Bytes()
		stop()
		require.Equal(t, before, s.Bytes())
		errs, _ = f.All()
		require.ErrorIs(t, errs[len(errs)-1], syscall.ENOSPC, "the last one too")
	})
}

// The directory of a file may not be there yet, as where a volume is mounted late: the informer
// waits for it.
func TestADirectoryThatComesLate(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		directory := filepath.Join(t.TempDir(), "later")
		var f harness.Failures
		r := &harness.Recorder{}
		i := harness.Follow(w, informer.InformerConfig{
			Handler: r, Checkpoint: informer.FileCheckpoint(filepath.Join(directory, "pods")), ErrorHandler: f.Handle,
		})
		stop := w.Run(i)
		time.Sleep(5 * time.Minute)
		require.Empty(t, r.Events())
		require.ErrorIs(t, i.Status().LastError, os.ErrNotExist)
		errs := f.Errors()
		require.Greater(t, len(errs), 2)
		require.Less(t, len(errs), 18)
		for _, err := range errs {
			require.ErrorIs(t, err, os.ErrNotExist)
			require.ErrorContains(t, err, directory)
		}
		require.NoError(t, os.Mkdir(directory, 0o700))
		time.Sleep(2 * time.Minute)
		w.RequireState(r)
		require.NoError(t, i.Status().LastError)
		stop()
		content, err := os.ReadFile(filepath.Join(directory, "pods"))
		require.NoError(t, err)
		require.Equal(t, w.ResourceVersion(), harness.ReadSaved(t, content).Resume)
	})
}

// A store that another informer has locked is neither read nor written, however long that
// takes. Once it is free, the informer goes on from what the other one has left.
func TestAStoreThatIsInUse(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		r := &harness.Recorder{}
		s := &harness.Lockable{MemoryCheckpoint: w.Lived(r)}
		unlock, err := s.Lock()
		require.NoError(t, err)
		before := s.Bytes()
		w.DeletePods("a/0001")
		w.Compact()
		var free atomic.Bool
		s.OnLoad = func(context.Context) (io.ReadCloser, error) {
			require.True(t, free.Load(), "read although it is in use")
			return nil, harness.ErrPass
		}
		var f harness.Failures
		i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, ErrorHandler: f.Handle})
		stop := w.Run(i)
		time.Sleep(5 * time.Minute)
		require.Empty(t, r.Events())
		require.ErrorIs(t, i.Status().LastError, informer.ErrCheckpointInUse)
		require.Equal(t, before, s.Bytes())
		errs := f.Errors()
		require.Greater(t, len(errs), 5)
		require.Less(t, len(errs), 18)
		for _, err := range errs {
			require.ErrorIs(t, err, informer.ErrCheckpointInUse)
		}
		require.Equal(t, "CheckpointStore.Lock", harness.Only[*informer.StoreError](&f)[0].Op)

		free.Store(true)
		require.NoError(t, unlock())
		time.Sleep(3 * time.Second)
		require.Equal(t, []string{"delete a/0001 unknown"}, deletionsTold(r))
		require.True(t, i.HasSynced())
		require.NoError(t, i.Status().LastError)
		w.RequireSaved(s.MemoryCheckpoint)
		require.True(t, s.IsLocked())
		stop()
		require.False(t, s.IsLocked())
	})
}

// deletionsTold are the deletions that a handler was told.
func deletionsTold(r *harness.Recorder) (deleted []string) {
	for _, call := range r.Events() {
		if strings.HasPrefix(call, "delete") {
			deleted = append(deleted, call)
		}
	}
	return deleted
}

// An informer that stops while it waits for a store leaves what is in it alone.
func TestAStoppedWaitForAStoreSavesNothing(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s := &harness.Lockable{MemoryCheckpoint: w.Lived(&harness.Recorder{})}
		_, err := s.Lock()
		require.NoError(t, err)
		before := s.Bytes()
		storage := informer.NewResourceVersionStorage()
		require.NoError(t, storage.Replace(map[string]interface{}{"a/elsewhere": "1"}))
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, Storage: storage, Checkpoint: s})
		for range 2 {
			w.RunFor(i, time.Minute)
			require.Equal(t, before, s.Bytes())
			require.True(t, s.IsLocked())
		}
	})
}

// A server that is down when an informer starts cannot say which cluster it is of: that
// is reported, and the checkpoint is used when it is up.
func TestAServerThatIsDownAtTheStart(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreateKubeSystem()
		w.CreatePods(harness.Keys(3)...)
		r := &harness.Recorder{}
		s := w.Lived(r)
		w.UpdatePod("a/0001", "changed")
		w.DeletePods("a/0002")
		var f harness.Failures
		i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, ErrorHandler: f.Handle})
		w.Blocked.Lock()
		stop := w.Run(i)
		time.Sleep(10 * time.Minute)
		require.False(t, i.HasSynced())
		require.Equal(t, informer.PhaseBackoff, i.Status().Phase)
		errs := f.Errors()
		require.ErrorContains(t, errs[0], "kube-system")
		require.Greater(t, len(errs), 10)
		require.Less(t, len(errs), 40)
		stop() // while it waits
		require.Equal(t, informer.PhaseStopped, i.Status().Phase)

		stop = w.Run(i)
		time.Sleep(time.Minute)
		w.Blocked.Unlock()
		time.Sleep(2 * time.Minute)
		require.True(t, i.HasSynced())
		require.Equal(t, []string{"update a/0001", "delete a/0002"}, r.Events())
		require.Empty(t, w.Lists())
		require.NoError(t, i.Status().LastError)
		stop()
		w.RequireSaved(s)
	})
}

// Run returns when ctx ends while the store loads, and the next Run loads again.
func TestRunEndsWhileItLoads(t *testing.T) {
	for _, where := range []string{"Load", "Read"} {
		harness.BubbleRun(t, where, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(3)...)
			r := &harness.Recorder{}
			s := w.Lived(r)
			var slow atomic.Bool
			slow.Store(true)
			s.OnLoad = func(ctx context.Context) (io.ReadCloser, error) {
				switch {
				case !slow.Load():
					return nil, harness.ErrPass
				case where == "Load":
					<-ctx.Done()
					return nil, context.Cause(ctx)
				default:
					return io.NopCloser(io.MultiReader(bytes.NewReader(s.Bytes()[:12]), endsWith{ctx})), nil
				}
			}
			i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
			stop := w.Run(i)
			time.Sleep(time.Minute)
			require.False(t, i.HasSynced())
			stop()
			require.Equal(t, informer.PhaseStopped, i.Status().Phase)
			require.Empty(t, w.Lists())

			slow.Store(false)
			w.DeletePods("a/0001")
			w.Run(i)
			time.Sleep(time.Minute)
			require.Equal(t, []string{"delete a/0001"}, r.Events())
			require.Empty(t, w.Lists())
		})
	}
}

// endsWith is a reader that waits for the end of a context.
type endsWith struct{ ctx context.Context }

func (r endsWith) Read([]byte) (int, error) {
	<-r.ctx.Done()
	return 0, context.Cause(r.ctx)
}

// The Save that is under way when ctx ends is given up, and done again at the end.
func TestRunEndsWhileItSaves(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s := &harness.MemoryCheckpoint{OnSave: func(ctx context.Context, n int) error {
			if n > 1 { // the first one waits
				return nil
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}}
		var f harness.Failures
		r := &harness.Recorder{}
		stop := w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, ErrorHandler: f.Handle}))
		time.Sleep(time.Minute)
		require.Nil(t, s.Bytes())
		stop()
		w.RequireSaved(s)
		require.Empty(t, f.Errors())
	})
}

// The Save at the end has 30 seconds.
func TestTheLastSaveIsGivenUp(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s := &harness.MemoryCheckpoint{OnSave: func(ctx context.Context, n int) error {
			if n > 1 {
				<-ctx.Done()
			}
			return nil
		}}
		var f harness.Failures
		r := &harness.Recorder{}
		i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: &harness.Lockable{MemoryCheckpoint: s}, ErrorHandler: f.Handle})
		stop := w.Run(i)
		synctest.Wait()
		before := s.Bytes()
		w.UpdatePod("a/0001", "changed")
		synctest.Wait()
		began := time.Now()
		stop()
		require.Equal(t, 30*time.Second, time.Since(began))
		require.Equal(t, before, s.Bytes())
		require.ErrorIs(t, f.One(t), context.DeadlineExceeded)
	})
}

// Run returns after the handler, the Save and the unlocking have.
func TestRunReturnsAfterTheCheckpoint(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		var order []string
		s := &harness.MemoryCheckpoint{}
		r := &harness.Recorder{}
		i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: noting{&harness.Lockable{MemoryCheckpoint: s}, &order}})
		stop := w.Run(i)
		synctest.Wait()
		order = nil
		slow := time.Minute
		r.Before = func(string) { time.Sleep(slow); order = append(order, "handled") }
		w.UpdatePod("a/0001", "changed")
		synctest.Wait()
		s.OnSave = func(context.Context, int) error {
			time.Sleep(10 * time.Second)
			order = append(order, "saved")
			return nil
		}
		stop()
		require.Equal(t, []string{"handled", "saved", "unlocked"}, order)
		w.RequireSaved(s)
	})
}

type noting struct {
	*harness.Lockable
	order *[]string
}

func (n noting) Lock() (func() error, error) {
	unlock, err := n.Lockable.Lock()
	return func() error {
		*n.order = append(*n.order, "unlocked")
		return unlock()
	}, err
}

// An object whose key no checkpoint can hold is skipped and reported, and everything else is
// delivered and saved.
func TestAKeyThatIsTooLongForACheckpoint(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		long := "a/" + strings.Repeat("x", 2<<20)
		var f harness.Failures
		r, s := &harness.Recorder{}, &harness.MemoryCheckpoint{}
		plain := harness.Script{
			List: harness.Listing("9", harness.Pod("a/1", "5"), harness.Pod(long, "6"), harness.Pod("a/2", "7")),
			Watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				fake := watch.NewFake()
				go func() {
					fake.Modify(harness.Pod(long, "10"))
					fake.Delete(harness.Pod(long, "11"))
					fake.Modify(harness.Pod("a/1", "12"))
				}()
				return fake, nil
			},
		}
		w.RunFor(harness.Follow(w, informer.InformerConfig{ListerWatcher: plain.LW(), Handler: r, Checkpoint: s, ErrorHandler: f.Handle}), time.Minute)
		require.Equal(t, []string{"add a/1 initial", "add a/2 initial", "update a/1"}, r.Events())
		require.Equal(t, r.State(), harness.ReadSaved(t, s.Bytes()).State())
		require.Empty(t, harness.Only[*informer.CheckpointError](&f))
		skipped := harness.Only[*informer.ItemError](&f)
		require.Len(t, skipped, 3)
		require.Less(t, len(skipped[0].Error()), 1000)
	})
}

// A storage takes no key that a checkpoint cannot hold.
func TestAStorageRefusesWhatACheckpointCannotHold(t *testing.T) {
	s := informer.NewResourceVersionStorage()
	long := strings.Repeat("x", 1<<20+1)
	require.Error(t, s.Replace(map[string]interface{}{long: "1"}))
	require.Error(t, s.Replace(map[string]interface{}{"a/1": long}))
	require.Error(t, s.Add(harness.PartialObject("a", long, "1", "")))
	require.Error(t, s.Update(harness.PartialObject("a", "1", "1", long)))
	require.Zero(t, s.Len())
}

// Selectors that are too long for the metadata of a checkpoint are reported as well.
func TestASelectorThatIsTooLongForACheckpoint(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		long := "app!=a"
		for n := range 8000 {
			long += fmt.Sprintf(",l%06d!=x", n)
		}
		var f harness.Failures
		r := &harness.Recorder{}
		s := &harness.MemoryCheckpoint{}
		plain := harness.Script{List: harness.Listing("9", harness.Pod("a/1", "5")), Watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return harness.Open()() }}
		lw := informer.NewFilteredListerWatcher(plain.LW(), func(opts *metav1.ListOptions) { opts.LabelSelector = long })
		i := harness.Follow(w, informer.InformerConfig{ListerWatcher: lw, Handler: r, Checkpoint: s, ErrorHandler: f.Handle})
		stop := w.Run(i)
		time.Sleep(5 * time.Minute)
		require.True(t, i.HasSynced())
		require.Equal(t, []string{"add a/1 initial"}, r.Events())
		stop()
		require.Nil(t, s.Bytes())
		require.NotEmpty(t, harness.Only[*informer.CheckpointError](&f))
	})
}

// A tweak may depend on what is set between the making of an informer and its Run.
func TestSelectorsOfACheckpointAreThoseOfTheRun(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		selector := ""
		var f harness.Failures
		s := &harness.MemoryCheckpoint{}
		own := cache.ToListerWatcherWithContext(w.Lister())
		others := &cache.ListWatch{ListWithContextFunc: own.ListWithContext, WatchFuncWithContext: own.WatchWithContext}
		for range 2 {
			r := &harness.Recorder{}
			i := harness.Follow(w, informer.InformerConfig{
				ListerWatcher: informer.NewFilteredListerWatcher(others, func(opts *metav1.ListOptions) { opts.LabelSelector = selector }),
				Handler:       r, Checkpoint: s, ErrorHandler: f.Handle,
			})
			selector = "a!=b"
			stop := w.Run(i)
			time.Sleep(10 * time.Second)
			require.True(t, i.HasSynced())
			stop()
		}
		require.Empty(t, harness.Only[*informer.CheckpointSourceError](&f))
	})
}
