package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/rvinformer/informer/informertest"
	"github.com/stretchr/testify/require"
)

const page = 4096 // of a database

// overwrite puts nonsense over the file, between two offsets.
func overwrite(t *testing.T, path string, from, to int64) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = file.WriteAt(make([]byte, to-from), from)
	require.NoError(t, err)
	require.NoError(t, file.Close())
}

// A damaged database ends the mirror with a message that says what to do, and so does the file of
// another program, which stays as it is.
func TestUnusableDatabase(t *testing.T) {
	t.Parallel()
	const (
		damaged  = `it is damaged \(.*\); delete it, with .*test.db-wal and .*test.db-shm, and the next start fills a new one from the clusters\n$`
		notSQL   = `it is no SQLite database, or its first page is damaged; it was not changed: name another file with --db, or delete it to have it filled from the clusters\n$`
		another  = `it is a database of another program; it was not changed: name another file with --db\n$`
		database = "^mirror: database .*test.db: "
	)
	c := newTestCluster(t, "here", 1000, informertest.Options{})
	kubeconfig := writeKubeconfig(t, c.endpoint())
	args := func(path string) []string { return []string{"--kubeconfig", kubeconfig, "--db", path, "--once"} }
	mirrored := filepath.Join(t.TempDir(), "mirrored.db")
	to := newOutput()
	require.Equal(t, exitOK, run(t.Context(), args(mirrored), to.screen), to)
	whole := readFile(t, mirrored)

	for _, tt := range []struct {
		name   string
		file   []byte
		change func(t *testing.T, path string)
		want   string
		stays  bool
	}{
		{name: "cut off", file: whole[:len(whole)/2], want: damaged},
		{name: "damaged behind its first page", file: whole, want: damaged,
			change: func(t *testing.T, path string) { overwrite(t, path, page, int64(len(whole))) }},
		{name: "damaged first page", file: whole, want: notSQL, stays: true,
			change: func(t *testing.T, path string) { overwrite(t, path, 0, page) }},
		{name: "a text", file: []byte("Dear diary, today I have mirrored a cluster."), want: notSQL, stays: true},
		{name: "another program's table", want: another, stays: true, change: func(t *testing.T, path string) {
			execute(t, path, "CREATE TABLE people (name TEXT)")
		}},
		{name: "another program's table of that name", want: another, stays: true, change: func(t *testing.T, path string) {
			execute(t, path, "CREATE TABLE objects (cluster TEXT, name TEXT)")
		}},
		{name: "another program's mark", want: another, stays: true, change: func(t *testing.T, path string) {
			execute(t, path, "PRAGMA application_id = 7")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "test.db")
			require.NoError(t, os.WriteFile(path, tt.file, 0o600))
			if tt.change != nil {
				tt.change(t, path)
			}
			before := readFile(t, path)

			to := newOutput()
			require.Equal(t, exitFailed, run(t.Context(), args(path), to.screen), to)
			require.Regexp(t, database+tt.want, to.messages())
			if !tt.stays {
				return
			}
			require.Equal(t, before, readFile(t, path))
			beside, err := os.ReadDir(filepath.Dir(path))
			require.NoError(t, err)
			require.Len(t, beside, 1)
		})
	}
}

// Damage that is met while objects are written ends the run as well.
func TestDatabaseIsDamagedWhileItIsWritten(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, "here", 1000, informertest.Options{})
	path := filepath.Join(t.TempDir(), "test.db")
	args := []string{"--kubeconfig", writeKubeconfig(t, c.endpoint()), "--db", path, "--resources=pods", "--once"}
	to := newOutput()
	require.Equal(t, exitOK, run(t.Context(), args, to.screen), to)

	for number := range 100 {
		_, err := c.of(t, pods).Update(number * 5)
		require.NoError(t, err)
	}
	execute(t, path, "DROP INDEX objects_versions", "VACUUM", // so that the objects are at the end
		"CREATE INDEX objects_versions ON objects (cluster, \"group\", resource, version, namespace, name, uid, resource_version)")
	size := int64(len(readFile(t, path)))
	overwrite(t, path, size/4/page*page, size/2)
	to = newOutput()
	require.Equal(t, exitFailed, run(t.Context(), args, to.screen), to)
	require.Regexp(t, `^mirror: database .*: it is damaged .*; delete it.*\n$`, to.messages())
}

// A file that mirror made before it marked its files is its own.
func TestUnmarkedDatabaseIsMarked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.db")
	execute(t, path, createTable, createCheckpoints)
	require.NoError(t, checkOwner(t.Context(), path))
	db, err := openSQLite(t.Context(), path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	var mark int
	require.NoError(t, db.reading.QueryRow("PRAGMA application_id").Scan(&mark))
	require.Equal(t, applicationID, mark)
}

// execute runs statements as another program does.
func execute(t *testing.T, path string, statements ...string) {
	pool, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, pool.Close()) }()
	for _, statement := range statements {
		_, err := pool.Exec(statement)
		require.NoError(t, err, statement)
	}
}

func readFile(t *testing.T, path string) []byte {
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return content
}
