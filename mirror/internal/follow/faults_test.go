package follow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/mirror/internal/clusters"
	"github.com/rvinformer/informer/mirror/internal/mirrortest"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var errPower = errors.New("power is gone")

// faulty is a database that fails. Its functions may be nil.
type faulty struct {
	Database
	write func(events []informer.Event) error // before a batch is written
	save  func() error                        // before a checkpoint is saved
	load  func(of string, n int) (io.ReadCloser, error)
	known func(n int) error // before it says what it has rows of

	mu       sync.Mutex
	asked    int
	loads    map[string]int
	storages []*informer.ResourceVersionStorage
}

func (f *faulty) Place(t fleet.Target) Place {
	return faultyPlace{f.Database.Place(t), f, t.String()}
}

func (f *faulty) Known(ctx context.Context, u fleet.Unit) ([]schema.GroupVersionResource, error) {
	f.mu.Lock()
	f.asked++
	n := f.asked
	f.mu.Unlock()
	if f.known != nil {
		if err := f.known(n); err != nil {
			return nil, err
		}
	}
	return f.Database.Known(ctx, u)
}

type faultyPlace struct {
	Place
	faulty *faulty
	name   string
}

func (p faultyPlace) Storage(ctx context.Context) (*informer.ResourceVersionStorage, error) {
	s, err := p.Place.Storage(ctx)
	if err == nil {
		p.faulty.mu.Lock()
		defer p.faulty.mu.Unlock()
		p.faulty.storages = append(p.faulty.storages, s)
	}
	return s, err
}

func (p faultyPlace) Handler() informer.BatchHandler {
	to := p.Place.Handler()
	return informer.BatchHandlerFunc(func(ctx context.Context, events []informer.Event) error {
		p.faulty.mu.Lock()
		defer p.faulty.mu.Unlock()
		if p.faulty.write != nil {
			if err := p.faulty.write(events); err != nil {
				return err
			}
		}
		return to.OnBatch(ctx, events)
	})
}

func (p faultyPlace) Checkpoint() informer.CheckpointStore {
	return faultyCheckpoint{p.Place.Checkpoint(), p}
}

type faultyCheckpoint struct {
	informer.CheckpointStore
	place faultyPlace
}

func (c faultyCheckpoint) Save(ctx context.Context, write func(io.Writer) error) error {
	f := c.place.faulty
	if f.save != nil {
		f.mu.Lock()
		err := f.save()
		f.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return c.CheckpointStore.Save(ctx, write)
}

func (c faultyCheckpoint) Load(ctx context.Context) (io.ReadCloser, error) {
	f := c.place.faulty
	f.mu.Lock()
	f.loads[c.place.name]++
	n := f.loads[c.place.name]
	f.mu.Unlock()
	if f.load != nil {
		if r, err := f.load(c.place.name, n); r != nil || err != nil {
			return r, err
		}
	}
	return c.CheckpointStore.Load(ctx)
}

func newFaulty(db *sqlsink.Sink) *faulty { return &faulty{Database: Sink{db}, loads: map[string]int{}} }

// cut returns a database that takes so many batches and then nothing any more, like a process that
// was killed.
func cut(db *sqlsink.Sink, batches int) *faulty {
	f := newFaulty(db)
	f.write = func([]informer.Event) error {
		if batches == 0 {
			return errPower
		}
		batches--
		return nil
	}
	f.save = func() error {
		if batches == 0 {
			return errPower
		}
		return nil
	}
	return f
}

// Whenever a mirror is stopped, its informer knows exactly what the database has, also while objects
// change and transactions fail. So the next run, or a checkpoint of the informer, can go on from
// there.
func TestInformerKnowsWhatIsWritten(t *testing.T) {
	t.Parallel()
	c := mirrortest.NewCluster(t, "here", 1000, informertest.Options{})
	db, stock := openFile(t), c.Of(t, mirrortest.Pods)
	f, tries := newFaulty(db), 0
	f.write = func([]informer.Event) error {
		if tries++; tries%2 == 1 {
			return errPower
		}
		return nil
	}
	s := setting{Config: Config{Database: f, Resources: []string{"pods"}}, endpoints: []clusters.Endpoint{c.Endpoint()}}
	for round := range 8 {
		r := start(t, s)
		for began, i := time.Now(), 0; time.Since(began) < time.Duration(round)*50*time.Millisecond; i++ {
			require.NoError(t, stock.Create())
			require.NoError(t, stock.Delete())
			require.NoError(t, stock.Recreate(7*i))
			require.NoError(t, stock.Update(11*i))
			time.Sleep(time.Millisecond)
		}
		_ = r.stop() // perhaps that something is not written
		f.mu.Lock()
		for _, storage := range f.storages {
			require.Equal(t, versions(t, db, "here", mirrortest.Pods), maps.Collect(storage.All()), "round %d", round)
		}
		f.storages = nil
		f.mu.Unlock()
	}
	rowsByName(t, setting{Config: Config{Resources: []string{"pods"}}, sink: db, endpoints: s.endpoints})
	c.Equal(t, db, mirrortest.Pods)
}

// A database that is down for a while is told in two lines, of however many resources and tries.
// What changed meanwhile is written when it is up again.
func TestDatabaseIsDownForAWhile(t *testing.T) {
	t.Parallel()
	c := mirrortest.NewCluster(t, "here", 400, informertest.Options{})
	db := openFile(t)
	f, up, tries := newFaulty(db), false, 0
	f.write = func([]informer.Event) error {
		if up {
			return nil
		}
		tries++
		return errPower
	}
	r := start(t, setting{Config: Config{Database: f}, endpoints: []clusters.Endpoint{c.Endpoint()}})
	require.Eventually(t, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return tries > 30
	}, soon, time.Millisecond)
	for i := range 10 {
		require.NoError(t, c.Of(t, mirrortest.Pods).Delete())
		require.NoError(t, c.Of(t, mirrortest.Pods).Recreate(i))
		require.NoError(t, c.Of(t, mirrortest.Widgets).Create())
	}
	f.mu.Lock()
	up = true
	f.mu.Unlock()
	r.settle(t)
	r.says(t, "writing again")
	r.reaches(t, c, mirrortest.Pods, mirrortest.Widgets)
	c.Equal(t, db)
	require.NoError(t, r.stop())
	require.Regexp(t, `^mirror: database \S+: cannot write: power is gone; the informers wait while it is tried again
mirror: database \S+: writing again, after \S+
$`, r.out.Messages())
}

