package main

import (
	"net/url"
	"strings"
	"testing"

	"github.com/rvinformer/informer"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A database has one mirror that is alone, or any number that share the work.
func TestPostgresHasOneMirror(t *testing.T) {
	t.Parallel()
	address := newPostgresAddress(t)
	config, _, err := parseAddress(address)
	require.NoError(t, err)
	refused := func(alone bool) {
		t.Helper()
		_, err := openPostgres(t.Context(), config, shardsOf(alone))
		require.ErrorContains(t, err, ": another mirror writes to it; end that one first")
		require.True(t, isUnusable(err))
	}
	one := openPostgresFor(t, address, true)
	refused(true)
	refused(false)
	require.NoError(t, one.Close())

	first, second := openPostgresFor(t, address, false), openPostgresFor(t, address, false)
	refused(true)
	require.NoError(t, first.Close())
	require.NoError(t, second.Close())
	require.NoError(t, openPostgresFor(t, address, true).Close())
}

// Replicas that divide the clusters in different ways do not write at the same time, also if one of
// them has lost its session unnoticed.
func TestPostgresReplicasHaveTheSameShards(t *testing.T) {
	t.Parallel()
	config, _, err := parseAddress(newPostgresAddress(t))
	require.NoError(t, err)
	open := func(shards int) (*postgres, error) { return openPostgres(t.Context(), config, shards) }
	first, err := open(1)
	require.NoError(t, err)
	second, err := open(1)
	require.NoError(t, err)
	refused := func() {
		t.Helper()
		_, err := open(2)
		require.ErrorContains(t, err, "mirrors with --shards 1 write to it, and this one has --shards 2")
		require.False(t, isFinal(err), "it is waited for")
	}
	refused()
	require.NoError(t, first.Close())
	refused()

	// The server notices the end of a connection a little later: until then the others seem to be
	// there.
	opens := func(shards int) (db *postgres) {
		t.Helper()
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			var err error
			db, err = open(shards)
			require.NoError(t, err)
		}, soon, presenceTick)
		return db
	}
	second.presence.End()
	other := opens(2)
	here := place{cluster: "here", resource: pods, group: groupName}
	require.ErrorContains(t, second.Apply(at(t, 7), []change{put(here, "ns", "a", "1", "10")}), "another mirror writes to it")
	here.shard = informer.Shard{Key: informer.ShardByNamespace}.Split(2)[0]
	claim(t, other, here, 1)
	require.NoError(t, other.Apply(at(t, 1), []change{put(here, "ns", "b", "2", "11")}))
	_, err = open(1)
	require.ErrorContains(t, err, "mirrors with --shards 2 write to it")
	require.NoError(t, other.Close())
	require.NoError(t, second.Close())
	for range 2 {
		defer opens(1).Close()
	}
}

// A mirror whose session has ended unnoticed writes nothing any more once another one has begun,
// and ends.
func TestPostgresMirrorThatWasReplaced(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		before, after bool // alone
	}{{"by one that is alone", true, true}, {"by replicas", true, false}, {"replicas by one that is alone", false, true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			address := newPostgresAddress(t)
			before := openTestPostgres(t, address, tt.before)
			here := place{cluster: "here", resource: pods}
			claim(t, before, here, 1)
			require.NoError(t, before.Apply(at(t, 1), []change{put(here, "ns", "a", "1", "10")}))
			var ended bool
			require.NoError(t, before.pool.QueryRow(t.Context(), `SELECT pg_terminate_backend($1, 10000)`,
				int32(before.presence.conn.PgConn().PID())).Scan(&ended))
			require.True(t, ended)

			after := openTestPostgres(t, address, tt.after)
			err := before.Apply(at(t, 1), []change{put(here, "ns", "b", "2", "11")})
			require.ErrorContains(t, err, "another mirror writes to it")
			<-before.Sound().Done()
			require.NoError(t, after.Apply(at(t, 1), []change{put(here, "ns", "c", "3", "12")}))
			require.Equal(t, map[string]string{"ns/a": "10", "ns/c": "12"}, seeded(t, after, here))
		})
	}
}

// Tables of another program stay as they are.
func TestPostgresOfAnotherProgram(t *testing.T) {
	t.Parallel()
	address := newPostgresAddress(t)
	server, err := sharedPostgres()
	require.NoError(t, err)
	config, _, err := parseAddress(address)
	require.NoError(t, err)
	server.Query(t, config.ConnConfig.Database, "CREATE TABLE checkpoints (name text); INSERT INTO checkpoints VALUES ('mine'); CREATE SCHEMA mirror")
	to := newOutput()
	require.Equal(t, exitFailed, run(t.Context(), []string{"--demo", "--demo-objects=30", "--once", "--database", address}, to.screen))
	require.Regexp(t, `^mirror: database postgres://postgres@/test\d+\?host=\S+: schema public has tables of another program \(checkpoints\); it was not changed: `+
		`name another database, or another schema with search_path\n$`, to.messages())
	require.Equal(t, "mine", server.Query(t, config.ConnConfig.Database, "SELECT name FROM checkpoints"))

	// Another schema of the same database is another place.
	to = newOutput()
	require.Equal(t, exitOK, run(t.Context(), []string{"--demo", "--demo-objects=30", "--once", "--database", address + "&search_path=mirror"}, to.screen), to)
	require.NotEqual(t, "0", server.Query(t, config.ConnConfig.Database, "SELECT count(*) FROM mirror.objects"))
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
		password,
	} {
		to := newOutput()
		require.NotEqual(t, exitOK, run(t.Context(), []string{"--demo", "--demo-objects=30", "--once", "--database", address}, to.screen), address)
		require.NotEmpty(t, to.messages())
		for _, part := range []string{"s3cr", "et:wo", "rd\"", url.QueryEscape(password)} {
			require.False(t, strings.Contains(to.String(), part), "%q shows %q", to, part)
		}
	}
}

func TestDatabaseFlag(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/kept.db"
	to := newOutput()
	require.Equal(t, exitOK, run(t.Context(), []string{"--demo", "--demo-objects=30", "--once", "--database", "sqlite:" + path}, to.screen), to)
	require.FileExists(t, path)
	for _, tt := range []struct{ args, want string }{
		{"--db=a --database=sqlite:b", "--db and --database: there is one database"},
		{"--database=somewhere", "--database: it is no address of a database: it must be like postgres://user@host:5432/name"},
		{"--database=", "--database: it is no address of a database"},
		{"--database=sqlite:", "--database: it is no address of a database"},
		{"--database=postgres://host:port/db", "--database: it cannot be read as the address of a PostgreSQL database"},
	} {
		to := newOutput()
		require.Equal(t, exitMisused, run(t.Context(), strings.Fields(tt.args), to.screen), tt.args)
		require.Contains(t, to.messages(), tt.want)
	}
}
