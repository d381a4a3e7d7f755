package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/mirror/internal/clusters"
	"github.com/rvinformer/informer/mirror/internal/demo"
	"github.com/rvinformer/informer/mirror/internal/mirrortest"
	"github.com/rvinformer/informer/sqlsink/pgtest"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/cache"
)

// process is the mirror as a program of its own, which can be killed.
type process struct {
	command *exec.Cmd
	out     *mirrortest.Output
}

// crashes is a test that kills the mirror: a database, and the clusters that it mirrors.
type crashes struct {
	*testing.T
	*rand.Rand
	path       string // of the SQLite file; empty with PostgreSQL
	address    string // of the PostgreSQL database
	server     *pgtest.Server
	kubeconfig string
	mirrored   []mirrortest.Cluster
	running    *process
	churn      *errgroup.Group // nil while nothing changes
	quiet      func()          // ends the changes
	deletes    int             // the first so many kinds of objects are deleted too, by now

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
		c.deletes = c.IntN(3) * len(demo.Kinds()) / 2
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
	feeds := len(c.mirrored) * len(demo.Kinds())
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
	var endpoints []clusters.Endpoint
	for _, name := range []string{"east", "west"} {
		cluster := mirrortest.NewCluster(t, name, 150, informertest.Options{})
		c.mirrored, endpoints = append(c.mirrored, cluster), append(endpoints, cluster.Endpoint())
	}
	c.kubeconfig = mirrortest.Kubeconfig(t, endpoints...)
	t.Cleanup(func() {
		c.change(false)
		if c.running != nil {
			c.kill()
		}
	})
	return c
}

func (c *crashes) start() {
	for _, cluster := range c.mirrored {
		cluster.Server.ResetRequests()
	}
	p := &process{out: mirrortest.NewOutput()}
	p.command = mirrorCommand("--kubeconfig", c.kubeconfig, "--context=east", "--context=west", "--resources=*")
	if c.server != nil {
		p.command.Args = append(p.command.Args, "--database", c.address)
	} else {
		p.command.Args = append(p.command.Args, "--db", c.path)
	}
	p.command.Stdout, p.command.Stderr = p.out.Streams()
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
		c.quiet()
		require.NoError(c, c.churn.Wait())
		c.churn = nil
	}
	if !going {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.churn, c.quiet = &errgroup.Group{}, cancel
	for _, cluster := range c.mirrored {
		random := rand.New(rand.NewPCG(c.Uint64(), 0))
		c.churn.Go(func() error {
			for ; ctx.Err() == nil; time.Sleep(2 * time.Millisecond) {
				if err := cluster.ChangeAny(random, c.deletes); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// whileDown changes this and that while no mirror runs, and may have the servers forget it.
func (c *crashes) whileDown() {
	for _, cluster := range c.mirrored {
		for range c.IntN(40) {
			require.NoError(c, cluster.ChangeAny(c.Rand, c.deletes))
		}
		if c.IntN(4) == 0 {
			cluster.Server.Compact()
		}
	}
}

// settle waits until the database equals the servers, on which nothing changes any more, and sees
// that it stays so.
func (c *crashes) settle(after string) {
	c.Helper()
	for _, cluster := range c.mirrored {
		for _, stock := range cluster.Stock { // so that each feed has something to tell
			require.NoError(c, stock.Update(0))
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
	for _, cluster := range c.mirrored {
		feeds, lists = feeds+len(cluster.Stock), lists+len(cluster.Listed())
	}
	c.starts, c.feeds, c.resumed = c.starts+1, c.feeds+feeds, c.resumed+feeds-lists
	if lists == 0 {
		c.silent++
	}
}

// caughtUp compares the resource versions.
func (c *crashes) caughtUp() (equal bool) {
	equal = true
	c.read(func(s *demo.Stock, server *informertest.Server, rows map[string]storedRow) {
		want, err := server.ResourceVersions(s.Kind.Resource, "")
		require.NoError(c, err)
		equal = equal && len(rows) == len(want)
		for key, row := range rows {
			equal = equal && row.resourceVersion == want[key]
		}
	})
	return equal
}

// differences compares everything.
func (c *crashes) differences() (all []string) {
	c.read(func(s *demo.Stock, server *informertest.Server, rows map[string]storedRow) {
		objects, err := server.List(s.Kind.Resource, "")
		require.NoError(c, err)
		for _, want := range objects {
			key := cache.MetaObjectToName(want).String()
			row, is := rows[key]
			delete(rows, key)
			unstructured.RemoveNestedField(want.Object, "metadata", "managedFields")
			if !is || row.uid != string(want.GetUID()) || row.resourceVersion != want.GetResourceVersion() || !reflect.DeepEqual(row.object, want.Object) {
				all = append(all, fmt.Sprintf("%s %s: the row is %v, the object %v", s.Kind.Resource.Resource, key, row, want.Object))
			}
		}
		for key := range rows {
			all = append(all, fmt.Sprintf("%s %s is in the database only", s.Kind.Resource.Resource, key))
		}
	})
	return all
}

// storedRow is what a row has of an object.
type storedRow struct {
	uid, resourceVersion string
	object               map[string]any
}

// read reads the database as any program does that is not mirror, and visits all resources. Where
// there are no tables yet, there are no rows.
func (c *crashes) read(visit func(s *demo.Stock, server *informertest.Server, rows map[string]storedRow)) {
	driver, address := "pgx", c.address
	if c.server == nil {
		name := url.URL{Scheme: "file", Opaque: url.PathEscape(c.path), RawQuery: "mode=ro&_pragma=busy_timeout(5000)"}
		driver, address = "sqlite", name.String()
	}
	db, err := sql.Open(driver, address)
	require.NoError(c, err)
	defer func() { require.NoError(c, db.Close()) }()
	for _, cluster := range c.mirrored {
		for _, s := range cluster.Stock {
			visit(s, cluster.Server, c.rows(db, cluster.Name, s))
		}
	}
}

func (c *crashes) rows(db *sql.DB, cluster string, s *demo.Stock) map[string]storedRow {
	all := map[string]storedRow{}
	found, err := db.QueryContext(c.Context(), fmt.Sprintf(`SELECT namespace, name, uid, resource_version, CAST(object AS text) FROM objects
		WHERE cluster = '%s' AND "group" = '%s' AND version = '%s' AND resource = '%s'`, cluster, s.Kind.Resource.Group, s.Kind.Resource.Version, s.Kind.Resource.Resource))
	if err != nil {
		return nil
	}
	defer found.Close()
	for found.Next() {
		var name cache.ObjectName
		var row storedRow
		var text []byte
		require.NoError(c, found.Scan(&name.Namespace, &name.Name, &row.uid, &row.resourceVersion, &text))
		require.NoError(c, utiljson.Unmarshal(text, &row.object))
		all[name.String()] = row
	}
	require.NoError(c, found.Err())
	return all
}
