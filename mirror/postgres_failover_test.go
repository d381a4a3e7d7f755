package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/rvinformer/informer/informertest"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
)

// Transactions that were acknowledged are not there any more: the unit begins again from what is
// there. A mirror that is alone ends.
func TestFailoverToStandbyThatLacksCommits(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{false, true} {
		t.Run(fmt.Sprint("alone=", alone), func(t *testing.T) {
			t.Parallel()
			db := openTestPostgres(t, newPostgresAddress(t), alone)
			here, quiet := place{cluster: "here", resource: pods}, place{cluster: "here", resource: configmaps}
			ctx := t.Context()
			if !alone {
				ctx = at(t, 1)
				claim(t, db, here, 1)
				claim(t, db, quiet, 1)
			}
			apply := func(of place, name, version string) error {
				return db.Apply(ctx, []change{put(of, "ns", name, name, version)})
			}
			require.NoError(t, apply(here, "a", "10"))
			require.NoError(t, db.SaveCheckpoint(ctx, here, "server", write("ten")))
			standby := copyTables(t, db)
			require.NoError(t, apply(here, "a", "11"))
			require.NoError(t, apply(here, "b", "12"))
			require.NoError(t, db.SaveCheckpoint(ctx, here, "server", write("twelve")))

			standby()
			err := apply(here, "c", "13")
			if alone {
				require.ErrorContains(t, err, "it has lost what it had acknowledged")
				<-db.Sound().Done()
				return
			}
			requireStale(t, err, here.unit(), 1, 1)
			require.ErrorContains(t, err, "the database has lost what it had acknowledged")
			requireStale(t, db.SaveCheckpoint(ctx, here, "server", write("thirteen")), here.unit(), 1, 1)
			require.NoError(t, apply(quiet, "a", "10"), "nothing of it is missing")

			claim(t, db, here, 2)
			require.Equal(t, map[string]string{"ns/a": "10"}, seeded(t, db, here))
			ctx = at(t, 2)
			loaded, err := db.LoadCheckpoint(ctx, here)
			require.NoError(t, err)
			text, err := io.ReadAll(loaded)
			require.NoError(t, err)
			require.NoError(t, loaded.Close())
			require.Equal(t, "ten", string(text))
			require.NoError(t, apply(here, "c", "13"))

			// The claim is lost too.
			standby()
			requireStale(t, apply(here, "d", "14"), here.unit(), 2, 1)
		})
	}
}

// A replica that lives on when its database goes back mends what was lost: with the next write of a
// resource that has lost something, all resources of the unit.
func TestReplicaMendsWhatAFailoverLost(t *testing.T) {
	t.Parallel()
	home := informertest.NewServer(informertest.Options{Resources: []informertest.Resource{{
		GroupVersionResource: coordinationv1.SchemeGroupVersion.WithResource("leases"), Kind: "Lease", Namespaced: true,
	}}})
	t.Cleanup(home.Close)
	c := newTestCluster(t, "here", 200, informertest.Options{})
	db := openTestPostgres(t, newPostgresAddress(t), false)
	to := newOutput()
	m, err := newFleetMirror(options{
		share: "mirror/mirror", shareKubeconfig: writeKubeconfig(t, endpoint{"home", home.Config()}), identity: "one",
		leaseDuration: 15 * time.Second, shards: 1,
	}, []endpoint{c.endpoint()}, db, newBoard(), to.screen)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()

	equal := func() bool {
		for _, s := range c.stock {
			_, differences, err := compare(t.Context(), db, placeOf(c, s), c.server)
			require.NoError(t, err)
			if len(differences) > 0 {
				return false
			}
		}
		return true
	}
	change := func() {
		require.NoError(t, c.of(t, pods).Delete())
		_, err := c.of(t, configmaps).Update(7)
		require.NoError(t, err)
	}
	require.Eventually(t, equal, soon, 50*time.Millisecond, to)
	standby := copyTables(t, db)
	change()
	require.Eventually(t, equal, soon, 50*time.Millisecond, to)
	standby()
	require.False(t, equal())
	require.NoError(t, c.of(t, pods).Delete()) // the others are mended with it
	require.Eventually(t, equal, soon, 50*time.Millisecond, to)
	cancel()
	require.NoError(t, <-ended)
}

// copyTables copies all tables of a database, and returns what makes them as they were then.
func copyTables(t *testing.T, db *postgres) (goBack func()) {
	t.Helper()
	all := []string{"units", "mirror_writes", "objects", "checkpoints"} // in the order in which transactions lock them
	exec := func(format string) {
		tx, err := db.pool.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), "LOCK TABLE "+strings.Join(all, ", "))
		require.NoError(t, err)
		for _, table := range all {
			_, err := tx.Exec(t.Context(), fmt.Sprintf(format, table))
			require.NoError(t, err)
		}
		require.NoError(t, tx.Commit(t.Context()))
	}
	exec(`CREATE TABLE standby_%[1]s AS TABLE %[1]s`)
	return func() { exec(`DELETE FROM %[1]s; INSERT INTO %[1]s SELECT * FROM standby_%[1]s`) }
}
