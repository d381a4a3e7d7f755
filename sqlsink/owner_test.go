package sqlsink_test

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// requireUnusable demands that a database cannot be opened, with these words.
func requireUnusable(t *testing.T, config sqlsink.Config, want string) {
	t.Helper()
	_, err := sqlsink.Open(t.Context(), config)
	unusable := (*sqlsink.UnusableError)(nil)
	require.ErrorAs(t, err, &unusable)
	require.Regexp(t, want, err.Error())
}

// A database has one writer that is alone.
func TestDatabaseHasOneWriter(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		one := open(t, sqlsink.Config{Address: address})
		name, err := sqlsink.Name(address)
		require.NoError(t, err)
		require.Equal(t, name, one.String())
		requireUnusable(t, sqlsink.Config{Address: address}, "^database .*: another writer has it; end the one that has opened it before")
		require.NoError(t, one.Close())
		require.NoError(t, open(t, sqlsink.Config{Address: address}).Close())
	})
}

// A file is the same one under another name.
func TestFileOfTwoNamesHasOneWriter(t *testing.T) {
	t.Parallel()
	path, link := filepath.Join(t.TempDir(), "test.db"), filepath.Join(t.TempDir(), "link.db")
	require.NoError(t, os.Symlink(path, link))
	for _, names := range [][2]string{{link, link}, {path, link}, {link, path}} { // the file is not there at first
		one := open(t, sqlsink.Config{Address: "sqlite:" + names[0]})
		requireUnusable(t, sqlsink.Config{Address: "sqlite:" + names[1]}, "another writer has it")
		require.NoError(t, one.Close())
	}
}

// A writer whose lock was lost writes nothing any more once another one has begun, and ends: it would
// put back old rows after new ones.
func TestWriterOfAFileThatWasReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	before := opened(t, sqlsink.Config{Address: "sqlite:" + path})
	here := before.Place("here", pods)
	require.NoError(t, write(t.Context(), here, put("a", "10")))
	require.NoError(t, os.Remove(path+".lock"))
	require.NoError(t, write(t.Context(), here, put("a", "11")), "it is the only one")

	after := opened(t, sqlsink.Config{Address: "sqlite:" + path})
	now := after.Place("here", pods)
	require.NoError(t, write(t.Context(), now, put("a", "12")))
	sound := before.Context(t.Context())
	require.ErrorContains(t, write(t.Context(), here, put("a", "11")), "another writer has it")
	<-sound.Done()
	require.ErrorContains(t, before.Err(), "another writer has it; end the one that has opened it before")
	require.Error(t, here.Checkpoint().Save(t.Context(), func(io.Writer) error { return nil }))
	require.Equal(t, map[string]string{"ns/a": "12"}, stored(t, now))
	require.NoError(t, write(t.Context(), now, put("b", "13")))
}

// Or any number that share the work.
func TestWritersThatShareGoTogether(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	alone, shared := sqlsink.Config{Address: address}, sqlsink.Config{Address: address, Shards: 1}
	one := open(t, alone)
	requireUnusable(t, shared, "another writer has it")
	require.NoError(t, one.Close())
	first, second := open(t, shared), open(t, shared)
	requireUnusable(t, alone, "another writer has it")
	require.NoError(t, first.Close())
	require.NoError(t, second.Close())
	require.NoError(t, open(t, alone).Close())
}

// endPresence ends the sessions that show others that there are writers, as a network does.
func endPresence(t *testing.T, address string) {
	t.Helper()
	require.NotEmpty(t, query(t, address, `SELECT pg_terminate_backend(pid, 10000) FROM pg_locks
		WHERE locktype = 'advisory' AND classid = x'6d697272'::int AND objid = 'objects'::regclass AND granted`))
}

// A server that ends idle sessions does not end the one that shows others that there is a writer.
func TestIdleWriterStaysTheOne(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	psql(t, address, `SELECT format('ALTER DATABASE %I SET idle_session_timeout = ''3s''', current_database()) \gexec`)
	opened(t, sqlsink.Config{Address: address})
	other, err := pgx.Connect(t.Context(), address) // idle for less long
	require.NoError(t, err)
	t.Cleanup(func() { _ = other.Close(context.WithoutCancel(t.Context())) })
	require.Eventually(t, func() bool {
		return query(t, address, `SELECT count(*) FROM pg_stat_activity WHERE pid = $1`, int32(other.PgConn().PID()))[0] == "0"
	}, soon, 100*time.Millisecond)
	requireUnusable(t, sqlsink.Config{Address: address}, "another writer has it")
}

// Writers that divide the clusters in different ways do not write at the same time, also if one of
// them has lost its session unnoticed.
func TestWritersHaveTheSameShards(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	config := func(shards int) sqlsink.Config { return sqlsink.Config{Address: address, Shards: shards} }
	one := opened(t, config(1))
	_, err := sqlsink.Open(t.Context(), config(2))
	others := (*sqlsink.OtherShardsError)(nil)
	require.ErrorAs(t, err, &others)
	require.Equal(t, sqlsink.OtherShardsError{Theirs: 1, Own: 2}, *others)
	require.ErrorContains(t, err, "writers with 1 shards use it, and this one has 2: it goes on when they have ended")

	endPresence(t, address)
	other := opened(t, config(2))
	require.ErrorContains(t, write(at(t, 7), unitOf(one, "here", informer.Shard{}), put("a", "10")), "another writer has it")
	require.NoError(t, write(at(t, 1), unitOf(other, "here", informer.Shard{Key: informer.ShardByNamespace}.Split(2)[0]), put("b", "11")))
	_, err = sqlsink.Open(t.Context(), config(1))
	require.ErrorAs(t, err, &others)
}

