package sqlsink_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/rvinformer/informer/sqlsink/pgtest"
	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"
)

// What is wrong with the server is blamed on no row. If the server writes others meanwhile, the row
// comes later. Otherwise nothing is written, and the error has the server's own. Conflicts are tried
// again at once.
func TestTroublesOfTheServerAreNoRefusals(t *testing.T) {
	t.Parallel()
	for code, tt := range map[string]struct{ later bool }{
		"40001": {true},  // serialization_failure
		"40P01": {true},  // deadlock_detected
		"53100": {true},  // disk_full
		"53200": {true},  // out_of_memory
		"53300": {true},  // too_many_connections
		"55P03": {true},  // lock_not_available
		"57014": {true},  // query_canceled
		"58030": {true},  // io_error
		"XX000": {true},  // internal_error
		"08006": {false}, // connection_failure
		"25006": {false}, // read_only_sql_transaction
		"57P01": {false}, // admin_shutdown
		"57P03": {false}, // cannot_connect_now
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			address := postgresAddress(t)
			here := opened(t, sqlsink.Config{Address: address}).Place("here", pods)
			psql(t, address, fmt.Sprintf(`CREATE TABLE troubled (name text);
				CREATE FUNCTION trouble() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
					IF EXISTS (SELECT FROM troubled WHERE new.name LIKE troubled.name) THEN RAISE 'trouble' USING ERRCODE = '%s'; END IF; RETURN new;
				END $$;
				CREATE TRIGGER trouble BEFORE INSERT ON objects FOR EACH ROW EXECUTE FUNCTION trouble()`, code))
			for _, n := range []int{0, 2, 102} {
				events := []informer.Event{put("b", "11")}
				for i := range n {
					events = append(events, put(fmt.Sprint(n, "-", i), "13"))
				}
				psql(t, address, `DELETE FROM troubled; INSERT INTO troubled VALUES ('b')`)
				before := len(stored(t, here))
				err := write(t.Context(), here, events...)
				failed, refused := (*pgconn.PgError)(nil), informer.FailedEvents(nil)
				require.ErrorAs(t, err, &failed)
				require.Equal(t, code, failed.Code)
				if !tt.later {
					require.False(t, errors.As(err, &refused))
					require.ErrorContains(t, err, "writing here pods: ERROR: trouble (SQLSTATE "+code+")")
					require.Empty(t, stored(t, here))
					continue
				}
				require.ErrorAs(t, err, &refused)
				require.Len(t, refused, 1)
				require.Zero(t, refused[0].Index)
				require.True(t, refused[0].Later)
				require.Len(t, stored(t, here), before+n)

				if n > 0 { // it takes none in
					psql(t, address, `INSERT INTO troubled VALUES ('%')`)
					err = write(t.Context(), here, events...)
					require.False(t, errors.As(err, &refused))
					require.ErrorContains(t, err, "writing here pods: ERROR: trouble (SQLSTATE "+code+")")
					require.Len(t, stored(t, here), before+n)
				}
			}
			psql(t, address, `DROP TRIGGER trouble ON objects`)
			require.NoError(t, write(t.Context(), here, put("a", "10"), put("b", "11"), put("c", "12")))
			require.Equal(t, "11", stored(t, here)["ns/b"])
		})
	}
}

// A transaction that meets another one is tried again at once.
func TestConflictsAreTriedAgainAtOnce(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"40001", "40P01"} {
		address := postgresAddress(t)
		here := opened(t, sqlsink.Config{Address: address}).Place("here", pods)
		psql(t, address, fmt.Sprintf(`CREATE SEQUENCE tries;
			CREATE FUNCTION trouble() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				IF nextval('tries') < 5 THEN RAISE 'trouble' USING ERRCODE = '%s'; END IF; RETURN new;
			END $$;
			CREATE TRIGGER trouble BEFORE INSERT ON objects FOR EACH ROW EXECUTE FUNCTION trouble()`, code))
		require.NoError(t, write(t.Context(), here, put("a", "10")))
		require.Equal(t, []string{"5"}, query(t, address, `SELECT last_value FROM tries`))
	}
}

