package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rvinformer/informer/informertest"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Clusters come while mirror runs, and what it has of them is the same as with --context. A second
// run goes on without a list.
func TestClustersOfAFolder(t *testing.T) {
	dir := t.TempDir()
	folder, path := filepath.Join(dir, "clusters"), filepath.Join(dir, "mirror.db")
	require.NoError(t, os.Mkdir(folder, 0o700))
	east, west := newTestCluster(t, "east", 100, informertest.Options{}), newTestCluster(t, "west", 100, informertest.Options{})
	place := func(c *demoCluster) {
		require.NoError(t, os.Rename(writeKubeconfig(t, c.endpoint()), filepath.Join(folder, c.name)))
	}
	place(east)
	runs := func(meanwhile func()) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		to := newOutput()
		begun := false
		to.when(func(all string) bool {
			if !begun && has(synced(east))(all) {
				begun = true
				meanwhile()
			}
			return has(synced(east))(all) && has(synced(west))(all)
		}, cancel)
		require.Equal(t, exitOK, run(ctx, []string{"--clusters", folder, "--db", path}, to.screen), to)
		require.Empty(t, to.messages())
	}
	runs(func() { place(west) })
	read := func() {
		db, err := openSQLite(t.Context(), path)
		require.NoError(t, err)
		requireEqual(t, db, east)
		requireEqual(t, db, west)
		require.NoError(t, db.Close())
	}
	read()

	for _, c := range []*demoCluster{east, west} {
		require.NoError(t, c.of(t, pods).Delete())
		_, err := c.of(t, configmaps).Update(7)
		require.NoError(t, err)
		c.server.ResetRequests()
	}
	caughtUp := func() bool {
		db, err := openSQLite(t.Context(), path)
		require.NoError(t, err)
		defer db.Close()
		for _, c := range []*demoCluster{east, west} {
			for _, s := range c.stock {
				_, differences, err := compare(t.Context(), db, placeOf(c, s), c.server)
				require.NoError(t, err)
				if len(differences) > 0 {
					return false
				}
			}
		}
		return true
	}
	for range 20 { // a resumed watch is synced before it has brought what happened
		runs(func() {})
		if caughtUp() {
			break
		}
	}
	read()
	require.Empty(t, listed(east.server))
	require.Empty(t, listed(west.server))
}

// The rows of a resource that a cluster has ceased to serve while no mirror followed it go away at
// the next start. Those of a resource that is only not followed stay.
func TestFleetDropsWhatIsGoneMeanwhile(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) database{
		"sqlite":   func(t *testing.T) database { return openTestDatabase(t) },
		"postgres": func(t *testing.T) database { return openTestPostgres(t, newPostgresAddress(t), true) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here := newTestCluster(t, "here", 100, informertest.Options{})
			db := open(t)
			runs := func(resources []string, until func(m *fleetMirror) bool) {
				to := newOutput()
				m, err := newFleetMirror(options{shards: 1, resources: resources}, []endpoint{here.endpoint()}, db, newBoard(), to.screen)
				require.NoError(t, err)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- m.Run(ctx) }()
				require.Eventually(t, func() bool { return until(m) }, soon, 50*time.Millisecond, to)
				cancel()
				require.NoError(t, <-ended)
				require.Empty(t, to.messages())
			}
			stored := func() []schema.GroupVersionResource {
				all, err := db.Resources(t.Context(), "here")
				require.NoError(t, err)
				return all
			}
			isSynced := func(m *fleetMirror) bool { c, _ := m.fleet.Cluster("here"); return c.Synced }
			runs(nil, isSynced)
			require.ElementsMatch(t, slices.Collect(maps.Keys(byResource(here))), stored())

			here.server.RemoveResource(widgets)
			runs([]string{"pods"}, func(*fleetMirror) bool { return !slices.Contains(stored(), widgets) })
			require.Len(t, stored(), len(here.stock)-1)
		})
	}
}

func byResource(c *demoCluster) map[schema.GroupVersionResource]*stock {
	all := map[schema.GroupVersionResource]*stock{}
	for _, s := range c.stock {
		all[s.kind.resource] = s
	}
	return all
}

func placeOf(c *demoCluster, s *stock) place {
	return place{cluster: c.name, resource: s.kind.resource}
}

// synced is the line about a cluster that is complete.
func synced(c *demoCluster) string {
	return fmt.Sprintf("%s: %d resources synced\n", c.name, len(c.stock))
}

// A fleet's mirror ends in an orderly way also if a cluster cannot be reached.
func TestFleetWithoutItsCluster(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	folder := t.TempDir()
	require.NoError(t, os.Rename(writeKubeconfig(t, endpoint{"gone", unreachable(t)}), filepath.Join(folder, "gone")))
	to := newOutput()
	to.when(has("connection refused"), cancel)
	require.Equal(t, exitOK, run(ctx, []string{"--clusters", folder, "--db", filepath.Join(t.TempDir(), "mirror.db")}, to.screen), to)
	require.Regexp(t, `gone: unknown; .*connection refused\n`, to.String())
}

func TestMisuseOfFleets(t *testing.T) {
	database := "--database=postgres://nobody@localhost:1/none"
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--clusters=here", "--once"}, "--once does not go with"},
		{[]string{"--clusters=here", "--demo"}, "--demo brings its own clusters"},
		{[]string{"--share=mirror", database}, "--share mirror: it must be NAMESPACE/NAME"},
		{[]string{"--share=mirror/", database}, "--share mirror/: it must be NAMESPACE/NAME"},
		{[]string{"--share=mirror/mirror"}, "--share needs --database with a PostgreSQL"},
		{[]string{"--share=mirror/mirror", "--database=sqlite:mirror.db"}, "--share needs --database with a PostgreSQL"},
		{[]string{"--share=mirror/mirror", database, "--shards=0"}, "--shards 0: it must be positive"},
		{[]string{"--shards=2"}, "--shards goes with --share"},
		{[]string{"--identity=me"}, "--identity goes with --share"},
		{[]string{"--lease-duration=5s"}, "--lease-duration goes with --share"},
	} {
		to := newOutput()
		require.Equal(t, exitMisused, run(t.Context(), tt.args, to.screen), tt.args)
		require.Contains(t, to.messages(), tt.want)
	}
}

func TestFolderThatIsNotThere(t *testing.T) {
	to := newOutput()
	args := []string{"--clusters", filepath.Join(t.TempDir(), "none"), "--db", filepath.Join(t.TempDir(), "mirror.db")}
	require.Equal(t, exitFailed, run(t.Context(), args, to.screen))
	require.Contains(t, to.messages(), "--clusters: open ")
}
