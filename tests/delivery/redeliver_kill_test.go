package delivery_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/internal/testkit/savedstate"
	"github.com/rvinformer/informer/tests/harness"
)

var _ = harness.Role("redelivers", redeliverUntilKilled)

// redeliveredObjects is how many objects are delivered again. INFORMER_REDELIVER has another number:
//
//	INFORMER_REDELIVER=1000000 go test -v -run TestRedeliverKilledHalfWay ./tests/delivery
func redeliveredObjects() int {
	if n, err := strconv.Atoi(os.Getenv("INFORMER_REDELIVER")); err == nil {
		return n
	}
	return 2000
}

// A process that is killed half way of a redelivery, while 500 objects a second change and some are
// deleted, leaves with what the next one goes on: each object is delivered again by one of the two,
// and nothing older after what is newer.
func TestRedeliverKilledHalfWay(t *testing.T) {
	objects := redeliveredObjects()
	s := informertest.NewServer(informertest.Options{})
	defer s.Close()
	require.NoError(t, s.Load(harness.Pods, func(yield func(runtime.Object) bool) {
		for i := range objects {
			if !yield(harness.Object(harness.Pods, lagKey(i), "0")) {
				return
			}
		}
	}))
	harness.PassServer(t, s.Config())
	path := filepath.Join(t.TempDir(), "pods")
	told := retold{t: t, version: map[string]uint64{}, deleted: map[string]bool{}}

	p := harness.StartProcess(t, "redelivers", path)
	told.until(p, "synced")
	require.Len(t, told.version, objects)
	ctx, cancel := context.WithCancel(t.Context())
	gone := map[string]bool{}
	var writing sync.WaitGroup
	defer writing.Wait()
	defer cancel()
	writing.Go(func() { gone = keepChangingAndDeleting(ctx, t, s, objects) })
	told.again = map[string]bool{}
	told.until(p, "half")
	before := told.events
	p.Kill()
	p.Wait()

	p = harness.StartProcess(t, "redelivers", path)
	done, err := strconv.Atoi(strings.TrimPrefix(told.until(p, "goes on from "), "goes on from "))
	require.NoError(t, err)
	require.Positive(t, done)
	told.until(p, "done")
	cancel()
	writing.Wait()
	_, err = s.Create(harness.Pods, harness.Object(harness.Pods, "last/last", "0"))
	require.NoError(t, err)
	told.until(p, "last/last ")
	p.Kill()
	p.Wait()

	t.Logf("%d events until the kill, which came back to %d; %d after it; %d deleted", before, done, told.events-before, len(gone))
	versions, err := s.ResourceVersions(harness.Pods, "")
	require.NoError(t, err)
	for key := range gone {
		require.True(t, told.deleted[key], key)
	}
	for key, version := range versions {
		require.Equal(t, version, fmt.Sprint(told.version[key]), key)
		require.True(t, told.again[key], key)
		require.False(t, told.deleted[key], key)
	}
}

// keepChangingAndDeleting changes 500 objects a second until ctx ends, and deletes each fiftieth
// instead. It returns what it has deleted.
func keepChangingAndDeleting(ctx context.Context, t *testing.T, s *informertest.Server, objects int) map[string]bool {
	gone := map[string]bool{}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return gone
		case <-tick.C:
		}
		key := lagKey(n * 7919 % objects)
		var err error
		switch namespace, name, _ := strings.Cut(key, "/"); {
		case gone[key]:
		case n%50 == 0:
			err, gone[key] = s.Delete(harness.Pods, namespace, name), true
		default:
			_, err = s.Update(harness.Pods, harness.Object(harness.Pods, key, fmt.Sprint(n)))
		}
		if err != nil {
			t.Error(err)
			return gone
		}
	}
}

// retold is what processes have told, one after the other.
type retold struct {
	t       *testing.T
	events  int
	version map[string]uint64
	deleted map[string]bool
	again   map[string]bool // nil before the redelivery
}

