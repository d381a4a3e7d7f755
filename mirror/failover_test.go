package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/mirror/internal/clusters"
	"github.com/rvinformer/informer/mirror/internal/mirrortest"
	"github.com/rvinformer/informer/sqlsink/pgtest"
	"github.com/stretchr/testify/require"
)

// A replica that lives on when its database goes back mends what was lost: with the next write of a
// resource that has lost something, all resources of the unit.
func TestReplicaMendsWhatAFailoverLost(t *testing.T) {
	t.Parallel()
	home := informertest.NewServer(informertest.Options{Resources: []informertest.Resource{{
		GroupVersionResource: coordinationv1.SchemeGroupVersion.WithResource("leases"), Kind: "Lease", Namespaced: true,
	}}})
	t.Cleanup(home.Close)
	c := mirrortest.NewCluster(t, "here", 200, informertest.Options{})
	folder := t.TempDir()
	require.NoError(t, os.Rename(mirrortest.Kubeconfig(t, c.Endpoint()), filepath.Join(folder, "here")))
	server := pgtest.Start(t)
	address := server.NewDatabase(t)
	to := mirrortest.NewOutput()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan int, 1)
	args := []string{"--clusters", folder, "--resources=*", "--database", address, "--share=mirror/mirror", "--identity=one",
		"--share-kubeconfig", mirrortest.Kubeconfig(t, clusters.Endpoint{Name: "home", Client: home.Config()})}
	go func() { ended <- run(ctx, args, to.Screen) }()

	reader := &crashes{T: t, server: server, address: address, mirrored: []mirrortest.Cluster{c}}
	equal := func() bool { return reader.caughtUp() && len(reader.differences()) == 0 }
	change := func() {
		require.NoError(t, c.Of(t, mirrortest.Pods).Delete())
		require.NoError(t, c.Of(t, mirrortest.ConfigMaps).Update(7))
	}
	require.Eventually(t, equal, soon, 50*time.Millisecond, to)
	standby := copyTables(t, server, "test1")
	change()
	require.Eventually(t, equal, soon, 50*time.Millisecond, to)
	standby()
	require.False(t, equal())
	require.NoError(t, c.Of(t, mirrortest.Pods).Delete()) // the others are mended with it
	require.Eventually(t, equal, soon, 50*time.Millisecond, to)
	cancel()
	require.Equal(t, exitOK, <-ended, to)
}

// copyTables copies all tables of a database, and returns what makes them as they were then.
func copyTables(t *testing.T, server *pgtest.Server, name string) (goBack func()) {
	t.Helper()
	all := []string{"units", "mirror_writes", "objects", "checkpoints"} // in the order in which transactions lock them
	exec := func(format string) {
		statements := "BEGIN; LOCK TABLE " + strings.Join(all, ", ") + ";"
		for _, table := range all {
			statements += fmt.Sprintf(format, table) + ";"
		}
		server.Query(t, name, statements+"COMMIT")
	}
	exec(`CREATE TABLE standby_%[1]s AS TABLE %[1]s`)
	return func() { exec(`DELETE FROM %[1]s; INSERT INTO %[1]s SELECT * FROM standby_%[1]s`) }
}
