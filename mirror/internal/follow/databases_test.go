package follow

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/mirror/internal/clusters"
	"github.com/rvinformer/informer/mirror/internal/display"
	"github.com/rvinformer/informer/mirror/internal/mirrortest"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/rvinformer/informer/sqlsink/pgtest"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The rows of a resource that a cluster has ceased to serve while no mirror followed it go away at
// the next start. Those of a resource that is only not followed stay.
func TestDropsWhatIsGoneMeanwhile(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) *sqlsink.Sink{
		"sqlite": openFile,
		"postgres": func(t *testing.T) *sqlsink.Sink {
			return mirrortest.Open(t, sqlsink.Config{Address: mirrortest.NewPostgres(t)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here := mirrortest.NewCluster(t, "here", 100, informertest.Options{})
			db := open(t)
			stored := func() []schema.GroupVersionResource {
				all, err := db.Known(t.Context(), fleet.Unit{Cluster: "here"})
				require.NoError(t, err)
				return all
			}
			s := setting{sink: db, endpoints: []clusters.Endpoint{here.Endpoint()}}
			rowsByName(t, s)
			require.Len(t, stored(), len(here.Stock))

			here.Server.RemoveResource(mirrortest.Widgets)
			s.Resources = []string{"pods"}
			r := start(t, s)
			require.Eventually(t, func() bool { return !slices.Contains(stored(), mirrortest.Widgets) }, soon, 50*time.Millisecond, r.out)
			require.NoError(t, r.stop())
			require.Empty(t, r.out.Messages())
			require.Len(t, stored(), len(here.Stock)-1)
		})
	}
}

// With PostgreSQL too, a start goes on where the last run has stopped, another server under the
// name of a cluster waits, and rows that are gone are fetched again.
func TestResumeWithPostgres(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	address := server.NewDatabase(t)
	c := mirrortest.NewCluster(t, "here", 400, informertest.Options{})
	mirroredIn(t, address, c)
	require.Len(t, c.Listed(), len(c.Stock))

	c.ChangeAll(t)
	for name, row := range mirroredIn(t, address, c) {
		require.Equal(t, display.Counts{Added: 2, Updated: 2, Deleted: 2}, row.Counts, name)
		require.True(t, row.Resumed, name)
	}
	require.Empty(t, c.Listed())

	c.Server.Compact()
	c.ChangeAll(t)
	c.Server.Compact()
	mirroredIn(t, address, c)
	require.NotEmpty(t, c.Listed())

	db, err := sqlsink.Open(t.Context(), sqlsink.Config{Address: address})
	require.NoError(t, err)
	another := beginAnew(t, db, c)
	require.NoError(t, db.Close())
	mirroredIn(t, address, another)
	require.Empty(t, another.Listed())

	server.Query(t, "test1", "DELETE FROM objects WHERE resource = 'pods'")
	mirroredIn(t, address, another)
	require.True(t, another.Listed().Has(mirrortest.Pods))
}

// A mirror goes on after its server was killed in the midst of its work, and started again. Each
// time, that is told in two lines, and nothing is missing.
func TestPostgresIsKilled(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, "full_page_writes=on")
	db := mirrortest.Open(t, sqlsink.Config{Address: server.NewDatabase(t)})
	c := mirrortest.NewCluster(t, "here", 1000, informertest.Options{})
	r := start(t, setting{sink: db, endpoints: []clusters.Endpoint{c.Endpoint()}})
	for kill := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		random := rand.New(rand.NewPCG(1, uint64(kill)))
		var changing errgroup.Group
		changing.Go(func() error {
			for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
				if err := c.ChangeAny(random, len(c.Stock)); err != nil {
					return err
				}
			}
			return nil
		})
		if kill > 0 { // the first time it is killed while the mirror starts
			r.settle(t)
		}
		server.Kill(t)
		trouble, told := "/test1?host=", 0
		if kill > 0 {
			trouble, told = ": cannot write: ", strings.Count(r.out.Messages(), ": writing again, after ")
		}
		require.Eventually(t, func() bool { return strings.Count(r.out.Messages(), trouble) > told }, soon, time.Millisecond, r.out)
		server.Restart(t)
		cancel()
		require.NoError(t, changing.Wait())
		r.settle(t)
		for _, s := range c.Stock {
			r.reaches(t, c, s.Kind.Resource)
		}
		require.Eventually(t, func() bool {
			said := r.out.Messages()
			return strings.Count(said, ": writing again, after ") == strings.Count(said, ": cannot write: ")
		}, soon, time.Millisecond, r.out)
		c.Equal(t, db)
	}
	require.NoError(t, r.stop())
	for line := range strings.Lines(r.out.Messages()) {
		require.Regexp(t, `^mirror: (database \S+: (still )?(cannot write|writing again)|here.*: .*(well again|that is over|database ))`, line)
	}
	require.Less(t, strings.Count(r.out.Messages(), "\n"), 30, "each reason is told once:\n%s", r.out)
}
