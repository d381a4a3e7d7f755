package objectcache_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/testkit/samples"
	"github.com/rvinformer/informer/objectcache"
)

// snapshotFile is a file of a test's own.
func snapshotFile(t *testing.T) string { return filepath.Join(t.TempDir(), "pods") }

// errorsOf collects what an informer reports.
type errorsOf struct {
	mu   sync.Mutex
	errs []error
}

func (e *errorsOf) handle(_ *informer.Reflector, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.errs = append(e.errs, err)
	}
}

func (e *errorsOf) all() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return errors.Join(e.errs...)
}

// lived runs an informer until it is in step, and stops it. It returns the file of its snapshot.
func (w *world) lived(example apiruntime.Object) (file string) {
	w.t.Helper()
	file = snapshotFile(w.t)
	i := newInformer(w.lister(), example, objectcache.Options{Snapshot: informer.FileCheckpoint(file)})
	stop := w.run(i)
	w.requireInStep(i)
	stop()
	require.NoError(w.t, i.Status().LastError)
	require.False(w.t, i.Status().CheckpointTime.IsZero())
	require.Equal(w.t, file, i.Status().Checkpoint)
	w.ResetRequests()
	return file
}

// lists are the requests that read the set, and not one object to know the server or its state.
func (w *world) lists() (n int) {
	for _, r := range w.Requests() {
		ofOne := r.Options.Limit == 1 || strings.HasPrefix(r.Options.FieldSelector, "metadata.name=")
		if r.Verb == "list" && !ofOne || r.Options.SendInitialEvents != nil {
			n++
		}
	}
	return n
}

func TestWarmRestartServesReadsAndListsNothing(t *testing.T) {
	for name, example := range examples {
		bubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *world) {
			w.create("a/1", "a/2", "b/3")
			file := w.lived(example)
			saved := w.ResourceVersion()
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())

			heal := w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch"}}, Effect: informertest.Status(503)})
			i := newInformer(w.lister(), example, objectcache.Options{
				Snapshot: informer.FileCheckpoint(file), Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
			})
			stop := w.run(i)
			require.False(t, i.HasSynced(), "the server has not accepted the version")
			require.Equal(t, 3, i.Status().Objects)
			require.Zero(t, i.Store().Decoded())
			w.requireInStep(i)
			inA, err := i.Store().ByIndex(cache.NamespaceIndex, "a")
			require.NoError(t, err)
			require.Len(t, inA, 2)
			require.Equal(t, saved, i.LastSyncResourceVersion())

			w.update("a/1", "changed")
			w.remove("a/2")
			w.create("a/4")
			heal()
			sleep(5 * time.Minute)
			require.True(t, i.HasSynced())
			w.requireInStep(i)
			require.Zero(t, w.lists(), "asked: %v", w.Requests())
			require.Equal(t, saved, i.Status().ResumedFrom)
			require.False(t, i.Status().ResumedTime.IsZero())
			require.NoError(t, i.Status().CheckpointError)
			stop()
			require.Zero(t, w.lists())
		})
	}
}

// A cluster is known by the UID of its kube-system, so a snapshot goes on at another address of it, and
// names that address from then on.
func TestSnapshotGoesOnAtAnotherAddressOfTheCluster(t *testing.T) {
	var forbidden atomic.Bool
	wrap := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if forbidden.Load() && strings.HasSuffix(r.URL.Path, "kube-system") {
				http.Error(rw, "", http.StatusForbidden)
				return
			}
			next.ServeHTTP(rw, r)
		})
	}
	bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *world) {
		_, err := w.Create(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}})
		require.NoError(t, err)
		w.create("a/1", "a/2")
		file := w.lived(nil)
		config := w.Config()
		config.Host = "http://elsewhere"
		factory, err := informer.NewDynamicListerWatcherFactory(config)
		require.NoError(t, err)
		for range 2 {
			i := newInformer(factory.ForResource("", pods), nil, objectcache.Options{Snapshot: informer.FileCheckpoint(file)})
			stop := w.run(i)
			sleep(time.Minute)
			require.NoError(t, i.Status().CheckpointError)
			require.NotEmpty(t, i.Status().ResumedFrom)
			w.requireInStep(i)
			require.Zero(t, w.lists())
			stop()
			forbidden.Store(true) // the address alone is enough
		}
	})
}

