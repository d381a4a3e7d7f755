package tests_test

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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/internal/checkpoint"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// only are the errors of a kind among those that were reported.
func only[E error](f *failures) (of []E) {
	errs, _ := f.all()
	for _, err := range errs {
		var e E
		if errors.As(err, &e) {
			of = append(of, e)
		}
	}
	return of
}

// A checkpoint of another source stays, and nothing is delivered: the data that it belongs to would
// be overwritten. The reason says in what they differ.
func TestCheckpointOfAnotherSourceIsAwaited(t *testing.T) {
	factory := func(w *world) informer.DynamicListerWatcherFactory {
		return w.factory()
	}
	selecting := func(label, field string) informer.TweakListOptionsFunc {
		return func(opts *metav1.ListOptions) { opts.LabelSelector, opts.FieldSelector = label, field }
	}
	for field, other := range map[string]func(w *world) cache.ListerWatcher{
		"namespace": func(w *world) cache.ListerWatcher { return factory(w).ForResource("a", pods) },
		"labelSelector": func(w *world) cache.ListerWatcher {
			return informer.NewFilteredListerWatcher(w.lister(), selecting("a!=b", ""))
		},
		"fieldSelector": func(w *world) cache.ListerWatcher {
			return informer.NewFilteredListerWatcher(w.lister(), selecting("", "metadata.name!=none"))
		},
		"server": func(w *world) cache.ListerWatcher { return tapOn(w.lister()) }, // nothing is known of it
		"cluster": func(w *world) cache.ListerWatcher {
			require.NoError(w.t, w.Delete(namespaces, "", "kube-system"))
			w.createKubeSystem()
			return w.lister()
		},
	} {
		t.Run(field, func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
				w.createKubeSystem()
				w.create(keys(3)...)
				s := w.lived(&recorder{})
				before := s.bytes()
				var f failures
				r := &recorder{}
				i := follow(w, informer.InformerConfig{
					ListerWatcher: other(w), Handler: r, Checkpoint: s, ErrorHandler: f.handle, CheckpointInterval: time.Minute, CheckpointChanges: 1,
				})
				w.ResetRequests()
				for n := range 2 { // a second Run of it neither
					stop := w.run(i)
					synctest.Wait()
					requireAwaited(t, i, informer.ErrCheckpointSource)
					time.Sleep(10 * time.Minute)
					w.update("a/0001", fmt.Sprint(n))
					w.create(fmt.Sprint("a/new", n))
					time.Sleep(10 * time.Minute)
					requireAwaited(t, i, informer.ErrCheckpointSource)
					stop()
					require.Equal(t, before, s.bytes(), "it belongs to others")
				}
				require.Empty(t, r.events())
				for _, verb := range w.verbs() {
					require.NotContains(t, verb, "watch")
				}
				errs, _ := f.all()
				require.Greater(t, len(errs), 10)
				require.Less(t, len(errs), 100)
				for _, err := range errs {
					require.ErrorIs(t, err, informer.ErrCheckpointSource)
					require.ErrorContains(t, err, field)
				}
				require.Equal(t, field, only[*informer.CheckpointSourceError](&f)[0].Differences[0].Field)
			})
		})
	}
}

// requireAwaited requires that an informer waits for another checkpoint, and says why.
func requireAwaited(t *testing.T, i informer.ResourceVersionInformer, reason error) {
	t.Helper()
	status := i.Status()
	require.False(t, status.Synced)
	require.Equal(t, informer.PhaseBackoff, status.Phase)
	require.ErrorIs(t, status.LastError, reason)
	require.ErrorIs(t, status.CheckpointError, reason)
	require.Equal(t, informer.ReasonCheckpointFailing, status.Condition.Reason)
	require.Contains(t, status.Condition.Message, "nothing is delivered unless BeginAnew is set")
	var unused *informer.UnusedCheckpointError
	require.ErrorAs(t, status.CheckpointError, &unused)
	require.True(t, unused.NeverSaved)
}

