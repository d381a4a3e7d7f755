package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What was written is there after the file is opened again; a path is a path, not a part of a URL.
func TestDatabaseStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?mode=memory&c%20#d.db")
	at := place{cluster: "here", resource: pods}
	for range 2 {
		db, err := openSQLite(t.Context(), path)
		require.NoError(t, err)
		require.NoError(t, db.Apply(t.Context(), []change{put(at, "ns", "a", "1", "10")}))
		require.Len(t, seeded(t, db, at), 1)
		require.NoError(t, db.Close())
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	require.NoError(t, err)
	require.Equal(t, []string{path, path + ".lock"}, files, "the log is folded in and gone")
}

func TestDatabaseHasOneMirror(t *testing.T) {
	db := openTestDatabase(t)
	_, err := openSQLite(t.Context(), db.path)
	require.EqualError(t, err, "database "+db.path+": another mirror writes to it")
}

// Reading the resource versions touches the index alone.
func TestSeedReadsTheIndexOnly(t *testing.T) {
	db := openTestDatabase(t)
	var id, parent, unused int
	var detail string
	err := db.reading.QueryRow(`EXPLAIN QUERY PLAN SELECT namespace, name, uid, resource_version FROM objects `+ofResource+` AND version = ?`,
		"c", "g", "r", "v").Scan(&id, &parent, &unused, &detail)
	require.NoError(t, err)
	require.Contains(t, detail, "USING COVERING INDEX objects_versions")
}