// Where kube-system is forbidden and none of a few known objects exists, all objects of the server are
// compared with those of the snapshot.
func TestSnapshotOfAnotherClusterIsRecognizedByTheObjectsItLacks(t *testing.T) {
	forbidden := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "kube-system") {
				http.Error(rw, "", http.StatusForbidden)
				return
			}
			next.ServeHTTP(rw, r)
		})
	}
	for name, same := range map[string]bool{"another": false, "the same": true} {
		bubbleRun(t, name, informertest.Options{Wrap: forbidden}, func(t *testing.T, w *world) {
			w.create("a/1", "a/2", "a/3", "a/4")
			file := w.lived(nil)
			before, err := os.ReadFile(file)
			require.NoError(t, err)
			if same {
				w.remove("a/1", "a/2", "a/3")
			} else {
				second := informertest.NewServer(informertest.Options{InMemory: true, Wrap: forbidden})
				defer second.Close()
				w = &world{t: t, Server: second}
				w.create("b/1")
				w.SetResourceVersion(100)
				w.create("b/2")
			}
			i := newInformer(w.lister(), nil, objectcache.Options{Snapshot: informer.FileCheckpoint(file)})
			stop := w.run(i)
			sleep(5 * time.Minute)
			if same {
				w.requireInStep(i)
				require.NoError(t, i.Status().CheckpointError)
				return
			}
			require.ErrorIs(t, i.Status().CheckpointError, informer.ErrCheckpointSource)
			require.ErrorContains(t, i.Status().CheckpointError, "one without b/1 in version")
			require.Zero(t, i.Status().Objects)
			stop()
			after, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
}

func TestHandlersGetRestoredObjectsAndWhatFollows(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2", "a/3")
		file := w.lived(nil)
		w.update("a/1", "changed")
		w.remove("a/2")
		w.create("a/4")
		i := newInformer(w.lister(), nil, objectcache.Options{Snapshot: informer.FileCheckpoint(file)})
		h, registration := handle(t, i)
		defer w.run(i)()
		sleep(time.Minute)
		calls := h.take()
		require.ElementsMatch(t, []string{"add a/1 created initial", "add a/2 created initial", "add a/3 created initial"}, calls[:3])
		require.Equal(t, []string{"update a/1 changed was created", "delete a/2 created", "add a/4 created"}, calls[3:])
		require.True(t, registration.HasSynced())
		w.requireInStep(i)
		late, _ := handle(t, i)
		synctest.Wait()
		require.Equal(t, []string{"add a/1 changed initial", "add a/3 created initial", "add a/4 created initial"}, late.sorted())
	})
}

// A server that has forgotten the version is listed, and handlers get what differs.
func TestExpiredSnapshotIsListedAndTellsWhatDiffers(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2", "a/3")
		file := w.lived(&corev1.Pod{})
		w.update("a/1", "changed")
		w.remove("a/2")
		w.create("a/4")
		w.Compact()
		i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{Snapshot: informer.FileCheckpoint(file)})
		h, registration := handle(t, i)
		stop := w.run(i)
		sleep(time.Minute)
		require.True(t, i.HasSynced())
		require.True(t, registration.HasSynced())
		require.Equal(t, 1, w.lists())
		require.Empty(t, i.Status().ResumedFrom)
		calls := h.take()
		require.ElementsMatch(t, []string{"add a/1 created initial", "add a/2 created initial", "add a/3 created initial"}, calls[:3])
		require.ElementsMatch(t, []string{"update a/1 changed was created", "gone a/2 created", "add a/4 created initial"}, calls[3:])
		w.requireInStep(i)
		stop()

		i = newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{Snapshot: informer.FileCheckpoint(file)})
		defer w.run(i)()
		time.Sleep(time.Minute)
		require.Equal(t, w.ResourceVersion(), i.Status().ResumedFrom, "the list was saved")
	})
}

