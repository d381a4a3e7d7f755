package sqlsink_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
)

// makeBefore makes the tables that an earlier version made, with rows in them.
func makeBefore(t *testing.T, address, fixture string) {
	statements, err := os.ReadFile(filepath.Join("testdata", fixture))
	require.NoError(t, err)
	if path, isFile := strings.CutPrefix(address, "sqlite:"); isFile {
		execute(t, path, string(statements))
		return
	}
	psql(t, address, string(statements))
}

// psql runs many statements.
func psql(t *testing.T, address, statements string) string {
	server, err := sharedPostgres()
	require.NoError(t, err)
	name, err := sqlsink.Name(address)
	require.NoError(t, err)
	return server.Query(t, strings.TrimPrefix(strings.Split(name, "?")[0], "postgres://postgres@/"), statements)
}

// The databases of earlier versions are taken over: rows, checkpoints, epochs and counts.
func TestEarlierDatabaseIsTakenOver(t *testing.T) {
	t.Parallel()
	for _, fixture := range []string{"postgres-1.sql", "postgres-1-before-writes.sql", "sqlite-1.sql"} {
		t.Run(fixture, func(t *testing.T) {
			t.Parallel()
			address := "sqlite:" + filepath.Join(t.TempDir(), "test.db")
			if strings.HasPrefix(fixture, "postgres") {
				address = postgresAddress(t)
			}
			makeBefore(t, address, fixture)
			for range 2 {
				sink := open(t, sqlsink.Config{Address: address, Columns: columns})
				here := sink.Place("here", pods)
				require.Equal(t, map[string]string{"ns/a": "10"}, stored(t, here))
				require.Equal(t, "kept", saved(t, here))
				require.Equal(t, "n1", strings.Split(values(t, address, "pods"), "|")[0])
				require.NoError(t, write(t.Context(), here, put("b", "11")))
				require.NoError(t, write(t.Context(), here, gone("b")))
				require.NoError(t, sink.Close())
			}
			if strings.HasPrefix(address, "sqlite:") {
				return
			}
			require.Equal(t, []string{"rvinformer mirror, format 3"}, query(t, address, `SELECT obj_description('objects'::regclass)`))
			sink := opened(t, sqlsink.Config{Address: address, Shards: 1})
			here := sink.Target(fleet.Target{Unit: fleet.Unit{Cluster: "here", Group: "all"}, Resource: pods})
			_, err := here.Storage(informer.WithEpoch(t.Context(), 6))
			require.ErrorContains(t, err, "here/all has another owner: the database has its epoch 7, this one is 6")
		})
	}
}

// The tables of a newer version are refused, and stay as they are.
func TestNewerDatabaseIsRefused(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		sink := open(t, sqlsink.Config{Address: address})
		require.NoError(t, write(t.Context(), sink.Place("here", pods), put("a", "10")))
		require.NoError(t, sink.Close())
		path, isFile := strings.CutPrefix(address, "sqlite:")
		var before []byte
		if isFile {
			execute(t, path, "PRAGMA user_version = 9")
			before = readFile(t, path)
		} else {
			query(t, address, `COMMENT ON TABLE objects IS 'rvinformer mirror, format 9'`)
		}
		_, err := sqlsink.Open(t.Context(), sqlsink.Config{Address: address, Columns: columns})
		unusable := (*sqlsink.UnusableError)(nil)
		require.ErrorAs(t, err, &unusable)
		known := 3
		if isFile {
			known = 2
		}
		require.EqualError(t, unusable, fmt.Sprintf("its tables have format 9, of a newer version of this program, which knows formats up to %d; it was not changed: use that version", known))
		if isFile {
			require.Equal(t, before, readFile(t, path))
		} else {
			require.Equal(t, []string{"0"}, query(t, address, `SELECT count(*) FROM information_schema.columns WHERE table_name = 'objects' AND column_name = 'node'`))
		}
	})
}

// Writers that start at once make the tables once.
func TestManyOpenAtOnce(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	errs := make(chan error)
	const writers = 8
	for range writers {
		go func() {
			sink, err := sqlsink.Open(t.Context(), sqlsink.Config{Address: address, Columns: columns, Shards: 2})
			if err == nil {
				err = sink.Close()
			}
			errs <- err
		}()
	}
	for range writers {
		require.NoError(t, <-errs)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return content
}