// Once another checkpoint is in the place of the awaited one, or the address leads to the right
// cluster again, the informer resumes.
func TestAwaitedCheckpointIsResumed(t *testing.T) {
	for _, mended := range []string{"file", "server"} {
		t.Run(mended, func(t *testing.T) {
			inTwoClusters(t, false, func(t *testing.T, c *twoClusters) {
				r := &recorder{}
				s := &lockable{memoryCheckpoint: c.lived(r)}
				right := s.bytes()
				switch mended {
				case "file":
					s.content = []byte("milk, bread, a new disk")
				case "server":
					c.replace()
				}
				i := follow(c.world, informer.InformerConfig{Handler: r, Checkpoint: s})
				c.run(i)
				time.Sleep(10 * time.Minute)
				require.Error(t, i.Status().CheckpointError)
				require.False(t, s.isLocked(), "its owner may use it")
				require.Empty(t, r.events())
				c.update("a/0001", "changed")
				s.put(right)
				c.replaced.Store(false)
				c.CloseClientConnections()
				time.Sleep(time.Minute)
				require.Equal(t, []string{"update a/0001"}, r.events())
				require.Empty(t, c.lists())
				require.NoError(t, i.Status().LastError)
				require.NoError(t, i.Status().CheckpointError)
				require.True(t, s.isLocked())
			})
		})
	}
}

// With BeginAnew, a checkpoint that is not the informer's is reported and replaced, and everything
// is listed.
func TestBeginAnewReplacesACheckpoint(t *testing.T) {
	for name, spoil := range map[string]func(w *world, s *memoryCheckpoint){
		"another cluster": func(w *world, _ *memoryCheckpoint) {
			require.NoError(w.t, w.Delete(namespaces, "", "kube-system"))
			w.createKubeSystem()
		},
		"no checkpoint": func(_ *world, s *memoryCheckpoint) { s.content = []byte("milk, bread, a new disk") },
		"newer version": func(_ *world, s *memoryCheckpoint) { s.content[9] = checkpoint.VersionJournaled + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
				w.createKubeSystem()
				w.create(keys(3)...)
				s := w.lived(&recorder{})
				spoil(w, s)
				var f failures
				r := &recorder{}
				i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, BeginAnew: true, ErrorHandler: f.handle})
				stop := w.run(i)
				time.Sleep(time.Minute)
				require.True(t, i.HasSynced())
				require.NoError(t, i.Status().CheckpointError)
				w.requireState(r)
				require.Len(t, w.lists(), 1)
				unused := only[*informer.UnusedCheckpointError](&f)
				require.Len(t, unused, 1)
				require.False(t, unused[0].NeverSaved)
				stop()
				w.requireSaved(s)

				r.forget()
				w.ResetRequests()
				w.update("a/0001", "changed")
				defer w.run(follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}))()
				time.Sleep(time.Minute)
				require.Equal(t, []string{"update a/0001"}, r.events())
				require.Empty(t, w.lists())
			})
		})
	}
}

func (w *world) createKubeSystem() {
	w.t.Helper()
	_, err := w.Create(namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}})
	require.NoError(w.t, err)
}

// An informer that may read kube-system only at times resumes all the same.
func TestACheckpointOfAClusterThatIsUnknownForAWhile(t *testing.T) {
	var forbidden atomic.Bool
	wrap := before(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "kube-system") && forbidden.Load() {
			http.Error(w, "no", http.StatusForbidden)
			return false
		}
		return true
	})
	bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *world) {
		w.createKubeSystem()
		w.create(keys(3)...)
		r := &recorder{}
		s := w.lived(r)
		cluster := readSaved(t, s.bytes()).metadata["cluster"]
		require.NotEmpty(t, cluster)
		forbidden.Store(true)
		i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		for range 2 {
			r.forget()
			w.update("a/0001", w.ResourceVersion())
			stop := w.run(i)
			time.Sleep(time.Minute)
			stop()
			require.Equal(t, []string{"update a/0001"}, r.events())
			require.Empty(t, w.lists())
			require.Equal(t, cluster, readSaved(t, s.bytes()).metadata["cluster"], "what was known stays")
		}
	})
}

// A server that answers each question for its cluster with an error is asked for some minutes, and
// then followed without.
func TestAServerThatNeverSaysWhichClusterItIs(t *testing.T) {
	var asked atomic.Int32
	wrap := before(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "kube-system") {
			asked.Add(1)
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return false
		}
		return true
	})
	bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		r := &recorder{}
		i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: &memoryCheckpoint{}})
		w.run(i)
		time.Sleep(time.Minute)
		require.False(t, i.HasSynced())
		time.Sleep(20 * time.Minute)
		require.True(t, i.HasSynced())
		require.Less(t, asked.Load(), int32(30))
		w.requireState(r)
	})
}