// A writer whose session has ended unnoticed writes nothing any more once another one has begun,
// and ends.
func TestWriterThatWasReplaced(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		before, after int // shards
	}{{"by one that is alone", 0, 0}, {"by ones that share", 0, 1}, {"ones that share by one that is alone", 1, 0}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			address := postgresAddress(t)
			before := opened(t, sqlsink.Config{Address: address, Shards: tt.before})
			here := unitOf(before, "here", informer.Shard{})
			require.NoError(t, write(at(t, 1), here, put("a", "10")))
			endPresence(t, address)

			after := opened(t, sqlsink.Config{Address: address, Shards: tt.after})
			require.NoError(t, before.Err())
			sound := before.Context(t.Context())
			require.ErrorContains(t, write(at(t, 1), here, put("b", "11")), "another writer has it")
			<-sound.Done()
			require.ErrorIs(t, context.Cause(sound), before.Err())
			require.ErrorContains(t, before.Err(), "another writer has it; end the one that has opened it before")
			now := unitOf(after, "here", informer.Shard{})
			require.NoError(t, write(at(t, 1), now, put("c", "12")))
			require.Equal(t, map[string]string{"ns/a": "10", "ns/c": "12"}, stored(t, now))
		})
	}
}

// A writer whose sessions end while nobody else begins goes on.
func TestWriterGoesOnAfterItsSessionsHaveEnded(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	sink := opened(t, sqlsink.Config{Address: address})
	here := sink.Place("here", pods)
	require.NoError(t, write(t.Context(), here, put("a", "10")))
	query(t, address, `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		require.NoError(t, write(context.Background(), here, put("b", "11")))
	}, soon, 100*time.Millisecond)
	requireUnusable(t, sqlsink.Config{Address: address}, "another writer has it")
	require.NoError(t, sink.Err())
}

// Tables of another program stay as they are.
func TestTablesOfAnotherProgram(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	psql(t, address, "CREATE TABLE checkpoints (name text); INSERT INTO checkpoints VALUES ('mine'); CREATE SCHEMA mirror")
	requireUnusable(t, sqlsink.Config{Address: address}, `^database postgres://postgres@/test\d+\?host=\S+: schema public has tables of another program \(checkpoints\); `+
		`it was not changed: name another database, or another schema with search_path$`)
	require.Equal(t, []string{"mine"}, query(t, address, "SELECT name FROM checkpoints"))

	// Another schema of the same database is another place.
	sink := opened(t, sqlsink.Config{Address: address + "&search_path=mirror"})
	require.NoError(t, write(t.Context(), sink.Place("here", pods), put("a", "10")))
	require.Equal(t, []string{"1"}, query(t, address, "SELECT count(*) FROM mirror.objects"))
	requireUnusable(t, sqlsink.Config{Address: address + "&search_path=nowhere"}, "none of the schemas of its search_path exists; create one")
}

// No message has a password, or a part of one, in it.
func TestPasswordIsNotShown(t *testing.T) {
	t.Parallel()
	const password = "s3cr/et:wo@rd"
	for _, address := range []string{
		"postgres://me:" + password + "@host/db",
		"postgres://me:" + url.QueryEscape(password) + "@127.0.0.1:1/db",
		"postgres://me@127.0.0.1:1/db?password=" + url.QueryEscape(password),
		"postgres://me:" + url.QueryEscape(password) + "@127.0.0.1:port/db",
		"postgress://me:" + password + "@host/db",
		"host=127.0.0.1 port=1 user=me password='" + password + "'",
		"host=127.0.0.1 port=x user=me password='" + password + "'",
		" host = 127.0.0.1 port = 1 user = me password = '" + password + "'",
		"dbname='host=127.0.0.1 password=" + password + "'",
		"host=127.0.0.1 dbname='postgres://me:" + password + "@host/db'",
		"host=127.0.0.1 hostaddr=" + password,
		"host=127.0.0.1 gssencmode='" + password + "'",
		"host=127.0.0.1 ssl_min_protocol_version='" + password + "'",
		"sqlite:postgres://me:" + password + "@host/db",
		"sqlite:host=127.0.0.1 password=" + password,
		password,
		"",
		"sqlite:",
	} {
		_, err := sqlsink.Open(t.Context(), sqlsink.Config{Address: address})
		require.Error(t, err, address)
		name, _ := sqlsink.Name(address)
		for _, part := range []string{"s3cr", "et:wo", "rd\"", url.QueryEscape(password)} {
			require.False(t, strings.Contains(fmt.Sprint(err, name), part), "%v shows %q", err, part)
		}
	}
}