// A snapshot that cannot be read, or is of another version of the library, is reported and replaced:
// all objects are listed. Testdata has a snapshot of the first version.
func TestUnusableSnapshotIsReportedAndReplaced(t *testing.T) {
	isDamaged := func(err error) bool {
		return errors.Is(err, informer.ErrCheckpointDamaged) || errors.Is(err, io.ErrUnexpectedEOF)
	}
	for name, test := range map[string]struct {
		spoil func(b []byte) []byte
		is    func(error) bool
	}{
		"empty":              {func([]byte) []byte { return nil }, isDamaged},
		"cut in the head":    {func(b []byte) []byte { return b[:30] }, isDamaged},
		"cut in the end":     {func(b []byte) []byte { return b[:len(b)-1] }, isDamaged},
		"a byte":             {func(b []byte) []byte { b[len(b)/2] ^= 4; return b }, isDamaged},
		"a byte of the head": {func(b []byte) []byte { b[12] ^= 4; return b }, isDamaged},
		"newer version": {
			func([]byte) []byte { return []byte("\x89RVS\r\n\x1a\n\x00\x03") },
			func(err error) bool { return errors.Is(err, informer.ErrCheckpointVersion) },
		},
		"first version": {
			func([]byte) []byte {
				first, err := os.ReadFile(filepath.Join("testdata", "snapshot-v1"))
				require.NoError(t, err)
				return first
			},
			func(err error) bool {
				return strings.Contains(err.Error(), "snapshot cannot be used") && strings.Contains(err.Error(), "snapshot of version 1, 2 is the oldest known")
			},
		},
	} {
		bubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *world) {
			w.create("a/1", "a/2")
			file := w.lived(&corev1.Pod{})
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, test.spoil(b), 0o600))
			var reported errorsOf
			i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{Snapshot: informer.FileCheckpoint(file), ErrorHandler: reported.handle})
			h, _ := handle(t, i)
			stop := w.run(i)
			w.requireInStep(i)
			time.Sleep(time.Minute)
			err = reported.all()
			require.Error(t, err)
			require.True(t, test.is(err), "%v", err)
			require.Equal(t, 1, w.lists())
			require.Equal(t, []string{"add a/1 created initial", "add a/2 created initial"}, h.sorted())
			require.NoError(t, i.Status().CheckpointError, "it was replaced")
			stop()
			i = newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{Snapshot: informer.FileCheckpoint(file)})
			defer w.run(i)()
			time.Sleep(time.Minute)
			require.NotEmpty(t, i.Status().ResumedFrom)
		})
	}
}

// What belongs to others stays as it is, and the informer waits, unless it is to begin anew.
func TestForeignSnapshotIsAwaited(t *testing.T) {
	plain := func(w *world, file string) {
		i := informer.NewResourceVersionInformer("plain", informer.InformerConfig{
			ListerWatcher: w.lister(), ExampleObject: &corev1.Pod{}, Handler: informer.ResourceEventHandlerFuncs{},
			Checkpoint: informer.FileCheckpoint(file), ErrorHandler: func(*informer.Reflector, error) {},
		})
		ctx, cancel := context.WithCancel(w.t.Context())
		var running sync.WaitGroup
		running.Go(func() { i.RunWithContext(ctx) })
		synctest.Wait()
		cancel()
		running.Wait()
	}
	for name, test := range map[string]struct {
		write func(w *world, file string)
		is    error
		says  string
	}{
		"another namespace": {func(w *world, file string) {
			factory, err := informer.NewDynamicListerWatcherFactory(w.Config())
			require.NoError(w.t, err)
			i := newInformer(factory.ForResource("a", pods), nil, objectcache.Options{Snapshot: informer.FileCheckpoint(file)})
			w.run(i)()
		}, informer.ErrCheckpointSource, `namespace is "a"`},
		"a plain checkpoint": {plain, informer.ErrCheckpointFormat, "of an informer that keeps none"},
		"a text": {func(w *world, file string) {
			require.NoError(w.t, os.WriteFile(file, []byte("a diary"), 0o600))
		}, informer.ErrCheckpointFormat, "not a checkpoint"},
	} {
		bubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *world) {
			w.create("a/1", "b/2")
			file := snapshotFile(t)
			test.write(w, file)
			before, err := os.ReadFile(file)
			require.NoError(t, err)
			i := newInformer(w.lister(), nil, objectcache.Options{Snapshot: informer.FileCheckpoint(file)})
			w.ResetRequests()
			stop := w.run(i)
			time.Sleep(time.Hour)
			status := i.Status()
			require.False(t, status.Synced)
			require.Zero(t, status.Objects)
			require.Zero(t, w.lists())
			require.Equal(t, informer.ReasonCheckpointFailing, status.Condition.Reason)
			var unused *informer.UnusedCheckpointError
			require.ErrorAs(t, status.CheckpointError, &unused)
			require.True(t, unused.NeverSaved)
			require.ErrorIs(t, unused, test.is)
			require.ErrorContains(t, unused, test.says)
			require.ErrorIs(t, status.LastError, test.is)
			stop()
			after, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, before, after)

			i = newInformer(w.lister(), nil, objectcache.Options{Snapshot: informer.FileCheckpoint(file), BeginAnew: true})
			stop = w.run(i)
			w.requireInStep(i)
			stop()
			i = newInformer(w.lister(), nil, objectcache.Options{Snapshot: informer.FileCheckpoint(file)})
			defer w.run(i)()
			time.Sleep(time.Minute)
			require.NotEmpty(t, i.Status().ResumedFrom, "it was replaced")
		})
	}
	bubbleRun(t, "a snapshot as a plain checkpoint", informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1")
		file := w.lived(nil)
		before, err := os.ReadFile(file)
		require.NoError(t, err)
		plain(w, file)
		after, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, before, after)
	})
}

