package checkpoints_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// disk is a file that may hang or be full while it is appended to.
type disk struct {
	informer.CheckpointStore
	informer.CheckpointAppender
	hangs atomic.Pointer[chan struct{}]
	full  atomic.Bool
	// readOnly has all fail, and nothing written.
	readOnly atomic.Bool
	// lands has all return an error once it is written.
	lands atomic.Bool
	// loads, if set, is called when it is read.
	loads atomic.Pointer[func()]
	// broken tells that an Append has failed, and that no Save has returned nil since; behind counts
	// what was appended meanwhile.
	broken atomic.Bool
	behind atomic.Int32
}

func newDisk(path string) *disk {
	file := informer.FileCheckpoint(path)
	return &disk{CheckpointStore: file, CheckpointAppender: file.(informer.CheckpointAppender)}
}

func (d *disk) Append(ctx context.Context, b []byte) error {
	if gate := d.hangs.Load(); gate != nil {
		<-*gate
	}
	if d.broken.Load() {
		d.behind.Add(1)
	}
	if d.readOnly.Load() {
		return fs.ErrPermission
	}
	if d.full.Load() {
		d.broken.Store(true)
		return errors.Join(errors.New("no space left"), d.CheckpointAppender.Append(ctx, b[:len(b)/2]))
	}
	return d.landed(d.CheckpointAppender.Append(ctx, b))
}

func (d *disk) landed(err error) error {
	if err == nil && d.lands.Load() {
		return errors.New("written all the same")
	}
	return err
}

func (d *disk) Load(ctx context.Context) (io.ReadCloser, error) {
	if loads := d.loads.Load(); loads != nil {
		(*loads)()
		ctx = context.WithoutCancel(ctx)
	}
	return d.CheckpointStore.Load(ctx)
}

func (d *disk) Save(ctx context.Context, write func(io.Writer) error) error {
	if d.readOnly.Load() {
		return fs.ErrPermission
	}
	err := d.CheckpointStore.Save(ctx, write)
	if err == nil {
		d.broken.Store(false)
	}
	return d.landed(err)
}

// handlersOf are the two kinds of handlers, with a function that is called for each key.
func handlersOf(see func(key string)) map[string]informer.InformerConfig {
	return map[string]informer.InformerConfig{
		"handler": {Handler: informer.ResourceEventHandlerFuncs{AddFunc: func(obj interface{}) { see(harness.Key(obj)) }}},
		"batches": {BatchHandler: informer.IgnoreSynced(informer.BatchHandlerFunc(func(_ context.Context, events []informer.Event) error {
			for _, e := range events {
				see(e.Key)
			}
			return nil
		}))},
	}
}

// A run that ends while an object is decoded calls no handler whose key the journal does not have: a
// kill at that moment would leave an object of whose deletion no later process would tell.
func TestRunEndsWhileAnObjectIsDecoded(t *testing.T) {
	for range 20 { // whether an Append is tried at all is up to a select
		path := filepath.Join(t.TempDir(), "pods")
		unwritten := false
		for name, config := range handlersOf(func(key string) {
			content, err := os.ReadFile(path)
			unwritten = unwritten || err != nil || !bytes.Contains(content, []byte(key)) && key == "a/zebra"
		}) {
			require.NoError(t, os.RemoveAll(path))
			harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
				w.CreatePods("a/1")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				config.Checkpoint = informer.FileCheckpoint(path)
				config.Transform = func(obj interface{}) (interface{}, error) {
					if harness.Key(obj) == "a/zebra" {
						cancel()
					}
					return obj, nil
				}
				i := harness.Follow(w, config)
				done := make(chan struct{})
				go func() { defer close(done); i.RunWithContext(ctx) }()
				time.Sleep(2 * time.Minute)
				w.CreatePods("a/zebra")
				<-done
				require.False(t, unwritten, name)
			})
		}
	}
}

// A worker that waits for its turn to write into the journal calls no handler when the run ends
// meanwhile. The next run does.
func TestRunEndsWhileTheJournalIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pods")
	called := make(chan string, 100)
	for name, config := range handlersOf(func(key string) { called <- key }) {
		require.NoError(t, os.RemoveAll(path))
		harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreateKubeSystem()
			w.CreatePods("a/1")
			d := newDisk(path)
			config.Workers, config.Checkpoint = 2, d
			i := harness.Follow(w, config)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); i.RunWithContext(ctx) }()
			time.Sleep(2 * time.Minute)
			require.Equal(t, "a/1", <-called)

			gate := make(chan struct{})
			d.hangs.Store(&gate)
			w.CreatePods("a/2") // one worker writes that down
			synctest.Wait()
			w.CreatePods("a/3") // another one waits for that
			synctest.Wait()
			cancel()
			synctest.Wait()
			require.Empty(t, called, "%s: called while the disk hangs", name)
			d.hangs.Store(nil)
			close(gate)
			<-done
			for len(called) > 0 {
				require.Equal(t, "a/2", <-called, name)
			}

			i = harness.Follow(w, config)
			w.Run(i)
			time.Sleep(time.Minute)
			told := map[string]bool{}
			for len(called) > 0 {
				told[<-called] = true
			}
			require.True(t, told["a/3"], name)
			require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion)
		})
	}
}

// After an Append that has failed, also one within a Save, nothing is appended before a Save has
// succeeded: it would be behind a part of a frame, where nobody reads it.
func TestAppendFailsWithinASave(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pods")
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		d := newDisk(path)
		returns := make(chan struct{})
		handler := informer.ResourceEventHandlerFuncs{AddFunc: func(obj interface{}) {
			if strings.HasPrefix(harness.Key(obj), "a/slow") {
				<-returns
			}
		}}
		storage := informer.NewResourceVersionStorage()
		i := harness.Follow(w, informer.InformerConfig{Handler: handler, Workers: 3, Checkpoint: d, Storage: storage})
		stop := w.Run(i)
		time.Sleep(3 * time.Minute)
		w.CreatePods("a/slow")
		synctest.Wait()
		require.NoError(t, storage.Add(harness.Pod("b/other", "1"))) // so that the next save is of all
		d.full.Store(true)
		time.Sleep(60500 * time.Millisecond)
		require.True(t, d.broken.Load())
		d.full.Store(false)
		w.CreatePods("a/slow-2")
		synctest.Wait()
		behind := d.behind.Load()
		close(returns)
		stop()
		require.Zero(t, behind)
		require.False(t, d.broken.Load(), "the last save is of all")
	})
}
