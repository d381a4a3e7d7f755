package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/mirror/pgtest"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// process is the mirror as a program of its own, which can be killed.
type process struct {
	command *exec.Cmd
	out     *output
}

// crashes is a test that kills the mirror: a database, and the clusters that it mirrors.
type crashes struct {
	*testing.T
	*rand.Rand
	path       string // of the SQLite file; empty with PostgreSQL
	address    string // of the PostgreSQL database
	server     *pgtest.Server
	kubeconfig string
	clusters   []*demoCluster
	running    *process
	churn      *churn // nil while nothing changes
	deletes    int    // the first so many kinds of objects are deleted too, by now

	starts, feeds   int // that were compared
	silent, resumed int // those of them without a list
}

// Whenever the mirror is killed, the next start has the database equal the servers again: nothing
// is missing, nothing too much, nothing old. Objects change all the time, also while it is down,
// and the servers forget what they were. MIRROR_KILLS says how often the mirror is killed; the
// default is a sample. With PostgreSQL, the server is killed now and then too.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { testKills(t, nil) })
	t.Run("postgres", func(t *testing.T) {
		testKills(t, pgtest.Start(t, "full_page_writes=on"))
	})
}

func testKills(t *testing.T, server *pgtest.Server) {
	kills, err := strconv.Atoi(cmp.Or(os.Getenv("MIRROR_KILLS"), "6"))
	require.NoError(t, err)
	seed := uint64(1) // what is red is what has changed
	if text := os.Getenv("MIRROR_SEED"); text != "" {
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("MIRROR_SEED=%d", seed)
	c := newCrashes(t, rand.New(rand.NewPCG(seed, 0)), server)

	c.start()
	c.settle("the first start")
	for kill := range kills {
		young := c.IntN(2) == 0
		if young { // to be killed while it starts, or while it fills an empty database
			c.kill()
			c.whileDown()
			if c.IntN(4) == 0 {
				c.lose()
			}
			c.start()
		}
		c.deletes = c.IntN(3) * len(demoKinds()) / 2
		c.change(true)
		time.Sleep(time.Duration(c.Int64N(int64(250 * time.Millisecond))))
		if c.server != nil && c.IntN(2) == 0 {
			c.server.Kill(t)
			if c.IntN(2) == 0 { // the mirror goes on for a while
				c.server.Restart(t)
				time.Sleep(time.Duration(c.Int64N(int64(250 * time.Millisecond))))
				c.kill()
			} else {
				c.kill()
				c.server.Restart(t)
			}
		} else {
			c.kill()
		}
		c.change(false)
		c.whileDown()
		c.start()
		c.settle(fmt.Sprintf("kill %d, young %v", kill, young))
	}
	t.Logf("of %d starts that were compared, %d listed nothing; of their %d feeds, %d went on without a list", c.starts, c.silent, c.feeds, c.resumed)

	// An orderly stop leaves nothing to list.
	feeds := len(c.clusters) * len(demoKinds())
	require.Eventually(t, func() bool { return len(settledLine.FindAllString(c.running.out.String(), -1)) == feeds }, soon, 100*time.Millisecond)
	require.NoError(t, c.running.command.Process.Signal(syscall.SIGTERM))
	require.NoError(t, c.running.command.Wait(), c.running.out)
	before := c.silent
	c.start()
	c.settle("a stop")
	require.Equal(t, before+1, c.silent, "starts that listed nothing")

	// Each checkpoint is of that stop now, if not newer, and changes without a deletion leave
	// nothing to list after a kill either. The kills above prove no such thing: a disk may be too
	// slow to have saved any checkpoint before them.
	c.deletes = 0
	c.change(true)
	time.Sleep(time.Duration(c.Int64N(int64(250 * time.Millisecond))))
	c.kill()
	c.change(false)
	c.start()
	c.settle("a kill among changes without deletions")
	require.Equal(t, before+2, c.silent, "starts that listed nothing")
}

var settledLine = regexp.MustCompile(`: (synced|resumed) in `)

func newCrashes(t *testing.T, random *rand.Rand, server *pgtest.Server) *crashes {
	c := &crashes{T: t, Rand: random, server: server}
	if server != nil {
		c.address = server.NewDatabase(t)
	} else {
		c.path = filepath.Join(t.TempDir(), "mirror.db")
	}
	var endpoints []endpoint
	for _, name := range []string{"east", "west"} {
		cluster := newTestCluster(t, name, 150, informertest.Options{})
		c.clusters, endpoints = append(c.clusters, cluster), append(endpoints, cluster.endpoint())
	}
	c.kubeconfig = writeKubeconfig(t, endpoints...)
	t.Cleanup(func() {
		c.change(false)
		if c.running != nil {
			c.kill()
		}
	})
	return c
}

func (c *crashes) start() {
	for _, cluster := range c.clusters {
		cluster.server.ResetRequests()
	}
	p := &process{out: newOutput()}
	p.command = mirrorCommand("--kubeconfig", c.kubeconfig, "--context=east", "--context=west")
	if c.server != nil {
		p.command.Args = append(p.command.Args, "--database", c.address)
	} else {
		p.command.Args = append(p.command.Args, "--db", c.path)
	}
	p.command.Stdout, p.command.Stderr = p.out.screen.out, p.out.screen.errs
	require.NoError(c, p.command.Start())
	c.running = p
}

func (c *crashes) kill() {
	require.NoError(c, c.running.command.Process.Kill(), c.running.out) // it may have ended by itself
	_ = c.running.command.Wait()                                        // it says that it was killed
	c.running = nil
}

// lose removes the database.
func (c *crashes) lose() {
	if c.server != nil {
		c.server.Query(c, "test1", "DROP TABLE IF EXISTS objects, checkpoints, units, mirror_writes")
		return
	}
	for _, part := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(c.path + part); !errors.Is(err, fs.ErrNotExist) {
			require.NoError(c, err)
		}
	}
}

