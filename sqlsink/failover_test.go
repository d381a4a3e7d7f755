package sqlsink_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
)

// Transactions that were acknowledged are not there any more: the unit begins again from what is
// there. A writer that is alone ends.
func TestFailoverToStandbyThatLacksCommits(t *testing.T) {
	t.Parallel()
	for _, sharded := range []int{0, 1} {
		t.Run(fmt.Sprint("shards=", sharded), func(t *testing.T) {
			t.Parallel()
			address := postgresAddress(t)
			sink := opened(t, sqlsink.Config{Address: address, Shards: sharded})
			here := unitOf(sink, "here", informer.Shard{})
			quiet := sink.Target(fleet.Target{Unit: fleet.Unit{Cluster: "here", Group: "all"}, Resource: configmaps})
			ctx := t.Context()
			if sharded > 0 {
				ctx = at(t, 1)
			}
			require.NoError(t, write(ctx, quiet, put("a", "10")))
			require.NoError(t, write(ctx, here, put("a", "10")))
			require.NoError(t, here.Checkpoint().Save(ctx, text("ten")))
			standby := copyTables(t, address)
			require.NoError(t, write(ctx, here, put("a", "11")))
			require.NoError(t, write(ctx, here, put("b", "12")))
			require.NoError(t, here.Checkpoint().Save(ctx, text("twelve")))

			standby()
			err := write(ctx, here, put("c", "13"))
			if sharded == 0 {
				require.ErrorContains(t, err, "it has lost what it had acknowledged")
				<-sink.Context(t.Context()).Done()
				require.ErrorContains(t, sink.Err(), "it has lost what it had acknowledged")
				return
			}
			requireStale(t, err, "here/all", 1, 1)
			requireStale(t, here.Checkpoint().Save(ctx, text("thirteen")), "here/all", 1, 1)
			require.NoError(t, write(ctx, quiet, put("a", "11")), "nothing of it is missing")

			claim(t, here, 2)
			require.Equal(t, map[string]string{"ns/a": "10"}, stored(t, here))
			require.Equal(t, "ten", saved(t, here))
			require.NoError(t, write(at(t, 2), here, put("c", "13")))

			// The claim is lost too.
			standby()
			requireStale(t, write(at(t, 2), here, put("d", "14")), "here/all", 2, 1)
		})
	}
}

// Transactions that were acknowledged to the owner before are lost after an informer has read its
// Storage, which has them, and before it loads its checkpoint.
func TestFailoverBetweenStorageAndCheckpoint(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	one, two := pair(t, address)
	before, here := unitOf(one, "here", informer.Shard{}), unitOf(two, "here", informer.Shard{})
	require.NoError(t, write(at(t, 1), before, put("a", "10")))
	require.NoError(t, before.Checkpoint().Save(at(t, 1), text("ten")))
	standby := copyTables(t, address)
	require.NoError(t, write(at(t, 1), before, put("b", "11")))

	claim(t, here, 2)
	load, err := here.Checkpoint().Load(at(t, 2))
	require.NoError(t, err)
	require.NoError(t, load.Close())
	standby()
	for range 2 { // it is tried again
		_, err = here.Checkpoint().Load(at(t, 2))
		requireStale(t, err, "here/all", 2, 2)
	}
	requireStale(t, write(at(t, 2), here, put("c", "12")), "here/all", 2, 2)

	claim(t, here, 3)
	require.Equal(t, map[string]string{"ns/a": "10"}, stored(t, here))
	require.Equal(t, "ten", saved(t, here))
	require.NoError(t, write(at(t, 3), here, put("b", "11")))
}

// A write without an epoch between those of an epoch hides no loss from them.
func TestFailoverBehindWriteWithoutEpoch(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	here := unitOf(opened(t, sqlsink.Config{Address: address}), "here", informer.Shard{})
	require.NoError(t, write(at(t, 1), here, put("a", "10")))
	standby := copyTables(t, address)
	require.NoError(t, write(t.Context(), here, put("b", "11")))
	standby()
	requireStale(t, write(at(t, 1), here, put("c", "12")), "here/all", 1, 1)
}

// copyTables copies all tables of a database, and returns what makes them as they were then.
func copyTables(t *testing.T, address string) (goBack func()) {
	t.Helper()
	all := []string{"units", "mirror_writes", "objects", "checkpoints"} // in the order in which transactions lock them
	run := func(format string) {
		statements := "BEGIN; LOCK TABLE " + strings.Join(all, ", ") + ";"
		for _, table := range all {
			statements += fmt.Sprintf(format, table)
		}
		psql(t, address, statements+"COMMIT;")
	}
	run(`CREATE TABLE standby_%[1]s AS TABLE %[1]s;`)
	return func() { run(`DELETE FROM %[1]s; INSERT INTO %[1]s SELECT * FROM standby_%[1]s;`) }
}