// A second Run that meets another cluster at the same address does not go on from a
// version of the one before: it says so, and lists.
func TestASecondRunOnAnotherCluster(t *testing.T) {
	var noLists atomic.Bool
	wrap := before(func(w http.ResponseWriter, r *http.Request) bool {
		if noLists.Load() && strings.HasSuffix(r.URL.Path, "/pods") {
			http.Error(w, "no", http.StatusServiceUnavailable)
			return false
		}
		return true
	})
	bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *world) {
		w.createKubeSystem()
		w.create(keys(3)...)
		var f failures
		r, s := &recorder{}, &memoryCheckpoint{}
		i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, ErrorHandler: f.handle})
		stop := w.run(i)
		time.Sleep(time.Minute)
		stop()
		require.NoError(t, w.Delete(namespaces, "", "kube-system"))
		w.createKubeSystem()
		w.update("a/0001", "changed")
		for n := range 2 { // also where it could not list the first time
			w.ResetRequests()
			if n == 0 {
				noLists.Store(true)
			}
			stop = w.run(i)
			time.Sleep(time.Minute)
			noLists.Store(false)
			stop()
			require.NotEmpty(t, w.lists(), "asked %v", w.verbs())
		}
		w.requireState(r)
		w.requireSaved(s)
		require.Equal(t, "cluster", only[*informer.CheckpointSourceError](&f)[0].Differences[0].Field)

		w.ResetRequests()
		w.run(i)
		time.Sleep(time.Minute)
		require.Empty(t, w.lists())
		require.Len(t, only[*informer.CheckpointSourceError](&f), 1)
	})
}

// What is no checkpoint is not replaced: it is something else that the path was not
// meant to name.
func TestAForeignFileIsLeftAsItIs(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		path := filepath.Join(t.TempDir(), "shopping-list")
		require.NoError(t, os.WriteFile(path, []byte("milk, bread, a new disk"), 0o600))
		var f failures
		r := &recorder{}
		i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: informer.FileCheckpoint(path), ErrorHandler: f.handle})
		stop := w.run(i)
		time.Sleep(time.Hour)
		requireAwaited(t, i, informer.ErrCheckpointFormat)
		require.Empty(t, r.events())
		stop()
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "milk, bread, a new disk", string(content))
		errs, _ := f.all()
		require.ErrorIs(t, errs[0], informer.ErrCheckpointFormat)
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
		t.Run(name, func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
				w.create(keys(5)...)
				s := w.lived(&recorder{})
				path := filepath.Join(t.TempDir(), "pods")
				require.NoError(t, os.WriteFile(path, damage(s.bytes()), 0o600))
				var f failures
				r := &recorder{}
				i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: informer.FileCheckpoint(path), ErrorHandler: f.handle})
				stop := w.run(i)
				time.Sleep(time.Minute)
				require.True(t, i.HasSynced())
				w.requireState(r)
				require.Contains(t, r.events(), "add a/0001 initial", "a cold start")
				stop()
				errs, _ := f.all()
				require.Len(t, errs, 1)
				var damaged *informer.CheckpointError
				require.ErrorAs(t, errs[0], &damaged)

				w.update("a/0001", "changed")
				w.ResetRequests()
				r.forget()
				w.run(follow(w, informer.InformerConfig{Handler: r, Checkpoint: informer.FileCheckpoint(path)}))
				time.Sleep(time.Minute)
				require.Equal(t, []string{"update a/0001"}, r.events())
				require.Empty(t, w.lists())
			})
		})
	}
}