// A row that another session has locked comes later, and holds up no other row of its batch.
func TestLockedRowHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	here := opened(t, sqlsink.Config{Address: address}).Place("here", pods)
	var events []informer.Event
	for i := range 300 {
		events = append(events, put(fmt.Sprint(i), "10"))
	}
	require.NoError(t, write(t.Context(), here, events...))
	conn, err := pgx.Connect(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	_, err = conn.Exec(t.Context(), `BEGIN; SELECT FROM objects WHERE name IN ('7', '205') FOR UPDATE`)
	require.NoError(t, err)
	for i := range events {
		events[i] = put(fmt.Sprint(i), "11")
	}
	events[205] = gone("205")
	var failed informer.FailedEvents
	require.ErrorAs(t, write(t.Context(), here, events...), &failed)
	require.Len(t, failed, 2)
	for n, i := range []int{7, 205} {
		require.Equal(t, i, failed[n].Index)
		require.True(t, failed[n].Later)
		require.ErrorContains(t, failed[n].Err, "canceling statement due to lock timeout (SQLSTATE 55P03)")
	}
	versions := stored(t, here)
	require.Equal(t, "10", versions["ns/7"])
	require.Equal(t, "11", versions["ns/8"])
	_, err = conn.Exec(t.Context(), `ROLLBACK`)
	require.NoError(t, err)
	require.NoError(t, write(t.Context(), here, events[7], events[205]))
	versions = stored(t, here)
	require.Equal(t, "11", versions["ns/7"])
	require.NotContains(t, versions, "ns/205")
}

// A row that is locked for longer than MaxAttempts tries take is no dead letter. It is written when the
// lock is gone.
func TestLockedRowIsNoDeadLetter(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	cluster := newCluster(t, 20)
	r := startWith(t, cluster, address, 1)
	create(t, cluster, "locked")
	require.Eventually(t, func() bool { return stored(t, r.sink.Place("here", pods))["ns/locked"] != "" }, soon, 10*time.Millisecond)
	conn, err := pgx.Connect(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	_, err = conn.Exec(t.Context(), `BEGIN; SELECT FROM objects WHERE name = 'locked' FOR UPDATE`)
	require.NoError(t, err)
	require.NoError(t, cluster.Delete(pods, "ns", "locked"))
	require.Eventually(t, func() bool { return errors.As(r.informer.Status().LastError, new(informer.FailedEvents)) }, soon, 10*time.Millisecond)
	create(t, cluster, "other")
	require.Eventually(t, func() bool { return r.informer.Status().Queued == 1 }, soon, 10*time.Millisecond)
	require.Empty(t, r.informer.DeadLetters())
	_, err = conn.Exec(t.Context(), `ROLLBACK`)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return r.informer.Status().Queued == 0 }, soon, 10*time.Millisecond)
	requireVerified(t, r.sink, cluster)
	require.Empty(t, r.informer.DeadLetters())
	require.NoError(t, r.stop())
}

