package sqlsink_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/fleet/shards"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
)

// at returns a context with an epoch.
func at(t *testing.T, epoch int64) context.Context { return informer.WithEpoch(t.Context(), epoch) }

// unitOf is the place of the pods of a unit: of a cluster, or a part of it.
func unitOf(sink *sqlsink.Sink, cluster string, shard informer.Shard) sqlsink.Place {
	return sink.Target(fleet.Target{Unit: fleet.Unit{Cluster: cluster, Group: "all", Shard: shard}, Resource: pods})
}

// claim makes a sink the owner of a place under an epoch.
func claim(t *testing.T, at sqlsink.Place, epoch int64) {
	t.Helper()
	_, err := at.Storage(informer.WithEpoch(t.Context(), epoch))
	require.NoError(t, err)
}

// requireStale demands the error of an epoch that is not the stored one.
func requireStale(t *testing.T, err error, unit string, epoch, stored int64) {
	t.Helper()
	require.ErrorIs(t, err, shards.ErrStaleEpoch)
	want := fmt.Sprintf("%s has another owner: the database has its epoch %d, this one is %d", unit, stored, epoch)
	if stored <= epoch {
		want = unit + " begins again: the database has lost what it had acknowledged"
	}
	require.ErrorContains(t, err, want)
}

// pair opens a database twice, as two processes do. A SQLite file is opened once.
func pair(t *testing.T, address string) (one, two *sqlsink.Sink) {
	if address[:7] == "sqlite:" {
		one = opened(t, sqlsink.Config{Address: address})
		return one, one
	}
	return opened(t, sqlsink.Config{Address: address, Shards: 1}), opened(t, sqlsink.Config{Address: address, Shards: 1})
}

// What comes with an older epoch than the stored one is refused, whatever it is, and in the
// transaction of the rows or the checkpoint.
func TestStaleEpochsAreRefused(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		one, two := pair(t, address)
		here, there, now := unitOf(one, "here", informer.Shard{}), unitOf(one, "there", informer.Shard{}), unitOf(two, "here", informer.Shard{})
		claim(t, here, 1)
		require.NoError(t, write(at(t, 1), here, put("a", "10")))
		require.NoError(t, here.Checkpoint().Save(at(t, 1), text("one")))
		require.NoError(t, write(at(t, 7), there, put("a", "10")), "a first write claims too")

		// The new owner claims the unit before it has anything to write.
		seen, err := now.Storage(at(t, 2))
		require.NoError(t, err)
		require.Equal(t, 1, seen.Len())
		requireStale(t, write(at(t, 1), here, put("b", "11")), "here/all", 1, 2)
		requireStale(t, here.Checkpoint().Save(at(t, 1), text("late")), "here/all", 1, 2)
		_, err = here.Storage(at(t, 1))
		requireStale(t, err, "here/all", 1, 2)
		_, err = here.Checkpoint().Load(at(t, 1))
		requireStale(t, err, "here/all", 1, 2)
		require.Equal(t, map[string]string{"ns/a": "10"}, stored(t, now))
		require.Equal(t, "one", saved(t, now))

		// Nobody else is affected, and whoever has the newest epoch goes on.
		require.NoError(t, write(at(t, 7), there, put("b", "11")))
		require.NoError(t, write(at(t, 2), now, put("b", "11")))
		require.NoError(t, write(at(t, 3), here, put("c", "12")))
		requireStale(t, write(at(t, 2), now, put("d", "13")), "here/all", 2, 3)
		require.Equal(t, map[string]string{"ns/a": "10", "ns/b": "11", "ns/c": "12"}, stored(t, now))
	})
}