// change starts or stops the changes.
func (c *crashes) change(going bool) {
	if c.churn != nil {
		require.NoError(c, c.churn.Stop())
		c.churn = nil
	}
	if !going {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.churn = &churn{cancel: cancel, going: &errgroup.Group{}}
	for _, cluster := range c.clusters {
		random := rand.New(rand.NewPCG(c.Uint64(), 0))
		c.churn.going.Go(func() error {
			for ; ctx.Err() == nil; time.Sleep(2 * time.Millisecond) {
				if err := changeAny(cluster, random, c.deletes); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// whileDown changes this and that while no mirror runs, and may have the servers forget it.
func (c *crashes) whileDown() {
	for _, cluster := range c.clusters {
		for range c.IntN(40) {
			require.NoError(c, changeAny(cluster, c.Rand, c.deletes))
		}
		if c.IntN(4) == 0 {
			cluster.server.Compact()
		}
	}
}

// changeAny creates, changes, deletes or recreates an object, and leaves at least one of each kind.
// It deletes only those of the first kinds: after a deletion that its checkpoint does not know of,
// an informer that was killed lists.
func changeAny(of *demoCluster, random *rand.Rand, deletes int) error {
	i := random.IntN(len(of.stock))
	stock, what := of.stock[i], random.IntN(8)
	switch {
	case what == 0:
		return stock.Create()
	case what == 1 && i < deletes && stock.next-stock.first > 1:
		return stock.Delete()
	case what < 4 && i < deletes:
		return stock.Recreate(random.Int())
	default:
		_, err := stock.Update(random.Int())
		return err
	}
}

// settle waits until the database equals the servers, on which nothing changes any more, and sees
// that it stays so.
func (c *crashes) settle(after string) {
	c.Helper()
	for _, cluster := range c.clusters {
		for _, stock := range cluster.stock { // so that each feed has something to tell
			_, err := stock.Update(0)
			require.NoError(c, err)
		}
	}
	for began := time.Now(); !c.caughtUp(); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > soon {
			break
		}
	}
	time.Sleep(50 * time.Millisecond)
	require.Empty(c, c.differences(), "after %s:\n%s", after, c.running.out)
	feeds, lists := 0, 0
	for _, cluster := range c.clusters {
		feeds, lists = feeds+len(cluster.stock), lists+len(listed(cluster.server))
	}
	c.starts, c.feeds, c.resumed = c.starts+1, c.feeds+feeds, c.resumed+feeds-lists
	if lists == 0 {
		c.silent++
	}
}

// caughtUp compares the resource versions.
func (c *crashes) caughtUp() (equal bool) {
	equal = true
	c.read(func(db database, of place, server *informertest.Server) {
		want, err := server.ResourceVersions(of.resource, "")
		require.NoError(c, err)
		storage := informer.NewResourceVersionStorage()
		err = db.Seed(c.Context(), storage, of) // fails where there is no table yet
		equal = equal && err == nil && maps.Equal(want, maps.Collect(storage.All()))
	})
	return equal
}

// differences compares everything.
func (c *crashes) differences() (all []error) {
	c.read(func(db database, of place, server *informertest.Server) {
		_, different, err := compare(c.Context(), db, of, server)
		require.NoError(c, err)
		all = append(all, different...)
	})
	return all
}

// read opens the database as another process would that only reads it, and visits all resources.
func (c *crashes) read(visit func(db database, of place, server *informertest.Server)) {
	db, closed := c.reader()
	defer closed()
	for _, cluster := range c.clusters {
		for _, stock := range cluster.stock {
			visit(db, place{cluster: cluster.name, resource: stock.kind.resource}, cluster.server)
		}
	}
}

func (c *crashes) reader() (db database, closed func()) {
	if c.server != nil {
		pool, err := pgxpool.New(c.Context(), c.address)
		require.NoError(c, err)
		return &postgres{name: c.address, pool: pool}, pool.Close
	}
	name := url.URL{Scheme: "file", Opaque: url.PathEscape(c.path), RawQuery: "mode=ro&_pragma=busy_timeout(5000)"}
	pool, err := sql.Open("sqlite", name.String())
	require.NoError(c, err)
	return &sqliteFile{path: c.path, reading: pool}, func() { pool.Close() }
}