// Deadlocks and waits for locks of others are such troubles, and pass.
func TestLockOfAnotherProgram(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	here := opened(t, sqlsink.Config{Address: address}).Place("here", pods)
	require.NoError(t, write(t.Context(), here, put("a", "10")))
	conn, err := pgx.Connect(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	_, err = conn.Exec(t.Context(), `BEGIN; LOCK TABLE objects`)
	require.NoError(t, err)
	err = write(t.Context(), here, put("a", "11"), put("b", "12"))
	require.ErrorContains(t, err, "canceling statement due to lock timeout (SQLSTATE 55P03)")
	require.NotErrorAs(t, err, new(informer.FailedEvents))
	_, err = conn.Exec(t.Context(), `ROLLBACK`)
	require.NoError(t, err)
	require.NoError(t, write(t.Context(), here, put("a", "11")))
}

// A row that a user updates meanwhile is removed all the same, once the user is done.
func TestRowThatAnotherProgramUpdates(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	here := opened(t, sqlsink.Config{Address: address}).Place("here", pods)
	require.NoError(t, write(t.Context(), here, put("a", "10"), put("b", "11"), put("c", "12")))
	query(t, address, `ALTER TABLE objects ADD COLUMN seen boolean`)
	conn, err := pgx.Connect(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	for name, change := range map[string]informer.Event{"a": gone("a"), "b": placed("ns", "b", "another", "13")} {
		_, err = conn.Exec(t.Context(), `BEGIN; UPDATE objects SET seen = true WHERE name = '`+name+`'`)
		require.NoError(t, err)
		written := make(chan error, 1)
		go func() { written <- write(t.Context(), here, change) }()
		require.Eventually(t, func() bool {
			return query(t, address, `SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))`, int32(conn.PgConn().PID()))[0] == "1"
		}, soon, 10*time.Millisecond)
		_, err = conn.Exec(t.Context(), `COMMIT`)
		require.NoError(t, err)
		require.NoError(t, <-written)
	}
	require.Equal(t, map[string]string{"ns/b": "13", "ns/c": "12"}, stored(t, here))
	require.Equal(t, []string{"2"}, query(t, address, `SELECT count(*) FROM objects`))
}

// A SQLite file that another program holds is one too.
func TestFileThatAnotherProgramHolds(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/test.db"
	here := opened(t, sqlsink.Config{Address: "sqlite:" + path}).Place("here", pods)
	pool, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, pool.Close()) }()
	conn, err := pool.Conn(t.Context())
	require.NoError(t, err)
	_, err = conn.ExecContext(t.Context(), `BEGIN IMMEDIATE`)
	require.NoError(t, err)
	err = write(t.Context(), here, put("a", "10"))
	failed, later := (*sqlite.Error)(nil), informer.FailedEvents(nil)
	require.ErrorAs(t, err, &failed)
	require.ErrorContains(t, err, "database is locked")
	require.ErrorAs(t, err, &later)
	require.True(t, later[0].Later, "perhaps it is too large for what is left of a disk")
	require.NotErrorAs(t, write(t.Context(), here, put("a", "10"), put("b", "11")), &later)
	_, err = conn.ExecContext(t.Context(), `ROLLBACK`)
	require.NoError(t, err)
	require.NoError(t, write(t.Context(), here, put("a", "10")))
	require.NoError(t, conn.Close())
}

// A follower goes on after its server was killed in the middle of its work, and started again.
func TestPostgresIsKilled(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, "full_page_writes=on")
	cluster := newCluster(t, 60)
	r := start(t, cluster, server.NewDatabase(t))
	for kill := range 3 {
		stop := changes(t, cluster, rand.New(rand.NewPCG(1, uint64(kill))))
		time.Sleep(50 * time.Millisecond)
		server.Kill(t)
		require.Eventually(t, func() bool { return r.informer.Status().LastError != nil }, soon, time.Millisecond)
		server.Restart(t)
		stop()
		require.Eventually(t, func() bool { return r.informer.Status().Queued == 0 }, soon, 10*time.Millisecond)
		requireVerified(t, r.sink, cluster)
	}
	require.NoError(t, r.stop())
}

// A server that is down may have no socket. The informer does not take it for a database without a
// checkpoint, and the program does not end.
func TestCheckpointOfServerThatIsDown(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	address := server.NewDatabase(t)
	here := opened(t, sqlsink.Config{Address: address}).Place("here", pods)
	require.NoError(t, write(t.Context(), here, put("a", "10")))
	require.NoError(t, here.Checkpoint().Save(t.Context(), text("ten")))
	at, err := url.Parse(address)
	require.NoError(t, err)
	unknown := func(ctx context.Context, why string) {
		t.Helper()
		_, err := here.Checkpoint().Load(ctx)
		require.ErrorContains(t, err, why)
		require.NotErrorIs(t, err, fs.ErrNotExist)
		require.NotErrorIs(t, err, io.ErrUnexpectedEOF)
	}
	for _, why := range []error{fs.ErrNotExist, io.ErrUnexpectedEOF} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		unknown(ctx, why.Error())
	}

	server.Kill(t)
	require.NoError(t, os.Remove(at.Query().Get("host")+"/.s.PGSQL.5432")) // as a server does that ends in good order
	for range 3 {
		unknown(t.Context(), "reading the checkpoint of here pods: ")
	}
	unknown(t.Context(), "no such file or directory")
	server.Restart(t)
	require.Equal(t, "ten", saved(t, here))
}

// A stop lets the batch end that is under way.
func TestStopWaitsForTheBatch(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		here := opened(t, sqlsink.Config{Address: address}).Place("here", pods)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, write(ctx, here, put("a", "10")))
		require.ErrorIs(t, here.Checkpoint().Save(ctx, text("late")), context.Canceled)
		require.Equal(t, map[string]string{"ns/a": "10"}, stored(t, here))
	})
}