// A snapshot of the same objects, kept otherwise, is replaced: it may lack what is wanted now.
func TestSnapshotOfOtherOptionsIsReplaced(t *testing.T) {
	for name, opts := range map[string]objectcache.Options{
		"keep":  {Keep: []string{"metadata.labels"}},
		"prune": {Prune: []string{"spec"}},
		"type":  {},
		"kind":  {},
	} {
		bubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *world) {
			w.create("a/1")
			file := w.lived(nil)
			var reported errorsOf
			opts.Snapshot, opts.ErrorHandler = informer.FileCheckpoint(file), reported.handle
			var example apiruntime.Object
			switch name {
			case "type":
				example = &corev1.Pod{}
			case "kind":
				example = pod("a/example", "")
			}
			i := newInformer(w.lister(), example, opts)
			defer w.run(i)()
			require.ErrorContains(t, reported.all(), "saved with "+name)
			require.Equal(t, 1, w.lists())
			w.requireInStep(i)
		})
	}
}

// A process that was killed leaves an older snapshot. What came after it is told again by the
// watch.
func TestKilledProcessGoesOnFromItsLastSnapshot(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2")
		file, older := snapshotFile(t), snapshotFile(t)
		i := newInformer(w.lister(), nil, objectcache.Options{Snapshot: informer.FileCheckpoint(file)})
		stop := w.run(i)
		w.update("a/1", "once")
		sleep(4 * time.Minute)
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		w.update("a/1", "twice")
		w.create("a/3")
		w.remove("a/2")
		synctest.Wait()
		again, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, b, again, "nothing is saved before the interval is over")
		require.NoError(t, os.WriteFile(older, b, 0o600))
		stop()
		w.ResetRequests()

		i = newInformer(w.lister(), nil, objectcache.Options{Snapshot: informer.FileCheckpoint(older)})
		h, _ := handle(t, i)
		defer w.run(i)()
		sleep(time.Minute)
		calls := h.take()
		require.ElementsMatch(t, []string{"add a/1 once initial", "add a/2 created initial"}, calls[:2])
		require.Equal(t, []string{"update a/1 twice was once", "add a/3 created", "delete a/2 created"}, calls[2:])
		require.Zero(t, w.lists())
		w.requireInStep(i)
	})
}

// A cluster is restored from a backup after a snapshot, and comes to the version of the snapshot
// before the next process asks: the server has the version, and the watch from there does not tell
// what is lost.
func TestRestoreThatTheServerHasPassedIsNoticed(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2", "a/3")
		backup := w.Backup()
		w.create("a/lost")
		w.update("a/1", "lost")
		w.remove("a/3")
		file := w.lived(nil)
		w.Restore(backup)
		for n := range 20 {
			w.update("a/2", strconv.Itoa(n))
		}
		i := newInformer(w.lister(), nil, objectcache.Options{Snapshot: informer.FileCheckpoint(file)})
		defer w.run(i)()
		sleep(time.Minute)
		require.Positive(t, w.lists())
		w.requireInStep(i)
	})
}

// WaitUntil returns for a restored version only after the server has accepted it, because the
// server may have been restored from a backup.
func TestRestoredVersionCountsOnceTheServerAcceptsIt(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1")
		file := w.lived(nil)
		version := w.ResourceVersion()
		heal := w.Inject(informertest.Fault{Effect: informertest.Refuse()})
		i := newInformer(w.lister(), nil, objectcache.Options{Snapshot: informer.FileCheckpoint(file)})
		defer w.run(i)()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, i.WaitUntil(ctx, version), context.DeadlineExceeded)
		heal()
		require.NoError(t, i.WaitUntil(t.Context(), version))
	})
}

// A snapshot is saved after SnapshotInterval if something has changed.
func TestSnapshotIsSavedAfterItsInterval(t *testing.T) {
	for interval, saved := range map[time.Duration]bool{20 * time.Second: true, 0: false} {
		bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
			w.create("a/1")
			file := snapshotFile(t)
			i := newInformer(w.lister(), nil, objectcache.Options{Snapshot: informer.FileCheckpoint(file), SnapshotInterval: interval})
			defer w.run(i)()
			sleep(5 * time.Minute)
			before := i.Status().CheckpointTime
			require.False(t, before.IsZero())
			w.create("a/2")
			sleep(30 * time.Second)
			require.Equal(t, saved, i.Status().CheckpointTime.After(before), interval)
		})
	}
}