// A checkpoint of a newer version of the library is not replaced by an older one.
func TestANewerCheckpointStays(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		newer := w.lived(&recorder{}).bytes()
		newer[9] = checkpoint.VersionJournaled + 1
		path := filepath.Join(t.TempDir(), "pods")
		require.NoError(t, os.WriteFile(path, newer, 0o600))
		var f failures
		r := &recorder{}
		i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: informer.FileCheckpoint(path), ErrorHandler: f.handle})
		stop := w.run(i)
		time.Sleep(time.Hour)
		requireAwaited(t, i, informer.ErrCheckpointVersion)
		require.Empty(t, r.events())
		stop()
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, newer, content)
		errs, _ := f.all()
		require.ErrorIs(t, errs[0], informer.ErrCheckpointVersion)
	})
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
		t.Run(name, func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
				w.create(keys(5)...)
				r := &recorder{}
				s := w.lived(r)
				content := s.bytes()
				var mended atomic.Bool
				s.onLoad = func(context.Context) (io.ReadCloser, error) {
					if mended.Load() {
						return nil, errPass
					}
					return load(content)
				}
				w.remove("a/0001")
				w.Compact()
				var f failures
				i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, ErrorHandler: f.handle})
				stop := w.run(i)
				time.Sleep(time.Hour)
				require.Empty(t, r.events())
				require.Equal(t, content, s.bytes())
				require.ErrorIs(t, i.Status().LastError, broken)
				require.Equal(t, informer.PhaseBackoff, i.Status().Phase)
				errs, _ := f.all()
				require.Less(t, len(errs), 130, "twice a minute at most")
				if name == "Load" {
					require.Equal(t, "CheckpointStore.Load", only[*informer.StoreError](&f)[0].Op)
				}
				stop()
				require.Equal(t, content, s.bytes(), "nothing that could not be read is replaced")

				w.run(i)
				time.Sleep(time.Minute)
				mended.Store(true)
				time.Sleep(time.Minute)
				require.True(t, i.HasSynced())
				require.Contains(t, r.events(), "delete a/0001 unknown")
				w.requireState(r)
				require.NoError(t, i.Status().LastError)
				w.requireSaved(s)
			})
		})
	}
}

// What a store fails with when all of a checkpoint was read is reported, and no more.
func TestAStoreThatFailsToClose(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(5)...)
		r := &recorder{}
		s := w.lived(r)
		broken := errors.New("the disk is on fire")
		content := s.bytes()
		s.onLoad = func(context.Context) (io.ReadCloser, error) {
			return closeFails{bytes.NewReader(content), broken}, nil
		}
		var f failures
		i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, ErrorHandler: f.handle})
		w.run(i)
		time.Sleep(time.Minute)
		errs, _ := f.all()
		require.Len(t, errs, 1)
		require.ErrorIs(t, errs[0], broken)
		require.True(t, i.HasSynced())
		require.Empty(t, r.events())
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
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		var full atomic.Bool
		full.Store(true)
		s := &memoryCheckpoint{onSave: func(context.Context, int) error {
			if full.Load() {
				return &os.PathError{Op: "write", Path: "pods", Err: syscall.ENOSPC}
			}
			return nil
		}}
		var f failures
		r := &recorder{}
		i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, ErrorHandler: f.handle, CheckpointInterval: time.Minute})
		stop := w.run(i)
		time.Sleep(10*time.Minute + time.Second)
		require.True(t, i.HasSynced())
		errs, _ := f.all()
		require.InDelta(t, 16, len(errs), 1, "after 0, 1, 3, 7, 15, 31 and 63 s, and then once a minute")
		for _, err := range errs {
			require.ErrorIs(t, err, syscall.ENOSPC)
		}
		require.Equal(t, "CheckpointStore.Save", only[*informer.StoreError](&f)[0].Op)
		w.update("a/0001", "changed")
		time.Sleep(time.Minute)
		w.requireState(r)
		require.ErrorIs(t, i.Status().LastError, syscall.ENOSPC)
		full.Store(false)
		time.Sleep(2 * time.Minute)
		w.requireSaved(s)
		require.NoError(t, i.Status().LastError)
		require.Zero(t, i.Status().LastErrorTime)

		full.Store(true)
		w.update("a/0001", "again")
		before := s.bytes()
		stop()
		require.Equal(t, before, s.bytes())
		errs, _ = f.all()
		require.ErrorIs(t, errs[len(errs)-1], syscall.ENOSPC, "the last one too")
	})
}

