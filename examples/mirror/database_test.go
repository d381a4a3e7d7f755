package main

import (
	"path/filepath"
	"testing"

	"github.com/rvinformer/informer"
	"github.com/stretchr/testify/require"
)

func put(at place, namespace, name, uid, resourceVersion string) change {
	return change{kind: putRow, place: at, namespace: namespace, name: name, uid: uid, resourceVersion: resourceVersion, object: `{"a":1}`}
}

// seeded returns what a start knows of a place.
func seeded(t *testing.T, db *database, at place) map[string]string {
	storage := informer.NewResourceVersionStorage()
	require.NoError(t, db.Seed(t.Context(), storage, at))
	versions := make(map[string]string)
	for key, version := range storage.All() {
		versions[key] = version
	}
	return versions
}

func TestDatabase(t *testing.T) {
	db := openTestDatabase(t)
	here, there, other := place{"here", pods}, place{"there", pods}, place{"here", widgets}
	apply := func(changes ...change) { require.NoError(t, db.Apply(t.Context(), changes)) }

	apply(put(here, "ns", "a", "1", "10"), put(here, "ns", "b", "2", "11"), put(here, "", "c", "3", "12"),
		put(there, "ns", "a", "1", "20"), put(other, "ns", "a", "1", "30"))
	require.Equal(t, map[string]string{"ns/a": "10", "ns/b": "11", "c": "12"}, seeded(t, db, here))
	require.Equal(t, map[string]string{"ns/a": "20"}, seeded(t, db, there))

	// In one transaction, the order counts.
	apply(put(here, "ns", "a", "1", "13"), change{kind: removeRow, place: here, namespace: "ns", name: "a"}, put(here, "ns", "a", "4", "14"),
		change{kind: removeRow, place: here, namespace: "ns", name: "b"}, change{kind: removeRow, place: here, namespace: "ns", name: "unknown"})
	require.Equal(t, map[string]string{"ns/a": "14", "c": "12"}, seeded(t, db, here))

	// Another version is not known, until its rows are replaced or dropped.
	later := here
	later.resource.Version = "v2"
	require.Empty(t, seeded(t, db, later))
	apply(put(later, "ns", "a", "4", "14"))
	require.Equal(t, map[string]string{"ns/a": "14"}, seeded(t, db, later))
	require.Equal(t, map[string]string{"c": "12"}, seeded(t, db, here))
	apply(change{kind: dropOldVersions, place: later})
	require.Empty(t, seeded(t, db, here))

	apply(change{kind: dropResource, place: later})
	require.Empty(t, seeded(t, db, later))
	require.Equal(t, map[string]string{"ns/a": "20"}, seeded(t, db, there))
	require.Equal(t, map[string]string{"ns/a": "30"}, seeded(t, db, other))
}

// Rows are read as they were written.
func TestDatabaseReadsObjects(t *testing.T) {
	db := openTestDatabase(t)
	at := place{"here", pods}
	require.NoError(t, db.Apply(t.Context(), []change{put(at, "ns", "a", "uid-a", "10")}))
	var rows []change
	require.NoError(t, db.Objects(t.Context(), at, func(row change) error {
		rows = append(rows, row)
		return nil
	}))
	require.Equal(t, []change{put(at, "ns", "a", "uid-a", "10")}, rows)
}

// All or nothing.
func TestDatabaseRollsBack(t *testing.T) {
	db := openTestDatabase(t)
	at := place{"here", pods}
	err := db.Apply(t.Context(), []change{put(at, "ns", "a", "1", "10"), {kind: changeKind(99)}})
	require.EqualError(t, err, "unknown kind of change 99")
	require.Empty(t, seeded(t, db, at))
	require.NoError(t, db.Apply(t.Context(), []change{put(at, "ns", "a", "1", "10")}))
	require.Len(t, seeded(t, db, at), 1)
}

// What was written is there after the file is opened again; a path is a path, not a part of a URL.
func TestDatabaseStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?mode=memory&c%20#d.db")
	at := place{"here", pods}
	for range 2 {
		db, err := openDatabase(t.Context(), path)
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
	_, err := openDatabase(t.Context(), db.path)
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