// unreadable fails when half of it was read.
type unreadable struct {
	informer.CheckpointStore
	broken atomic.Pointer[error]
}

func (u *unreadable) Load(ctx context.Context) (io.ReadCloser, error) {
	from, err := u.CheckpointStore.Load(ctx)
	broken := u.broken.Load()
	if err != nil || broken == nil {
		return from, err
	}
	defer from.Close()
	b, err := io.ReadAll(from)
	return io.NopCloser(io.MultiReader(bytes.NewReader(b[:len(b)/2]), iotest.ErrReader(*broken))), err
}

// A store that fails in the midst of the objects is tried again, and replaced by nothing.
func TestStoreThatFailsToReadASnapshotIsAwaited(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2")
		file := w.lived(nil)
		before, err := os.ReadFile(file)
		require.NoError(t, err)
		broken := errors.New("broken disk")
		store := &unreadable{CheckpointStore: informer.FileCheckpoint(file)}
		store.broken.Store(&broken)
		i := newInformer(w.lister(), nil, objectcache.Options{Snapshot: store})
		defer w.run(i)()
		time.Sleep(10 * time.Minute)
		var of *informer.StoreError
		require.ErrorAs(t, i.Status().CheckpointError, &of)
		require.Equal(t, "CheckpointStore.Load", of.Op)
		require.ErrorIs(t, of, broken)
		require.Empty(t, i.Store().ListKeys())
		require.Zero(t, w.lists())
		after, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, before, after)
		store.broken.Store(nil)
		time.Sleep(time.Minute)
		require.True(t, i.HasSynced())
		require.Zero(t, w.lists())
		w.requireInStep(i)
	})
}

// An object that could not be read is not behind the version of a snapshot: the next process lists.
func TestSnapshotWithAGapClaimsNoVersion(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1")
		file := snapshotFile(t)
		opts := objectcache.Options{
			Snapshot: informer.FileCheckpoint(file),
			Transform: func(obj interface{}) (interface{}, error) {
				if value(obj) == "bad" {
					return nil, errors.New("bad object")
				}
				return obj, nil
			},
		}
		stop := w.run(newInformer(w.lister(), nil, opts))
		w.update("a/1", "bad")
		w.create("a/2")
		synctest.Wait()
		stop()
		w.ResetRequests()
		i := newInformer(w.lister(), nil, objectcache.Options{Snapshot: informer.FileCheckpoint(file)})
		h, _ := handle(t, i)
		defer w.run(i)()
		sleep(time.Minute)
		require.Equal(t, 1, w.lists())
		calls := h.take()
		require.ElementsMatch(t, []string{"add a/1 created initial", "add a/2 created initial"}, calls[:2])
		require.Equal(t, []string{"update a/1 bad was created"}, calls[2:])
		w.requireInStep(i)
	})
}

// A snapshot cannot hold an object whose key is too long. The object is skipped, and the others are
// saved.
func TestObjectWhoseKeyIsTooLongIsSkipped(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		long := strings.Repeat("x", checkpoint.MaxString)
		w.create("a/1", "a/"+long)
		var reported errorsOf
		i := newInformer(w.lister(), nil, objectcache.Options{Snapshot: informer.FileCheckpoint(snapshotFile(t)), ErrorHandler: reported.handle})
		stop := w.run(i)
		w.create("a/2", "b/"+long)
		synctest.Wait()
		stop()
		require.ElementsMatch(t, []string{"a/1", "a/2"}, i.Store().ListKeys())
		require.False(t, i.Status().CheckpointTime.IsZero())
		require.Len(t, reported.errs, 2)
		for _, err := range reported.errs {
			var skipped *informer.ItemError
			require.ErrorAs(t, err, &skipped)
		}
	})
}