// A stop while nothing can be written ends, and says what is missing. The next start repairs it.
func TestStopWhileNothingCanBeWritten(t *testing.T) {
	t.Parallel()
	c := mirrortest.NewCluster(t, "here", 200, informertest.Options{})
	db := openFile(t)
	r := start(t, setting{Config: Config{Database: cut(db, 0)}, endpoints: []clusters.Endpoint{c.Endpoint()}})
	r.says(t, "cannot write: power is gone; the informers wait")
	require.ErrorContains(t, r.stop(), "are not written, the next start fetches them again: power is gone")

	rowsByName(t, setting{sink: db, endpoints: []clusters.Endpoint{c.Endpoint()}})
	c.Equal(t, db)
}

// With patience and nothing that can be written, everything settles all the same.
func TestGivesUpADatabaseThatIsDown(t *testing.T) {
	t.Parallel()
	c := mirrortest.NewCluster(t, "here", 100, informertest.Options{})
	r := start(t, setting{Config: Config{Database: cut(openFile(t), 0), Patience: Patience(10 * time.Second)}, endpoints: []clusters.Endpoint{c.Endpoint()}})
	r.settle(t)
	for _, row := range r.Rows() {
		require.True(t, row.Failed, row)
		require.Contains(t, row.Problem, "no progress for 10s")
	}
	require.ErrorContains(t, r.stop(), "power is gone")
}

// An outage ends when the other clusters are written again. Changes of a removed cluster are not waited
// for.
func TestOutageOfARemovedCluster(t *testing.T) {
	t.Parallel()
	here, there := mirrortest.NewCluster(t, "here", 30, informertest.Options{}), mirrortest.NewCluster(t, "there", 30, informertest.Options{})
	f := newFaulty(openFile(t))
	var broken atomic.Bool
	broken.Store(true)
	f.write = func([]informer.Event) error {
		if broken.Load() {
			return errPower
		}
		return nil
	}
	r := start(t, setting{Config: Config{Database: f}, endpoints: []clusters.Endpoint{here.Endpoint(), there.Endpoint()}})
	r.says(t, "cannot write: power is gone")
	missing := func(changes string) func() bool {
		return func() bool {
			err := r.outage.unwritten()
			return err != nil && strings.Contains(err.Error(), changes)
		}
	}
	require.Eventually(t, missing(": 60 changes"), soon, 20*time.Millisecond)
	r.Remove("there")
	require.Eventually(t, missing(": 30 changes"), soon, 20*time.Millisecond)
	broken.Store(false)
	r.settle(t)
	r.says(t, "writing again")
	require.NoError(t, r.stop())
}