// The directory of a file may not be there yet, as where a volume is mounted late: the informer
// waits for it.
func TestADirectoryThatComesLate(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		directory := filepath.Join(t.TempDir(), "later")
		var f failures
		r := &recorder{}
		i := follow(w, informer.InformerConfig{
			Handler: r, Checkpoint: informer.FileCheckpoint(filepath.Join(directory, "pods")), ErrorHandler: f.handle,
		})
		stop := w.run(i)
		time.Sleep(5 * time.Minute)
		require.Empty(t, r.events())
		require.ErrorIs(t, i.Status().LastError, os.ErrNotExist)
		errs, _ := f.all()
		require.Greater(t, len(errs), 2)
		require.Less(t, len(errs), 18)
		for _, err := range errs {
			require.ErrorIs(t, err, os.ErrNotExist)
			require.ErrorContains(t, err, directory)
		}
		require.NoError(t, os.Mkdir(directory, 0o700))
		time.Sleep(2 * time.Minute)
		w.requireState(r)
		require.NoError(t, i.Status().LastError)
		stop()
		content, err := os.ReadFile(filepath.Join(directory, "pods"))
		require.NoError(t, err)
		require.Equal(t, w.ResourceVersion(), readSaved(t, content).resume)
	})
}

// A store that another informer has locked is neither read nor written, however long that
// takes. Once it is free, the informer goes on from what the other one has left.
func TestAStoreThatIsInUse(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		r := &recorder{}
		s := &lockable{memoryCheckpoint: w.lived(r)}
		unlock, err := s.Lock()
		require.NoError(t, err)
		before := s.bytes()
		w.remove("a/0001")
		w.Compact()
		var free atomic.Bool
		s.onLoad = func(context.Context) (io.ReadCloser, error) {
			require.True(t, free.Load(), "read although it is in use")
			return nil, errPass
		}
		var f failures
		i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, ErrorHandler: f.handle})
		stop := w.run(i)
		time.Sleep(5 * time.Minute)
		require.Empty(t, r.events())
		require.ErrorIs(t, i.Status().LastError, informer.ErrCheckpointInUse)
		require.Equal(t, before, s.bytes())
		errs, _ := f.all()
		require.Greater(t, len(errs), 5)
		require.Less(t, len(errs), 18)
		for _, err := range errs {
			require.ErrorIs(t, err, informer.ErrCheckpointInUse)
		}
		require.Equal(t, "CheckpointStore.Lock", only[*informer.StoreError](&f)[0].Op)

		free.Store(true)
		require.NoError(t, unlock())
		time.Sleep(3 * time.Second)
		require.Equal(t, []string{"delete a/0001 unknown"}, deletionsTold(r))
		require.True(t, i.HasSynced())
		require.NoError(t, i.Status().LastError)
		w.requireSaved(s.memoryCheckpoint)
		require.True(t, s.isLocked())
		stop()
		require.False(t, s.isLocked())
	})
}

// deletionsTold are the deletions that a handler was told.
func deletionsTold(r *recorder) (deleted []string) {
	for _, call := range r.events() {
		if strings.HasPrefix(call, "delete") {
			deleted = append(deleted, call)
		}
	}
	return deleted
}

// An informer that stops while it waits for a store leaves what is in it alone.
func TestAStoppedWaitForAStoreSavesNothing(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		s := &lockable{memoryCheckpoint: w.lived(&recorder{})}
		_, err := s.Lock()
		require.NoError(t, err)
		before := s.bytes()
		storage := informer.NewResourceVersionStorage()
		require.NoError(t, storage.Replace(map[string]interface{}{"a/elsewhere": "1"}))
		i := follow(w, informer.InformerConfig{Handler: &recorder{}, Storage: storage, Checkpoint: s})
		for range 2 {
			stop := w.run(i)
			time.Sleep(time.Minute)
			stop()
			require.Equal(t, before, s.bytes())
			require.True(t, s.isLocked())
		}
	})
}

// Two informers of one file, in one process: the second waits for the first, and goes on from
// where that has stopped.
func TestTwoInformersOfOneFile(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		path := filepath.Join(t.TempDir(), "pods")
		var fs [2]failures
		r := &recorder{}
		var stops [2]func()
		for n := range 2 {
			stops[n] = w.run(follow(w, informer.InformerConfig{
				Handler: r, Checkpoint: informer.FileCheckpoint(path), ErrorHandler: fs[n].handle,
			}))
			time.Sleep(10 * time.Second)
		}
		w.update("a/0001", "changed")
		time.Sleep(5 * time.Minute)
		errs, _ := fs[0].all()
		require.Empty(t, errs)
		require.NotEmpty(t, only[*informer.StoreError](&fs[1]))
		stops[0]()
		r.forget()
		w.remove("a/0002")
		w.Compact()
		time.Sleep(5 * time.Minute)
		require.Equal(t, []string{"delete a/0002 unknown"}, deletionsTold(r))
		w.requireState(r)
		stops[1]()
	})
}

