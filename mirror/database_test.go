package main

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/rvinformer/informer"
	"github.com/stretchr/testify/require"
)

func put(at place, namespace, name, uid, resourceVersion string) change {
	return change{kind: putRow, place: at, namespace: namespace, name: name, uid: uid, resourceVersion: resourceVersion, object: `{"a":1}`}
}

// seeded returns what a start knows of a place.
func seeded(t testing.TB, db database, at place) map[string]string {
	storage := informer.NewResourceVersionStorage()
	require.NoError(t, db.Seed(t.Context(), storage, at))
	versions := make(map[string]string)
	for key, version := range storage.All() {
		versions[key] = version
	}
	return versions
}

// overBoth runs a test with an empty database of each kind.
func overBoth(t *testing.T, test func(t *testing.T, db database)) {
	t.Run("sqlite", func(t *testing.T) { test(t, openTestDatabase(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, openTestPostgres(t, newPostgresAddress(t), true)) })
}

func TestDatabase(t *testing.T) {
	overBoth(t, func(t *testing.T, db database) {
		here, there, other := place{cluster: "here", resource: pods}, place{cluster: "there", resource: pods}, place{cluster: "here", resource: widgets}
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
	})
}

// Rows are read as they were written.
func TestDatabaseReadsObjects(t *testing.T) {
	overBoth(t, func(t *testing.T, db database) {
		at := place{cluster: "here", resource: pods}
		require.NoError(t, db.Apply(t.Context(), []change{put(at, "ns", "a", "uid-a", "10")}))
		var rows []change
		require.NoError(t, db.Objects(t.Context(), at, func(row change) error {
			rows = append(rows, row)
			return nil
		}))
		require.Equal(t, []change{put(at, "ns", "a", "uid-a", "10")}, rows)
	})
}

// All or nothing.
func TestDatabaseRollsBack(t *testing.T) {
	overBoth(t, func(t *testing.T, db database) {
		at := place{cluster: "here", resource: pods}
		err := db.Apply(t.Context(), []change{put(at, "ns", "a", "1", "10"), {kind: changeKind(99)}})
		require.EqualError(t, err, "unknown kind of change 99")
		require.Empty(t, seeded(t, db, at))
		require.NoError(t, db.Apply(t.Context(), []change{put(at, "ns", "a", "1", "10")}))
		require.Len(t, seeded(t, db, at), 1)
	})
}

func write(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// A checkpoint is kept whole, of any size, and only for its place.
func TestDatabaseKeepsCheckpoints(t *testing.T) {
	overBoth(t, func(t *testing.T, db database) {
		here, there := place{cluster: "here", resource: pods}, place{cluster: "there", resource: pods}
		load := func(of place) string {
			r, err := db.LoadCheckpoint(t.Context(), of)
			if errors.Is(err, fs.ErrNotExist) {
				return "none"
			}
			require.NoError(t, err)
			defer func() { require.NoError(t, r.Close()) }()
			text, err := io.ReadAll(r)
			require.NoError(t, err)
			return string(text)
		}
		save := func(of place, text string) {
			require.NoError(t, db.SaveCheckpoint(t.Context(), of, "server", write(text)))
		}
		require.NoError(t, db.Apply(t.Context(), []change{put(here, "ns", "a", "1", "10"), put(there, "ns", "a", "1", "10")}))

		require.Equal(t, "none", load(here))
		large := strings.Repeat("0123456789", checkpointPart/4)
		save(here, large)
		save(there, "there")
		require.Equal(t, large, load(here))
		save(here, "small")
		require.Equal(t, "small", load(here))

		// What fails leaves what was there.
		failed := errors.New("failed")
		require.ErrorIs(t, db.SaveCheckpoint(t.Context(), here, "server", func(w io.Writer) error {
			return errors.Join(write(large)(w), failed)
		}), failed)
		require.Panics(t, func() {
			_ = db.SaveCheckpoint(t.Context(), here, "server", func(w io.Writer) error { panic(write(large)(w)) })
		})
		require.Equal(t, "small", load(here))

		// Rows of another version may be newer than the checkpoint, whichever version is asked for.
		later := here
		later.resource.Version = "v2"
		require.NoError(t, db.Apply(t.Context(), []change{put(later, "ns", "b", "1", "10")}))
		require.Equal(t, "none", load(here))
		require.Equal(t, "none", load(later))
		require.NoError(t, db.Apply(t.Context(), []change{{kind: dropOldVersions, place: here}}))
		require.Equal(t, "small", load(here))

		// Without a row it is not believed.
		require.NoError(t, db.Apply(t.Context(), []change{{kind: removeRow, place: here, namespace: "ns", name: "a"}}))
		require.Equal(t, "none", load(here))
		require.NoError(t, db.Apply(t.Context(), []change{put(here, "ns", "a", "1", "10")}))
		require.Equal(t, "small", load(here))

		require.Equal(t, "there", load(there))
		require.NoError(t, db.Apply(t.Context(), []change{{kind: dropResource, place: there}, put(there, "ns", "a", "1", "10")}))
		require.Equal(t, "none", load(there))
	})
}