// A database that refuses a connection for an instant, while it is asked whether rows are left, is
// not given up.
func TestDatabaseIsAwayForAnInstant(t *testing.T) {
	t.Parallel()
	c := mirrortest.NewCluster(t, "here", 30, informertest.Options{})
	f := newFaulty(openFile(t))
	f.known = func(n int) error {
		if n == 2 { // the first one is the fleet's
			return &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}
		return nil
	}
	r := start(t, setting{Config: Config{Database: f, Patience: Patience(soon)}, endpoints: []clusters.Endpoint{c.Endpoint()}})
	r.settle(t)
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Greater(t, f.asked, 2)
}

// A crash in the midst of the first sync leaves rows that are right, if not all of them. The next
// start adds the others.
func TestCutOffInTheMidst(t *testing.T) {
	t.Parallel()
	c := mirrortest.NewCluster(t, "here", 1500, informertest.Options{}) // about half are pods, more than a batch
	db := openFile(t)
	s := setting{Config: Config{Database: cut(db, 1), Resources: []string{"pods"}}, endpoints: []clusters.Endpoint{c.Endpoint()}}
	r := start(t, s)
	r.says(t, "power is gone")
	require.Error(t, r.stop())

	rows := len(versions(t, db, "here", mirrortest.Pods))
	require.NotZero(t, rows)
	differences := c.Differences(t, db, mirrortest.Pods)
	require.NotEmpty(t, differences)
	for _, difference := range differences {
		require.Contains(t, difference, "there is no row")
	}

	s.Database = Sink{db}
	second := rowsByName(t, s)["here pods"].Counts
	require.EqualValues(t, len(differences), second.Added)
	require.EqualValues(t, rows, second.Unchanged)
	require.Zero(t, second.Updated+second.Deleted)
	c.Equal(t, db, mirrortest.Pods)
}

// Where no checkpoint can be saved, that is told once, and costs a list at the next start; nothing
// else.
func TestCheckpointsCannotBeSaved(t *testing.T) {
	t.Parallel()
	c := mirrortest.NewCluster(t, "here", 400, informertest.Options{})
	db := openFile(t)
	f := newFaulty(db)
	f.save = func() error { return errors.New("disk full") }
	r := start(t, setting{Config: Config{Database: f}, endpoints: []clusters.Endpoint{c.Endpoint()}})
	r.settle(t)
	r.says(t, "cannot write: disk full")
	require.NoError(t, r.stop())
	require.Equal(t, 1, strings.Count(r.out.Messages(), "\n"), r.out)
	c.Equal(t, db)

	mirrored(t, Sink{db}, db, c)
	require.Len(t, c.Listed(), len(c.Stock))
}

// The connection breaks while a checkpoint is loaded, before the first answer and in the midst of
// the second. The checkpoint is loaded again, and nothing is listed.
func TestConnectionBreaksWhileCheckpointIsLoaded(t *testing.T) {
	t.Parallel()
	db := openFile(t)
	c := mirrortest.NewCluster(t, "here", 400, informertest.Options{})
	mirrored(t, Sink{db}, db, c)
	c.ChangeAll(t)
	f := newFaulty(db)
	lost := fmt.Errorf("connection lost")
	f.load = func(_ string, n int) (io.ReadCloser, error) {
		switch n {
		case 1:
			return nil, lost
		case 2:
			return io.NopCloser(io.MultiReader(strings.NewReader("\x89RVC"), iotest.ErrReader(lost))), nil
		}
		return nil, nil
	}
	mirrored(t, f, db, c)
	require.Empty(t, c.Listed())
}

// A row that the database refuses is told once, and given up after some tries. Its resource does not
// count as synced.
func TestRefusedRowIsToldOnce(t *testing.T) {
	t.Parallel()
	c := mirrortest.NewCluster(t, "here", 100, informertest.Options{})
	db := openFile(t)
	f := newFaulty(db)
	f.write = func(events []informer.Event) error {
		var refused informer.FailedEvents
		for i, e := range events {
			if e.Key == "node-000000" && e.Type == informer.Added {
				refused = append(refused, informer.FailedEvent{Index: i, Err: errors.New("value too long")})
			}
		}
		if refused != nil {
			return refused // and writes nothing: what is not named comes again at the next start
		}
		return nil
	}
	r := start(t, setting{Config: Config{Database: f, Resources: []string{"nodes"}}, endpoints: []clusters.Endpoint{c.Endpoint()}})
	r.settle(t)
	r.says(t, "1 row refused")
	require.NoError(t, r.stop())
	require.True(t, r.Rows()[0].Failed)
	require.Equal(t, "mirror: here nodes: node-000000 is refused: value too long\nmirror: here nodes: 1 row refused by the database\n", r.out.Messages())
}