// A server that is down when an informer starts cannot say which cluster it is of: that
// is reported, and the checkpoint is used when it is up.
func TestAServerThatIsDownAtTheStart(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.createKubeSystem()
		w.create(keys(3)...)
		r := &recorder{}
		s := w.lived(r)
		w.update("a/0001", "changed")
		w.remove("a/0002")
		var f failures
		i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, ErrorHandler: f.handle})
		w.blocked.Lock()
		stop := w.run(i)
		time.Sleep(10 * time.Minute)
		require.False(t, i.HasSynced())
		require.Equal(t, informer.PhaseBackoff, i.Status().Phase)
		errs, _ := f.all()
		require.ErrorContains(t, errs[0], "kube-system")
		require.Greater(t, len(errs), 10)
		require.Less(t, len(errs), 40)
		stop() // while it waits
		require.Equal(t, informer.PhaseStopped, i.Status().Phase)

		stop = w.run(i)
		time.Sleep(time.Minute)
		w.blocked.Unlock()
		time.Sleep(2 * time.Minute)
		require.True(t, i.HasSynced())
		require.Equal(t, []string{"update a/0001", "delete a/0002"}, r.events())
		require.Empty(t, w.lists())
		require.NoError(t, i.Status().LastError)
		stop()
		w.requireSaved(s)
	})
}

// Run returns when ctx ends while the store loads, and the next Run loads again.
func TestRunEndsWhileItLoads(t *testing.T) {
	for _, where := range []string{"Load", "Read"} {
		t.Run(where, func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
				w.create(keys(3)...)
				r := &recorder{}
				s := w.lived(r)
				var slow atomic.Bool
				slow.Store(true)
				s.onLoad = func(ctx context.Context) (io.ReadCloser, error) {
					switch {
					case !slow.Load():
						return nil, errPass
					case where == "Load":
						<-ctx.Done()
						return nil, context.Cause(ctx)
					default:
						return io.NopCloser(io.MultiReader(bytes.NewReader(s.bytes()[:12]), endsWith{ctx})), nil
					}
				}
				i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
				stop := w.run(i)
				time.Sleep(time.Minute)
				require.False(t, i.HasSynced())
				stop()
				require.Equal(t, informer.PhaseStopped, i.Status().Phase)
				require.Empty(t, w.lists())

				slow.Store(false)
				w.remove("a/0001")
				w.run(i)
				time.Sleep(time.Minute)
				require.Equal(t, []string{"delete a/0001"}, r.events())
				require.Empty(t, w.lists())
			})
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
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		s := &memoryCheckpoint{onSave: func(ctx context.Context, n int) error {
			if n > 1 { // the first one waits
				return nil
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}}
		var f failures
		r := &recorder{}
		stop := w.run(follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, ErrorHandler: f.handle}))
		time.Sleep(time.Minute)
		require.Nil(t, s.bytes())
		stop()
		w.requireSaved(s)
		errs, _ := f.all()
		require.Empty(t, errs)
	})
}

// The Save at the end has 30 seconds.
func TestTheLastSaveIsGivenUp(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		s := &memoryCheckpoint{onSave: func(ctx context.Context, n int) error {
			if n > 1 {
				<-ctx.Done()
			}
			return nil
		}}
		var f failures
		r := &recorder{}
		i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: &lockable{memoryCheckpoint: s}, ErrorHandler: f.handle})
		stop := w.run(i)
		synctest.Wait()
		before := s.bytes()
		w.update("a/0001", "changed")
		synctest.Wait()
		began := time.Now()
		stop()
		require.Equal(t, 30*time.Second, time.Since(began))
		require.Equal(t, before, s.bytes())
		errs, _ := f.all()
		require.Len(t, errs, 1)
		require.ErrorIs(t, errs[0], context.DeadlineExceeded)
	})
}

