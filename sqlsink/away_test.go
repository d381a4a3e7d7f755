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

// What is wrong with the server is blamed on no row: nothing is written, the error has the server's
// own, and the same batch is written when the server is well again. Conflicts are tried again at
// once.
func TestTroublesOfTheServerAreNoRefusals(t *testing.T) {
	t.Parallel()
	for code, tries := range map[string]int{
		"40001": maxConflicts, // serialization_failure
		"40P01": maxConflicts, // deadlock_detected
		"08006": 1,            // connection_failure
		"25006": 1,            // read_only_sql_transaction
		"53100": 1,            // disk_full
		"53200": 1,            // out_of_memory
		"53300": 1,            // too_many_connections
		"55P03": 1,            // lock_not_available
		"57014": 1,            // query_canceled
		"57P01": 1,            // admin_shutdown
		"57P03": 1,            // cannot_connect_now
		"58030": 1,            // io_error
		"XX000": 1,            // internal_error
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			address := postgresAddress(t)
			here := opened(t, sqlsink.Config{Address: address}).Place("here", pods)
			psql(t, address, fmt.Sprintf(`CREATE SEQUENCE tries;
				CREATE FUNCTION trouble() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
					IF new.name = 'b' THEN PERFORM nextval('tries'); RAISE 'trouble' USING ERRCODE = '%s'; END IF; RETURN new;
				END $$;
				CREATE TRIGGER trouble BEFORE INSERT ON objects FOR EACH ROW EXECUTE FUNCTION trouble()`, code))
			for _, n := range []int{0, 100} {
				events := []informer.Event{put("a", "10"), put("b", "11"), put("c", "12")}
				for i := range n {
					events = append(events, put(fmt.Sprint(i), "13"))
				}
				err := write(t.Context(), here, events...)
				failed, refused := (*pgconn.PgError)(nil), informer.FailedEvents(nil)
				require.ErrorAs(t, err, &failed)
				require.Equal(t, code, failed.Code)
				require.False(t, errors.As(err, &refused))
				require.ErrorContains(t, err, "writing here pods: ERROR: trouble (SQLSTATE "+code+")")
				require.Empty(t, stored(t, here))
			}
			require.Equal(t, []string{fmt.Sprint(2 * tries)}, query(t, address, `SELECT last_value FROM tries`))
			psql(t, address, `DROP TRIGGER trouble ON objects`)
			require.NoError(t, write(t.Context(), here, put("a", "10"), put("b", "11"), put("c", "12")))
			require.Len(t, stored(t, here), 3)
		})
	}
}

// maxConflicts is how often a transaction is tried that meets another one.
const maxConflicts = 5

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
	err = write(t.Context(), here, put("a", "11"))
	require.ErrorContains(t, err, "canceling statement due to lock timeout (SQLSTATE 55P03)")
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
	failed, refused := (*sqlite.Error)(nil), informer.FailedEvents(nil)
	require.ErrorAs(t, err, &failed)
	require.ErrorContains(t, err, "database is locked")
	require.False(t, errors.As(err, &refused))
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
