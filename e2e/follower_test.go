package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/e2e/cluster"
	"github.com/rvinformer/informer/informertest/oracle"
	"github.com/rvinformer/informer/internal/testkit/savedstate"
)

const (
	// late is how much later than it happened a write may be recorded: etcd tells the
	// API server and the recorder side by side. On a slow machine either may wait for the CPU.
	late = 20 * time.Second

	// look is how often a follower is asked what it claims.
	look = 50 * time.Millisecond

	// budget of each follower, in bytes: about thirty pods.
	budget = 32 << 10
	// largest is more than any object of these tests has in memory.
	largest = 16 << 10

	// A restless follower runs for a random time between these two.
	shortestRun = 500 * time.Millisecond
	longestRun  = 4 * time.Second
)

// way is how an informer is used.
type way struct {
	name   string
	config informer.InformerConfig

	// batches are handled, one in so many of them not at first, and a checkpoint is
	// kept. Otherwise a Storage is.
	batches bool
	// restless followers are stopped, killed if they have a checkpoint, and started
	// again.
	restless bool
}

// quick is a backoff with which a test need not wait long for what comes after.
func quick() *wait.Backoff {
	return &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 5, Cap: 2 * time.Second}
}

// ways returns one of each kind.
func ways() []way {
	raw := &informer.RawObject{}
	return []way{
		{name: "handler, auto"},
		{name: "handler, paged, restarts", restless: true, config: informer.InformerConfig{
			ListMode: informer.ListModePaged, WatchListPageSize: 20, Backoff: quick(),
		}},
		{name: "batches, auto, restarts", batches: true, restless: true, config: informer.InformerConfig{
			ExampleObject: raw, Backoff: quick(),
		}},
		{name: "batches, paged, restarts", batches: true, restless: true, config: informer.InformerConfig{
			ListMode: informer.ListModePaged, WatchListPageSize: 20, MaxBatch: 10, Backoff: quick(),
		}},
	}
}

// steady returns those of ways that run from the beginning to the end, in both list
// modes, with a handler and with a checkpoint.
func steady() []way {
	return []way{
		{name: "handler, auto", config: informer.InformerConfig{Backoff: quick()}},
		{name: "batches, paged", batches: true, config: informer.InformerConfig{
			ListMode: informer.ListModePaged, WatchListPageSize: 20, Backoff: quick(),
		}},
	}
}

// follower is an informer under an oracle. It runs, and if it is restless it ends and
// runs again, until it is told to stay and then to stop.
type follower struct {
	way
	oracle *oracle.Oracle
	seen   *tap
	path   string // of the checkpoint

	cancel context.CancelFunc
	calm   chan struct{} // closed when it is to stay as it is
	done   chan struct{} // closed when the last run has returned
	failed error         // why there was no other run; read only after done is closed

	told atomic.Int64 // events
	runs atomic.Int64
	dead atomic.Bool // the run under way plays dead: nothing of it is recorded any more

	mu       sync.Mutex
	informer informer.ResourceVersionInformer
	storage  *informer.ResourceVersionStorage
	errors   []string
}

// errKilled is what the handler of a run that plays dead returns, and is not recorded.
var errKilled = errors.New("killed")

// errRefused is what a handler returns for no reason.
var errRefused = errors.New("refused, to see what comes of it")

func newFollower(t *testing.T, w way, config *rest.Config, objects *cluster.Objects) *follower {
	t.Helper()
	f := &follower{
		way:    w,
		oracle: oracle.New(oracle.Options{Late: late, SeesLists: true}),
		seen:   &tap{},
		path:   filepath.Join(t.TempDir(), "checkpoint"),
		calm:   make(chan struct{}),
		done:   make(chan struct{}),
	}
	f.seen.before = func(_ context.Context, e exchange) error {
		if e.isSet() && !f.dead.Load() {
			f.oracle.Listed()
		}
		return nil
	}
	f.config.ListerWatcher = source(t, f.seen.install(config), objects)
	f.config.ErrorHandler = func(_ *informer.Reflector, err error) { f.note(err) }
	f.config.Budget = informer.NewBudget(budget)
	if f.batches {
		f.config.BatchHandler = f.gate(f.oracle.BatchHandler(informer.BatchHandlerFunc(f.handle)))
		f.config.Checkpoint = informer.FileCheckpoint(f.path)
		f.config.CheckpointInterval, f.config.CheckpointChanges = 300*time.Millisecond, 50
	} else {
		f.config.Handler = f.oracle.Handler(counting(&f.told))
		f.storage = informer.NewResourceVersionStorage()
	}
	return f
}

// counting counts what it is told.
func counting(n *atomic.Int64) informer.ResourceEventHandler {
	count := func(any) { n.Add(1) }
	return informer.ResourceEventHandlerFuncs{
		AddFunc: count, DeleteFunc: count, SyncFunc: count,
		UpdateFunc: func(_, _ any) { n.Add(1) },
	}
}

