package main

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/mirror/internal/clusters"
	"github.com/rvinformer/informer/mirror/internal/commandline"
	"github.com/rvinformer/informer/mirror/internal/mirrortest"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
)

// Clusters come while mirror runs, and what it has of them is the same as with --context. A second
// run goes on without a list.
func TestClustersOfAFolder(t *testing.T) {
	dir := t.TempDir()
	folder, path := filepath.Join(dir, "clusters"), filepath.Join(dir, "mirror.db")
	require.NoError(t, os.Mkdir(folder, 0o700))
	east, west := mirrortest.NewCluster(t, "east", 100, informertest.Options{}), mirrortest.NewCluster(t, "west", 100, informertest.Options{})
	put := func(c mirrortest.Cluster) {
		require.NoError(t, os.Rename(mirrortest.Kubeconfig(t, c.Endpoint()), filepath.Join(folder, c.Name)))
	}
	put(east)
	runs := func(meanwhile func()) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		to := mirrortest.NewOutput()
		begun := false
		to.When(func(all string) bool {
			if !begun && mirrortest.Has(synced(east))(all) {
				begun = true
				meanwhile()
			}
			return mirrortest.Has(synced(east))(all) && mirrortest.Has(synced(west))(all)
		}, cancel)
		require.Equal(t, exitOK, run(ctx, []string{"--clusters", folder, "--resources=*", "--db", path}, to.Screen), to)
		require.Empty(t, to.Messages())
	}
	runs(func() { put(west) })
	read := func() {
		db, err := sqlsink.Open(t.Context(), sqlsink.Config{Address: commandline.SQLite + path})
		require.NoError(t, err)
		east.Equal(t, db)
		west.Equal(t, db)
		require.NoError(t, db.Close())
	}
	read()

	for _, c := range []mirrortest.Cluster{east, west} {
		require.NoError(t, c.Of(t, mirrortest.Pods).Delete())
		require.NoError(t, c.Of(t, mirrortest.ConfigMaps).Update(7))
		c.Server.ResetRequests()
	}
	caughtUp := func() bool {
		db, err := sqlsink.Open(t.Context(), sqlsink.Config{Address: commandline.SQLite + path})
		require.NoError(t, err)
		defer db.Close()
		return len(east.Differences(t, db)) == 0 && len(west.Differences(t, db)) == 0
	}
	for range 20 { // a resumed watch is synced before it has brought what happened
		runs(func() {})
		if caughtUp() {
			break
		}
	}
	read()
	require.Empty(t, east.Listed())
	require.Empty(t, west.Listed())
}

// synced is the line about a cluster that is complete.
func synced(c mirrortest.Cluster) string {
	return c.Name + ": synced in "
}

// A fleet's mirror ends in an orderly way also if a cluster cannot be reached.
func TestFleetWithoutItsCluster(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	folder := t.TempDir()
	require.NoError(t, os.Rename(mirrortest.Kubeconfig(t, clusters.Endpoint{Name: "gone", Client: mirrortest.Unreachable(t)}), filepath.Join(folder, "gone")))
	to := mirrortest.NewOutput()
	to.When(mirrortest.Has("connection refused"), cancel)
	require.Equal(t, exitOK, run(ctx, []string{"--clusters", folder, "--db", filepath.Join(t.TempDir(), "mirror.db")}, to.Screen), to)
	require.Regexp(t, `mirror: gone: .*connection refused; tried again within a minute\n`, to.Messages())
}

// With --once, the clusters of a folder are those of the files that are there. Files and clusters that
// cannot be read are named, and all others are mirrored.
func TestFolderOnce(t *testing.T) {
	t.Parallel()
	folder, path := t.TempDir(), filepath.Join(t.TempDir(), "mirror.db")
	args := []string{"--once", "--clusters", folder, "--db", path, "--resources=pods"}
	to := mirrortest.NewOutput()
	require.Equal(t, exitFailed, run(t.Context(), args, to.Screen))
	require.Contains(t, to.Messages(), "--clusters: there is no kubeconfig in "+folder)

	east := mirrortest.NewCluster(t, "east", 100, informertest.Options{})
	put := func(e clusters.Endpoint) {
		require.NoError(t, os.Rename(mirrortest.Kubeconfig(t, e), filepath.Join(folder, e.Name)))
	}
	put(east.Endpoint())
	to = mirrortest.NewOutput()
	require.Equal(t, exitOK, run(t.Context(), args, to.Screen), to)
	require.Contains(t, to.String(), "mirroring 1 cluster into")
	require.Empty(t, to.Messages())

	put(clusters.Endpoint{Name: "gone", Client: mirrortest.Unreachable(t)})
	require.NoError(t, syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600))
	require.NoError(t, east.Of(t, mirrortest.Pods).Create())
	to = mirrortest.NewOutput()
	require.Equal(t, exitFailed, run(t.Context(), args, to.Screen), to)
	require.Contains(t, to.Messages(), "mirror: pipe: it is skipped, because it is no regular file\n")
	require.Contains(t, to.Messages(), "mirror: not reached: gone, pipe\n")
	require.Contains(t, to.String(), "1 synced, 1 failed")
	east.Equal(t, mirrortest.Open(t, sqlsink.Config{Address: commandline.SQLite + path}), mirrortest.Pods)
}

func TestMisuseOfFleets(t *testing.T) {
	database := "--database=postgres://nobody@localhost:1/none"
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--share=mirror/mirror", database, "--once"}, "--once does not go with --share"},
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
		to := mirrortest.NewOutput()
		require.Equal(t, exitMisused, run(t.Context(), tt.args, to.Screen), tt.args)
		require.Contains(t, to.Messages(), tt.want)
	}
}

func TestFolderThatIsNotThere(t *testing.T) {
	to := mirrortest.NewOutput()
	args := []string{"--clusters", filepath.Join(t.TempDir(), "none"), "--db", filepath.Join(t.TempDir(), "mirror.db")}
	require.Equal(t, exitFailed, run(t.Context(), args, to.Screen))
	require.Contains(t, to.Messages(), "--clusters: open ")
}