// Run returns after the handler, the Save and the unlocking have.
func TestRunReturnsAfterTheCheckpoint(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		var order []string
		s := &memoryCheckpoint{}
		r := &recorder{}
		i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: noting{&lockable{memoryCheckpoint: s}, &order}})
		stop := w.run(i)
		synctest.Wait()
		order = nil
		slow := time.Minute
		r.before = func(string) { time.Sleep(slow); order = append(order, "handled") }
		w.update("a/0001", "changed")
		synctest.Wait()
		s.onSave = func(context.Context, int) error {
			time.Sleep(10 * time.Second)
			order = append(order, "saved")
			return nil
		}
		stop()
		require.Equal(t, []string{"handled", "saved", "unlocked"}, order)
		w.requireSaved(s)
	})
}

type noting struct {
	*lockable
	order *[]string
}

func (n noting) Lock() (func() error, error) {
	unlock, err := n.lockable.Lock()
	return func() error {
		*n.order = append(*n.order, "unlocked")
		return unlock()
	}, err
}

// An object whose key no checkpoint can hold is skipped and reported, and everything else is
// delivered and saved.
func TestAKeyThatIsTooLongForACheckpoint(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		long := "a/" + strings.Repeat("x", 2<<20)
		var f failures
		r, s := &recorder{}, &memoryCheckpoint{}
		plain := script{
			list: listing("9", pod("a/1", "5"), pod(long, "6"), pod("a/2", "7")),
			watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				fake := watch.NewFake()
				go func() {
					fake.Modify(pod(long, "10"))
					fake.Delete(pod(long, "11"))
					fake.Modify(pod("a/1", "12"))
				}()
				return fake, nil
			},
		}
		stop := w.run(follow(w, informer.InformerConfig{ListerWatcher: plain.lw(), Handler: r, Checkpoint: s, ErrorHandler: f.handle}))
		time.Sleep(time.Minute)
		stop()
		require.Equal(t, []string{"add a/1 initial", "add a/2 initial", "update a/1"}, r.events())
		require.Equal(t, r.state(), readSaved(t, s.bytes()).state())
		require.Empty(t, only[*informer.CheckpointError](&f))
		skipped := only[*informer.ItemError](&f)
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
	require.Error(t, s.Add(partial("a", long, "1", "")))
	require.Error(t, s.Update(partial("a", "1", "1", long)))
	require.Zero(t, s.Len())
}

// Selectors that are too long for the metadata of a checkpoint are reported as well.
func TestASelectorThatIsTooLongForACheckpoint(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		long := "app!=a"
		for n := range 8000 {
			long += fmt.Sprintf(",l%06d!=x", n)
		}
		var f failures
		r := &recorder{}
		s := &memoryCheckpoint{}
		plain := script{list: listing("9", pod("a/1", "5")), watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return open()() }}
		lw := informer.NewFilteredListerWatcher(plain.lw(), func(opts *metav1.ListOptions) { opts.LabelSelector = long })
		i := follow(w, informer.InformerConfig{ListerWatcher: lw, Handler: r, Checkpoint: s, ErrorHandler: f.handle})
		stop := w.run(i)
		time.Sleep(5 * time.Minute)
		require.True(t, i.HasSynced())
		require.Equal(t, []string{"add a/1 initial"}, r.events())
		stop()
		require.Nil(t, s.bytes())
		require.NotEmpty(t, only[*informer.CheckpointError](&f))
	})
}

// A tweak may depend on what is set between the making of an informer and its Run.
func TestSelectorsOfACheckpointAreThoseOfTheRun(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		selector := ""
		var f failures
		s := &memoryCheckpoint{}
		own := cache.ToListerWatcherWithContext(w.lister())
		others := &cache.ListWatch{ListWithContextFunc: own.ListWithContext, WatchFuncWithContext: own.WatchWithContext}
		for range 2 {
			r := &recorder{}
			i := follow(w, informer.InformerConfig{
				ListerWatcher: informer.NewFilteredListerWatcher(others, func(opts *metav1.ListOptions) { opts.LabelSelector = selector }),
				Handler:       r, Checkpoint: s, ErrorHandler: f.handle,
			})
			selector = "a!=b"
			stop := w.run(i)
			time.Sleep(10 * time.Second)
			require.True(t, i.HasSynced())
			stop()
		}
		require.Empty(t, only[*informer.CheckpointSourceError](&f))
	})
}