// handle takes most batches in, some of them slowly.
func (f *follower) handle(ctx context.Context, events []informer.Event) error {
	switch rand.IntN(40) {
	case 0:
		return errRefused
	case 1:
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f.told.Add(int64(len(events)))
	return nil
}

// gate keeps from next what a run is told that plays dead.
func (f *follower) gate(next informer.BatchHandler) informer.BatchHandler {
	return informer.BatchHandlerFunc(func(ctx context.Context, events []informer.Event) error {
		if f.dead.Load() {
			return errKilled
		}
		return next.OnBatch(ctx, events)
	})
}

func (f *follower) note(err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errors = append(f.errors, fmt.Sprintf("%s run %d: %v", time.Now().Format("15:04:05.000"), f.runs.Load(), err))
}

// start begins the first run. The follower is to be stopped.
func (f *follower) start(ctx context.Context) {
	ctx, f.cancel = context.WithCancel(ctx)
	go func() {
		defer close(f.done)
		for ctx.Err() == nil && f.failed == nil {
			f.failed = f.run(ctx)
		}
	}()
}

// stay lets the run under way, or the next one, go on until stop.
func (f *follower) stay() { close(f.calm) }

// stop ends the run under way, waits for it, and returns what was wrong apart from
// what the oracle knows.
func (f *follower) stop() error {
	f.cancel()
	<-f.done
	return f.failed
}

// now is the informer of the run under way, nil before the first, and its storage.
func (f *follower) now() (informer.ResourceVersionInformer, *informer.ResourceVersionStorage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.informer, f.storage
}

// run is one run of an informer, until ctx ends or the follower becomes restless.
func (f *follower) run(ctx context.Context) error {
	begins, err := f.prepare()
	if err != nil {
		return err
	}
	i, _ := f.now()
	f.oracle.Started(begins)
	f.runs.Add(1)
	runCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		i.RunWithContext(runCtx)
	}()

	f.watch(ctx, i)
	killed := ctx.Err() == nil && f.batches && rand.IntN(2) == 0
	var saved []byte
	if killed {
		f.dead.Store(true)
		if saved, err = os.ReadFile(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	cancel()
	<-returned
	f.oracle.Stopped(killed)
	if !killed {
		return nil
	}
	f.dead.Store(false)
	if saved == nil {
		if err := os.Remove(f.path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return os.WriteFile(f.path, saved, 0o600)
}

// prepare makes the informer of the next run, and says what it begins with.
func (f *follower) prepare() (begins oracle.Run, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.batches {
		f.storage = informer.NewResourceVersionStorage() // what a new process has
		begins.Resumed, begins.Known, err = readCheckpoint(f.path)
		begins.Journaled = true
	} else {
		begins.Known = maps.Collect(f.storage.All())
	}
	config := f.config
	config.Storage = f.storage
	f.informer = informer.NewResourceVersionInformer(f.name, config)
	return begins, err
}

// readCheckpoint reads what the next run begins with. Without a checkpoint that is
// nothing.
func readCheckpoint(path string) (resumed string, known map[string]string, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	content, err := savedstate.Read(bytes.NewReader(text))
	if err != nil {
		return "", nil, err
	}
	return content.Resume, content.State(), nil
}

// watch tells the oracle what the informer says of itself, until ctx or the time of
// a restless run ends.
func (f *follower) watch(ctx context.Context, i informer.ResourceVersionInformer) {
	var over <-chan time.Time
	calm := f.calm
	if f.restless {
		over = time.After(shortestRun + rand.N(longestRun-shortestRun))
	}
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	var saved time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-calm:
			over, calm = nil, nil
		case <-over:
			return
		case <-ticker.C:
			saved = f.ask(i, saved)
		}
	}
}

// ask tells the oracle what the informer says, and what is in a checkpoint that is
// newer than saved. It returns when that was saved.
func (f *follower) ask(i informer.ResourceVersionInformer, saved time.Time) time.Time {
	status := i.Status()
	f.oracle.Claimed(oracle.FromStatus, status.ResourceVersion)
	if i.HasSynced() {
		f.oracle.Synced()
	}
	f.oracle.Queued(f.config.Budget.InUse(), f.config.Budget.Limit(), largest)
	if status.CheckpointTime.Equal(saved) {
		return saved
	}
	if version, _, err := readCheckpoint(f.path); err == nil {
		f.oracle.Claimed(oracle.FromCheckpoint, version)
	} else {
		f.note(fmt.Errorf("the checkpoint that it has saved: %w", err))
	}
	return status.CheckpointTime
}

// quiet says why the follower is not at rest with those versions on the server, or
// returns nil.
func (f *follower) quiet(versions map[string]string) error {
	i, storage := f.now()
	if i == nil {
		return errors.New("it has not begun")
	}
	status := i.Status()
	stored := maps.Collect(storage.All())
	switch {
	case !status.Synced || status.Phase != informer.PhaseWatching || status.Queued > 0:
		return fmt.Errorf("its status is %+v", status)
	case !maps.Equal(stored, versions):
		return fmt.Errorf("%s", difference(versions, stored))
	}
	return nil
}

// difference names some of the keys whose versions differ in two sets.
func difference(want, got map[string]string) string {
	const most = 5
	var text bytes.Buffer
	differ := 0
	for key := range union(want, got) {
		if want[key] == got[key] {
			continue
		}
		if differ++; differ <= most {
			fmt.Fprintf(&text, "%s: the server has %q, stored is %q; ", key, want[key], got[key])
		}
	}
	fmt.Fprintf(&text, "%d of %d differ", differ, len(want))
	return text.String()
}

func union(a, b map[string]string) map[string]struct{} {
	keys := map[string]struct{}{}
	for key := range a {
		keys[key] = struct{}{}
	}
	for key := range b {
		keys[key] = struct{}{}
	}
	return keys
}

// show logs what the follower went through, with the newest errors that the informer
// reported.
func (f *follower) show(t *testing.T, errors int) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	t.Logf("%s: %d runs, %d lists or parts of one, %d watches, %d events, %d errors", f.name, f.runs.Load(),
		f.seen.count(exchange.isSet), f.seen.count(exchange.isWatch), f.told.Load(), len(f.errors))
	for _, line := range f.errors[max(0, len(f.errors)-errors):] {
		t.Log("  ", line)
	}
}

// requireJudged stops the follower and demands that nothing was wrong.
func (f *follower) requireJudged(t *testing.T) {
	t.Helper()
	require.NoError(t, f.stop(), f.name)
	f.show(t, 0)
	require.NoError(t, f.oracle.Check(), f.name)
}