// until reads lines until one begins with end, and returns that.
func (o *retold) until(p *harness.Process, end string) string {
	o.t.Helper()
	for {
		line := p.Line()
		require.NotEmpty(o.t, line, "the process has ended before %q", end)
		if key, text, ok := strings.Cut(line, " "); ok && strings.Contains(key, "/") {
			o.event(key, text)
		}
		if strings.HasPrefix(line, end) {
			return line
		}
	}
}

func (o *retold) event(key, text string) {
	o.t.Helper()
	text, deleted := strings.CutSuffix(text, " deleted")
	version, err := strconv.ParseUint(text, 10, 64)
	require.NoError(o.t, err)
	require.GreaterOrEqual(o.t, version, o.version[key], "%s is older", key)
	require.False(o.t, o.deleted[key] && !deleted, "%s was deleted", key)
	o.events++
	o.version[key] = version
	if deleted {
		o.deleted[key] = true
	}
	if o.again != nil {
		o.again[key] = true
	}
}

// redeliverUntilKilled follows the pods. Without a checkpoint, it delivers them again, and waits to be
// killed once half of them were. With one, it goes on with that.
func redeliverUntilKilled(t require.TestingT, path string) {
	_, err := os.Stat(path)
	first := errors.Is(err, fs.ErrNotExist)
	h := &redeliveredHandler{path: path, out: bufio.NewWriterSize(os.Stdout, 1<<16), resumes: !first}
	h.informer = informer.NewResourceVersionInformer("pods", informer.InformerConfig{
		ListerWatcher:      harness.ListerOf(t, harness.PassedServer()),
		ExampleObject:      &metav1.PartialObjectMetadata{},
		BatchHandler:       h,
		Checkpoint:         informer.FileCheckpoint(path),
		CheckpointInterval: 100 * time.Millisecond,
	})
	harness.Start(h.informer.RunWithContext)
	if first {
		<-h.informer.HasSyncedChecker().Done()
		h.mu.Lock()
		h.print("synced")
		h.left = redeliveredObjects() / 2
		h.mu.Unlock()
		require.NoError(t, h.informer.Redeliver(context.Background(), informer.RedeliverOptions{}))
	}
	for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
		if h.toldResumed() && h.informer.Status().Redelivery == nil {
			break
		}
	}
	h.mu.Lock()
	h.print("done")
	h.mu.Unlock()
	select {}
}

// redeliveredHandler prints what it is told.
type redeliveredHandler struct {
	informer informer.ResourceVersionInformer
	path     string // of the checkpoint

	mu      sync.Mutex
	out     *bufio.Writer
	left    int // how many events are left until half of the redelivery; 0 before and without one
	resumes bool
}

// saved reports whether the checkpoint says that objects were delivered again.
func (h *redeliveredHandler) saved() bool {
	f, err := os.Open(h.path)
	if err != nil {
		return false
	}
	defer f.Close()
	content, err := savedstate.Read(f)
	return err == nil && strings.Contains(content.Redelivery, `"done":`)
}

// toldResumed reports whether the handler has been called, if it was to say from where it goes on.
func (h *redeliveredHandler) toldResumed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.resumes
}

func (h *redeliveredHandler) print(line string) {
	fmt.Fprintln(h.out, line)
	_ = h.out.Flush()
}

// OnBatch implements informer.BatchHandler.
func (h *redeliveredHandler) OnBatch(_ context.Context, events []informer.Event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.resumes {
		h.resumes = false
		if r := h.informer.Status().Redelivery; r != nil {
			h.print(fmt.Sprint("goes on from ", r.Done))
		}
	}
	for _, e := range events {
		fmt.Fprint(h.out, e.Key, " ", e.ResourceVersion)
		if e.Type == informer.Deleted {
			fmt.Fprint(h.out, " deleted")
		}
		fmt.Fprintln(h.out)
	}
	_ = h.out.Flush()
	if h.left > 0 {
		// The redelivery is half way also if most of these events were changes.
		r := h.informer.Status().Redelivery
		if h.left = max(h.left-len(events), 1); h.left == 1 && r != nil && r.Done > 0 {
			for !h.saved() {
				time.Sleep(10 * time.Millisecond)
			}
			h.print("half")
			select {}
		}
	}
	return nil
}
