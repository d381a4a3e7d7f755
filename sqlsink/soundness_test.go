package sqlsink_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
)

const page = 4096 // of a database

// overwrite puts nonsense over the file, between two offsets.
func overwrite(t *testing.T, path string, from, to int64) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = file.WriteAt(make([]byte, to-from), from)
	require.NoError(t, err)
	require.NoError(t, file.Close())
}

// many are the events of so many objects of a kilobyte.
func many(n int) (events []informer.Event) {
	for i := range n {
		events = append(events, with(fmt.Sprint(i), "10", map[string]any{"text": fmt.Sprintf("%01000d", i)}))
	}
	return events
}

// A damaged file is unusable, and the error says what to do; so is that of another program, which
// stays as it is.
func TestUnusableFile(t *testing.T) {
	t.Parallel()
	const (
		damaged = `it is damaged \(.*\); delete it, with .*test.db-wal and .*test.db-shm, and the next start fills a new one from the clusters$`
		notSQL  = `it is no SQLite database, or its first page is damaged; it was not changed: name another file, or delete it to have it filled from the clusters$`
		another = `it is a database of another program; it was not changed: name another file$`
	)
	whole := filepath.Join(t.TempDir(), "whole.db")
	sink := open(t, sqlsink.Config{Address: "sqlite:" + whole})
	require.NoError(t, write(t.Context(), sink.Place("here", pods), many(1000)...))
	require.NoError(t, sink.Close())
	content := readFile(t, whole)

	for _, tt := range []struct {
		name   string
		file   []byte
		change func(t *testing.T, path string)
		want   string
		stays  bool
	}{
		{name: "cut off", file: content[:len(content)/2], want: damaged},
		{name: "damaged behind its first page", file: content, want: damaged,
			change: func(t *testing.T, path string) { overwrite(t, path, page, int64(len(content))) }},
		{name: "damaged first page", file: content, want: notSQL, stays: true,
			change: func(t *testing.T, path string) { overwrite(t, path, 0, page) }},
		{name: "a text", file: []byte("Dear diary, today I have followed a cluster."), want: notSQL, stays: true},
		{name: "another program's table", want: another, stays: true, change: func(t *testing.T, path string) {
			execute(t, path, "CREATE TABLE people (name TEXT)")
		}},
		{name: "another program's table of that name", want: another, stays: true, change: func(t *testing.T, path string) {
			execute(t, path, "CREATE TABLE objects (cluster TEXT, name TEXT)")
		}},
		{name: "another program's mark", want: another, stays: true, change: func(t *testing.T, path string) {
			execute(t, path, "PRAGMA application_id = 7")
		}},
		{name: "another program's version", want: another, stays: true, change: func(t *testing.T, path string) {
			execute(t, path, "PRAGMA user_version = 7")
		}},
		{name: "another program's version of such tables", file: content, want: another, stays: true, change: func(t *testing.T, path string) {
			execute(t, path, "PRAGMA application_id = 0", "PRAGMA user_version = 7", "PRAGMA journal_mode = delete")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "test.db")
			require.NoError(t, os.WriteFile(path, tt.file, 0o600))
			if tt.change != nil {
				tt.change(t, path)
			}
			before := readFile(t, path)
			sink, err := sqlsink.Open(t.Context(), sqlsink.Config{Address: "sqlite:" + path})
			if err == nil { // the damage is met when it is read
				_, err = sink.Place("here", pods).Storage(t.Context())
				require.Error(t, err)
				require.ErrorContains(t, sink.Err(), "it is damaged")
				require.NoError(t, sink.Close())
			}
			require.Regexp(t, tt.want, err.Error())
			unusable := (*sqlsink.UnusableError)(nil)
			require.ErrorAs(t, err, &unusable)
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

// Damage that is met while rows are written makes the database unusable.
func TestFileIsDamagedWhileItIsWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	sink := open(t, sqlsink.Config{Address: "sqlite:" + path})
	require.NoError(t, write(t.Context(), sink.Place("here", pods), many(1000)...))
	require.NoError(t, sink.Close())
	execute(t, path, "DROP INDEX objects_versions", "VACUUM", // so that the objects are at the end
		"CREATE INDEX objects_versions ON objects (cluster, \"group\", resource, version, namespace, name, uid, resource_version)")
	size := int64(len(readFile(t, path)))
	overwrite(t, path, size/4/page*page, size/2)
	sink = opened(t, sqlsink.Config{Address: "sqlite:" + path})
	err := write(t.Context(), sink.Place("here", pods), many(1000)...)
	require.ErrorContains(t, err, "it is damaged")
	<-sink.Context(t.Context()).Done()
	require.ErrorContains(t, sink.Err(), "; delete it, with ")
}

// A file that was made before files were marked is this program's.
func TestUnmarkedFileIsMarked(t *testing.T) {
	t.Parallel()
	address := "sqlite:" + filepath.Join(t.TempDir(), "old.db")
	makeBefore(t, address, "sqlite-1.sql")
	execute(t, address[len("sqlite:"):], "PRAGMA application_id = 0")
	sink := open(t, sqlsink.Config{Address: address})
	require.Equal(t, map[string]string{"ns/a": "10"}, stored(t, sink.Place("here", pods)))
	require.NoError(t, sink.Close())
	require.Equal(t, []byte("mirr"), readFile(t, address[len("sqlite:"):])[68:72])
}

// The file may hold Secrets.
func TestFileIsForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rows.db")
	sink := open(t, sqlsink.Config{Address: "sqlite:" + path})
	require.NoError(t, write(t.Context(), sink.Place("here", pods), put("a", "10")))
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), name)
	}
	require.NoError(t, sink.Close())
}

// What was written is there after the file is opened again; a path is a path, not a part of a URL.
func TestFileStays(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b?mode=memory&c%20#d.db")
	for range 2 {
		sink := open(t, sqlsink.Config{Address: "sqlite:" + path})
		require.Equal(t, path, sink.String())
		require.NoError(t, write(t.Context(), sink.Place("here", pods), put("a", "10")))
		require.Len(t, stored(t, sink.Place("here", pods)), 1)
		require.NoError(t, sink.Close())
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	require.NoError(t, err)
	require.Equal(t, []string{path, path + ".lock"}, files, "the log is folded in and gone")
}