// A snapshot may have a change more than the version that it claims. The watch shows that again,
// and it is not told twice.
func TestChangeBeyondTheSavedVersionIsToldOnce(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1")
		file := snapshotFile(t)
		i := newInformer(w.lister(), nil, objectcache.Options{Snapshot: informer.FileCheckpoint(file)})
		w.run(i)()
		before := w.ResourceVersion()
		changed, err := w.Update(pods, pod("a/1", "changed"))
		require.NoError(t, err)
		require.NoError(t, objectcache.SaveUnobserved(t.Context(), i, changed))

		i = newInformer(w.lister(), nil, objectcache.Options{Snapshot: informer.FileCheckpoint(file)})
		h, _ := handle(t, i)
		defer w.run(i)()
		time.Sleep(time.Minute)
		require.Equal(t, before, i.Status().ResumedFrom)
		w.update("a/1", "again")
		synctest.Wait()
		require.Equal(t, []string{"add a/1 changed initial", "update a/1 again was changed"}, h.take())
	})
}

// Versions without an order are claimed at the end of a run only, as by checkpoints. A snapshot of
// a process that was killed brings objects back, and the server is listed.
func TestSnapshotOfOpaqueVersions(t *testing.T) {
	bubble(t, informertest.Options{OpaqueVersions: true}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2")
		file, killed := snapshotFile(t), snapshotFile(t)
		i := newInformer(w.lister(), nil, objectcache.Options{Snapshot: informer.FileCheckpoint(file)})
		stop := w.run(i)
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(killed, b, 0o600))
		stop()
		for file, lists := range map[string]int{file: 0, killed: 1} {
			w.ResetRequests()
			i := newInformer(w.lister(), nil, objectcache.Options{Snapshot: informer.FileCheckpoint(file)})
			h, _ := handle(t, i)
			stop := w.run(i)
			time.Sleep(time.Minute)
			require.True(t, i.HasSynced())
			w.requireInStep(i)
			require.Equal(t, []string{"add a/1 created initial", "add a/2 created initial"}, h.sorted())
			require.Equal(t, lists, w.lists())
			stop()
		}
	})
}

// The reason for a list may be that the saved version is of no use.
func TestSnapshotClaimsNoVersionBeforeAListIsComplete(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2")
		file := w.lived(nil)
		resume := func() (resourceVersion string) {
			f, err := os.Open(file)
			require.NoError(t, err)
			defer func() { require.NoError(t, f.Close()) }()
			head, sample := checkpoint.NewSnapshotReader(f), 0
			for _, _, err = head.Next(); err == nil; _, _, err = head.Next() {
				sample++
			}
			require.Equal(t, io.EOF, err)
			require.Equal(t, "v1/pods", head.Metadata()["resource"])
			require.Equal(t, 2, sample)
			return head.Metadata()[checkpoint.MetadataResourceVersion]
		}
		require.Equal(t, w.ResourceVersion(), resume())
		w.update("a/1", "changed")
		w.Compact()
		heal := w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"list", "watch-list"}}, Effect: informertest.Status(500)})
		i := newInformer(w.lister(), nil, objectcache.Options{Snapshot: informer.FileCheckpoint(file)})
		stop := w.run(i)
		sleep(time.Minute)
		require.False(t, i.HasSynced())
		require.Len(t, i.Store().List(), 2)
		require.Empty(t, resume())
		heal()
		sleep(5 * time.Minute)
		require.True(t, i.HasSynced())
		require.Equal(t, w.ResourceVersion(), resume())
		stop()
	})
}

func TestReadersAndWriterGoOnWhileSaving(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2")
		gate := make(chan struct{})
		slow := &slowStore{CheckpointStore: informer.FileCheckpoint(snapshotFile(t)), gate: gate}
		i := newInformer(w.lister(), nil, objectcache.Options{Snapshot: slow})
		defer w.run(i)()
		require.True(t, slow.saving(), "the list is being saved")
		w.update("a/1", "changed")
		w.create("a/3")
		synctest.Wait()
		w.requireInStep(i)
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() { require.Len(t, i.Store().List(), 3) })
		}
		readers.Wait()
		require.True(t, slow.saving())
		close(gate)
		synctest.Wait()
		require.False(t, slow.saving())
	})
}

// slowStore writes once its gate is open.
type slowStore struct {
	informer.CheckpointStore
	gate chan struct{}
	mu   sync.Mutex
	is   bool
}

func (s *slowStore) set(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.is = is
}

func (s *slowStore) saving() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.is
}

func (s *slowStore) Save(ctx context.Context, write func(io.Writer) error) error {
	s.set(true)
	defer s.set(false)
	return s.CheckpointStore.Save(ctx, func(out io.Writer) error { return write(gated{out, s.gate}) })
}

type gated struct {
	io.Writer
	gate chan struct{}
}

func (g gated) Write(b []byte) (int, error) {
	<-g.gate
	return g.Writer.Write(b)
}