// A writer that stalls in the middle of its transaction does not keep the next owner waiting, and
// writes nothing when it goes on.
func TestStalledWriterIsPassedBy(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	one, two := pair(t, address)
	here, now := unitOf(one, "here", informer.Shard{}), unitOf(two, "here", informer.Shard{})
	claim(t, here, 1)
	require.NoError(t, write(at(t, 1), here, put("a", "10")))
	takeOver := func(epoch int64) {
		t.Helper()
		began := time.Now()
		claim(t, now, epoch)
		require.NoError(t, write(at(t, epoch), now, put("a", fmt.Sprint(10+epoch))))
		require.Less(t, time.Since(began), soon) // and not an error of lock_timeout
	}

	// While it brings its data.
	requireStale(t, here.Checkpoint().Save(at(t, 1), func(io.Writer) error {
		takeOver(2)
		return nil
	}), "here/all", 1, 2)

	// While it has locks: the session is left alone with them. The server does not end it, as one
	// whose last message has come in part.
	conn, err := pgx.Connect(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	_, err = conn.Exec(t.Context(), `BEGIN; SELECT * FROM units FOR SHARE`)
	require.NoError(t, err)
	began := time.Now()
	takeOver(3)
	require.Less(t, time.Since(began), 15*time.Second, "the duration of a Lease")
	_, err = conn.Exec(t.Context(), "COMMIT")
	require.Error(t, err)
	require.Equal(t, map[string]string{"ns/a": "13"}, stored(t, now))
}

// Of two transactions of a place that a stalled writer has under way, one waits for the other, and
// the next owner for the one that waits.
func TestStalledWriterWithTwoTransactionsIsPassedBy(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	one, two := pair(t, address)
	here, now := unitOf(one, "here", informer.Shard{}), unitOf(two, "here", informer.Shard{})
	require.NoError(t, write(at(t, 1), here, put("a", "10")))
	var stalled [2]*pgx.Conn
	for i := range stalled { // the one that begins first is the one that waits
		conn, err := pgx.Connect(t.Context(), address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
		_, err = conn.Exec(t.Context(), `BEGIN; SELECT txid_current()`)
		require.NoError(t, err)
		stalled[i] = conn
	}
	const fence = `SELECT FROM units FOR SHARE; UPDATE mirror_writes SET written = written + 1`
	_, err := stalled[1].Exec(t.Context(), fence)
	require.NoError(t, err)
	waited := make(chan error)
	go func() {
		_, err := stalled[0].Exec(context.WithoutCancel(t.Context()), fence)
		waited <- err
		close(waited)
	}()
	defer func() {
		_ = stalled[1].Close(context.WithoutCancel(t.Context()))
		for range waited { // the test has failed
		}
	}()
	require.Eventually(t, func() bool {
		return query(t, address, `SELECT cardinality(pg_blocking_pids($1))`, int32(stalled[0].PgConn().PID()))[0] == "1"
	}, soon, 10*time.Millisecond)

	claim(t, now, 2)
	require.NoError(t, <-waited)
	for _, conn := range stalled {
		_, err := conn.Exec(t.Context(), "COMMIT")
		require.Error(t, err, "its session was ended")
	}
}

// A claim sees what it has waited for, whatever isolation the database or the account has by itself.
func TestClaimWaitsInEveryIsolation(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	here := unitOf(opened(t, sqlsink.Config{Address: address + "&default_transaction_isolation=serializable", Shards: 1}), "here", informer.Shard{})
	require.NoError(t, write(at(t, 1), here, put("a", "10")))
	for epoch := int64(1); epoch < 3; epoch++ {
		conn, err := pgx.Connect(t.Context(), address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
		_, err = conn.Exec(t.Context(), `BEGIN; SELECT FROM units FOR SHARE; UPDATE mirror_writes SET written = written + 1`)
		require.NoError(t, err)
		claimed := make(chan error, 1)
		ctx := at(t, epoch)
		go func() {
			_, err := here.Storage(ctx)
			claimed <- err
		}()
		require.Eventually(t, func() bool {
			return query(t, address, `SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))`, int32(conn.PgConn().PID()))[0] == "1"
		}, soon, 10*time.Millisecond)
		_, _ = conn.Exec(t.Context(), `COMMIT`) // on a busy machine the claim may have ended it
		require.NoError(t, <-claimed)
	}
}

// Two writers have a part of the UIDs, or of the namespaces, each. They touch their own rows only,
// whatever the order in which they write.
func TestWritersOfTwoShards(t *testing.T) {
	t.Parallel()
	for _, key := range []informer.ShardKey{informer.ShardByUID, informer.ShardByNamespace} {
		t.Run(string(key), func(t *testing.T) {
			t.Parallel()
			sink := opened(t, sqlsink.Config{Address: postgresAddress(t), Shards: 2})
			parts := informer.Shard{Key: key}.Split(2)
			both := []sqlsink.Place{unitOf(sink, "here", parts[0]), unitOf(sink, "here", parts[1])}
			for i := range 40 {
				namespace, uid := fmt.Sprint(i, "-namespace"), fmt.Sprint(i, "-uid")
				w := 0
				if parts[1].Includes(namespace, uid) {
					w = 1
				}
				require.NoError(t, write(at(t, 1), both[w], placed(namespace, "a", uid, fmt.Sprint(i))))
				require.NoError(t, write(at(t, 1), both[1-w], removed(namespace, "a")), "it is not in this shard")
			}
			first, second := stored(t, both[0]), stored(t, both[1])
			require.Len(t, first, 40-len(second))
			require.NotEmpty(t, first)
			require.NotEmpty(t, second)
			require.NoError(t, both[1].Checkpoint().Save(at(t, 1), text("kept")))
			require.Equal(t, "none", saved(t, both[0]))
			for key := range first {
				namespace, name, _ := strings.Cut(key, "/")
				require.NoError(t, write(at(t, 1), both[0], removed(namespace, name)))
			}
			require.Empty(t, stored(t, both[0]))
			require.Equal(t, second, stored(t, both[1]))
			require.Equal(t, "kept", saved(t, both[1]))
		})
	}
}

// An object that was deleted and created again may have a row in each of two shards. When these
// become one, so do the rows, whichever is read first.
func TestRowsOfANameInTwoShardsBecomeOne(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	cluster := newCluster(t, 5)
	sink := open(t, sqlsink.Config{Address: address, Shards: 2})
	parts := informer.Shard{Key: informer.ShardByUID}.Split(2)
	both := []sqlsink.Place{unitOf(sink, "here", parts[0]), unitOf(sink, "here", parts[1])}
	for name, letter := range map[string]string{"pod-0": "!", "pod-1": "~"} { // before and behind all UIDs
		pod, err := cluster.Get(pods, "ns", name)
		require.NoError(t, err)
		w, before := 0, letter
		if parts[1].Includes("ns", string(pod.GetUID())) {
			w = 1
		}
		for parts[w].Includes("ns", before) {
			before += letter
		}
		require.NoError(t, write(at(t, 1), both[1-w], placed("ns", name, before, "1")))
		require.NoError(t, write(at(t, 1), both[w], informer.Event{Type: informer.Added, Key: "ns/" + name, Object: pod, ResourceVersion: pod.GetResourceVersion()}))
	}
	require.NoError(t, sink.Close())
	require.Equal(t, []string{"4"}, query(t, address, `SELECT count(*) FROM objects`))

	r := start(t, cluster, address)
	requireVerified(t, r.sink, cluster)
	require.NoError(t, r.stop())
	require.Equal(t, []string{"5"}, query(t, address, `SELECT count(*) FROM objects`))
}

// A fleet that divides its clusters into another number of shards reads and writes nothing.
func TestShardsOfTheFleetAreThoseOfTheSink(t *testing.T) {
	t.Parallel()
	sink := opened(t, sqlsink.Config{Address: postgresAddress(t), Shards: 2})
	for _, shard := range append(informer.Shard{Key: informer.ShardByUID}.Split(2), informer.Shard{}) {
		require.NoError(t, write(at(t, 1), unitOf(sink, "here", shard), put("a", "10")))
	}
	other := informer.Shard{Key: informer.ShardByUID}.Split(3)[1]
	here := unitOf(sink, "here", other)
	_, storage := here.Storage(at(t, 1))
	_, load := here.Checkpoint().Load(at(t, 1))
	for _, err := range []error{storage, load, write(at(t, 1), here, put("a", "10")), here.Checkpoint().Save(at(t, 1), text("odd"))} {
		require.ErrorContains(t, err, "the shard "+other.String()+" is none of 2, which is Config.Shards")
	}
}

// Where there are other writers, a write without an epoch is refused.
func TestSharedWritesNeedAnEpoch(t *testing.T) {
	t.Parallel()
	here := unitOf(opened(t, sqlsink.Config{Address: postgresAddress(t), Shards: 1}), "here", informer.Shard{})
	require.ErrorContains(t, write(t.Context(), here, put("a", "10")), "with Shards, a write needs a context with an epoch")
	require.ErrorContains(t, here.Checkpoint().Save(t.Context(), text("one")), "with Shards, a write needs a context with an epoch")
	require.NoError(t, write(at(t, 1), here, put("a", "10")))
}

// A SQLite file has no shards.
func TestFileHasNoShards(t *testing.T) {
	t.Parallel()
	address := "sqlite:" + t.TempDir() + "/test.db"
	_, err := sqlsink.Open(t.Context(), sqlsink.Config{Address: address, Shards: 1})
	require.EqualError(t, err, "sqlsink: Shards is 1: a file has one writer")
	part := unitOf(opened(t, sqlsink.Config{Address: address}), "here", informer.Shard{}.Split(2)[0])
	require.ErrorContains(t, write(t.Context(), part, put("a", "10")), "a SQLite file has no shards of a resource")
	_, err = part.Storage(t.Context())
	require.ErrorContains(t, err, "a SQLite file has no shards of a resource")
}