func TestSecretsAreNotSavedUnlessAskedFor(t *testing.T) {
	store := informer.FileCheckpoint(snapshotFile(t))
	metadata := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}
	dynamic := &unstructured.Unstructured{Object: map[string]interface{}{"apiVersion": "v1", "kind": "Secret"}}
	for _, example := range []apiruntime.Object{&corev1.Secret{}, metadata, dynamic} {
		require.ErrorContains(t, objectcache.Options{Snapshot: store}.Check(example), "SnapshotSecrets")
		require.NoError(t, objectcache.Options{Snapshot: store, SnapshotSecrets: true}.Check(example))
		require.NoError(t, objectcache.Options{}.Check(example))
	}
	for _, example := range []apiruntime.Object{&corev1.Pod{}, nil, (*corev1.Pod)(nil), &unstructured.Unstructured{Object: map[string]interface{}{"apiVersion": "x.io/v1", "kind": "Secret"}}} {
		require.NoError(t, objectcache.Options{Snapshot: store}.Check(example))
	}
	require.ErrorContains(t, objectcache.Options{SnapshotInterval: -1}.Check(nil), "SnapshotInterval is -1ns")

	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		factory, err := informer.NewDynamicListerWatcherFactory(w.Config())
		require.NoError(t, err)
		lw := factory.ForResource("", schema.GroupVersionResource{Version: "v1", Resource: "secrets"})
		require.PanicsWithValue(t, "objectcache: informer \"<nil>\": "+objectcache.ErrSecrets.Error(), func() {
			newInformer(lw, nil, objectcache.Options{Snapshot: store})
		})
		newInformer(lw, nil, objectcache.Options{Snapshot: store, SnapshotSecrets: true})
	})
}

// Unstructured Secrets of a foreign source are found out when they are read, also where a restored
// snapshot has them already.
func TestUnstructuredSecretsAreNotWritten(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		file := snapshotFile(t)
		secret := unstructured.Unstructured{Object: map[string]interface{}{"apiVersion": "v1", "kind": "Secret"}}
		secret.SetName("s")
		secret.SetUID("u")
		secret.SetResourceVersion("4")
		newest, expired := "5", ""
		lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListFunc: func(metav1.ListOptions) (apiruntime.Object, error) {
				list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*secret.DeepCopy()}}
				list.SetResourceVersion(newest)
				return list, nil
			},
			WatchFunc: func(opts metav1.ListOptions) (watch.Interface, error) {
				if opts.ResourceVersion == expired {
					expired = ""
					return nil, apierrors.NewResourceExpired("it is too old")
				}
				return watch.NewFake(), nil
			},
		}, noWatchLists{})
		run := func(opts objectcache.Options) (refused bool) {
			var found atomic.Bool
			opts.Snapshot = informer.FileCheckpoint(file)
			opts.ErrorHandler = func(_ *informer.Reflector, err error) {
				if errors.Is(err, objectcache.ErrSecrets) {
					found.Store(true)
				}
			}
			stop := w.run(newInformer(lw, nil, opts))
			time.Sleep(time.Minute)
			stop()
			return found.Load()
		}
		require.True(t, run(objectcache.Options{}))
		require.NoFileExists(t, file)
		require.False(t, run(objectcache.Options{SnapshotSecrets: true}))
		require.FileExists(t, file)
		newest, expired = "6", "5" // it is listed again, and has not changed
		require.True(t, run(objectcache.Options{}))
	})
}

// Objects of an informer that did not look like one of Secrets are found out before they are
// written.
func TestSecretsOfAnotherTypeAreNotWritten(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		file := snapshotFile(t)
		secret := &corev1.SecretList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}
		lw := &cache.ListWatch{
			ListFunc: func(metav1.ListOptions) (apiruntime.Object, error) { return secret, nil },
		}
		pods := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
		i := newInformer(lw, pods, objectcache.Options{Snapshot: informer.FileCheckpoint(file)})
		partial := &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "s", ResourceVersion: "4"},
		}
		require.NoError(t, i.Store().Add(partial))
		err := objectcache.WriteState(i, io.Discard)
		require.True(t, err != nil && strings.Contains(err.Error(), "SnapshotSecrets"), "%v", err)
	})
}

// A ListerWatcher of others does not say what it lists, and an annotation of a Secret may
// have its data.
func TestSnapshotOfObjectsOfUnknownKindIsRefused(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		lw := &cache.ListWatch{ListFunc: func(metav1.ListOptions) (apiruntime.Object, error) {
			secret := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Name: "s", ResourceVersion: "4", Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: `{"data":{"password":"cGxhaW4="}}`},
			}}
			return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}, Items: []metav1.PartialObjectMetadata{secret}}, nil
		}}
		file := snapshotFile(t)
		snapshot := objectcache.Options{Snapshot: informer.FileCheckpoint(file)}
		for _, example := range []*metav1.PartialObjectMetadata{{}, {TypeMeta: metav1.TypeMeta{APIVersion: "v1"}}, nil} {
			require.PanicsWithValue(t, "objectcache: informer \"*v1.PartialObjectMetadata\": "+objectcache.ErrUnknownKind.Error(), func() {
				newInformer(lw, example, snapshot)
			})
		}
		for _, example := range []apiruntime.Object{&samples.Workload{}, (*samples.Workload)(nil)} { // a type of the program may be of Secrets
			require.PanicsWithValue(t, "objectcache: informer \"*samples.Workload\": "+objectcache.ErrUnknownKind.Error(), func() {
				newInformer(lw, example, snapshot)
			})
		}
		require.NoFileExists(t, file)
		newInformer(lw, &samples.Workload{TypeMeta: metav1.TypeMeta{APIVersion: "x.io/v1", Kind: "Workload"}}, snapshot)
		newInformer(w.lister(), &samples.Workload{}, snapshot)
		pods := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
		newInformer(lw, pods, snapshot)
		newInformer(w.lister(), &metav1.PartialObjectMetadata{}, snapshot) // it says the resource
		newInformer(lw, &metav1.PartialObjectMetadata{}, objectcache.Options{})
		newInformer(lw, &metav1.PartialObjectMetadata{}, objectcache.Options{Snapshot: informer.FileCheckpoint(file), SnapshotSecrets: true})
	})
}

// Nothing but its objects says the kind of an informer without an example. They may be written if
// each of them says it.
func TestUnstructuredObjectsThatSayTheirKindAreWritten(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		lw := &cache.ListWatch{ListFunc: func(metav1.ListOptions) (apiruntime.Object, error) { return &unstructured.UnstructuredList{}, nil }}
		i := newInformer(lw, nil, objectcache.Options{Snapshot: informer.FileCheckpoint(snapshotFile(t))})
		obj := &unstructured.Unstructured{Object: map[string]interface{}{"apiVersion": "x.io/v1", "kind": "Widget"}}
		obj.SetName("w")
		obj.SetResourceVersion("4")
		require.NoError(t, i.Store().Add(obj))
		require.NoError(t, objectcache.WriteState(i, io.Discard))
	})
}

// What a Transform makes of a Secret of a ListerWatcher of others is not written either, though it
// is not called one any more.
func TestSecretsWithoutTheirKindAreNotWritten(t *testing.T) {
	toMetadata := func(obj interface{}) (interface{}, error) {
		u := obj.(*unstructured.Unstructured)
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: u.GetName(), Annotations: u.GetAnnotations()}}, nil
	}
	dropKind := func(obj interface{}) (interface{}, error) {
		unstructured.RemoveNestedField(obj.(*unstructured.Unstructured).Object, "kind")
		return obj, nil
	}
	toOwnType := func(obj interface{}) (interface{}, error) {
		return &samples.Workload{ObjectMeta: metav1.ObjectMeta{Name: obj.(*unstructured.Unstructured).GetName()}}, nil
	}
	for name, transform := range map[string]cache.TransformFunc{"to metadata": toMetadata, "to no kind": dropKind, "to a type of the program": toOwnType} {
		bubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *world) {
			secret := &unstructured.Unstructured{Object: map[string]interface{}{"apiVersion": "v1", "kind": "Secret"}}
			secret.SetName("s")
			secret.SetResourceVersion("6")
			events := watch.NewFakeWithChanSize(1, false)
			events.Add(secret)
			lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
				ListFunc: func(metav1.ListOptions) (apiruntime.Object, error) {
					list := &unstructured.UnstructuredList{}
					list.SetResourceVersion("5")
					return list, nil
				},
				WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return events, nil },
			}, noWatchLists{})
			i := newInformer(lw, nil, objectcache.Options{Snapshot: informer.FileCheckpoint(snapshotFile(t)), Transform: transform})
			stop := w.run(i)
			defer stop()
			synctest.Wait()
			require.Equal(t, []string{"s"}, i.Store().ListKeys())
			require.ErrorIs(t, objectcache.WriteState(i, io.Discard), objectcache.ErrUnknownKind)
		})
	}
}
