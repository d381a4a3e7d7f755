package sqlsink_test

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

func TestRowsOfPlacesAreApart(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		sink := opened(t, sqlsink.Config{Address: address})
		here, there, other := sink.Place("here", pods), sink.Place("there", pods), sink.Place("here", configmaps)
		require.NoError(t, write(t.Context(), here, put("a", "10"), put("b", "11"), informer.Event{Type: informer.Synced, Key: "ns/x"}))
		require.NoError(t, write(t.Context(), there, put("a", "20")))
		require.NoError(t, write(t.Context(), other, put("a", "30")))
		require.Equal(t, map[string]string{"ns/a": "10", "ns/b": "11"}, stored(t, here))
		require.Equal(t, map[string]string{"ns/a": "20"}, stored(t, there))

		require.NoError(t, write(t.Context(), here, put("a", "12"), gone("b"), gone("unknown")))
		require.Equal(t, map[string]string{"ns/a": "12"}, stored(t, here))
		require.Equal(t, map[string]string{"ns/a": "20"}, stored(t, there))
		require.Equal(t, map[string]string{"ns/a": "30"}, stored(t, other))
		require.Equal(t, map[string]string{
			"ns/a": `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"ns","resourceVersion":"12","uid":"a"}}`,
		}, objects(t, here))

		known, err := sink.Known(t.Context(), fleet.Unit{Cluster: "here"})
		require.NoError(t, err)
		require.ElementsMatch(t, []any{pods, configmaps}, []any{known[0], known[1]})
	})
}

// An object that was deleted and created anew has one row.
func TestRecreatedObjectHasOneRow(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		here := opened(t, sqlsink.Config{Address: address}).Place("here", pods)
		require.NoError(t, write(t.Context(), here, put("a", "10")))
		again := put("a", "11")
		again.Object.(interface{ SetUID(uid types.UID) }).SetUID("another")
		require.NoError(t, write(t.Context(), here, again))
		require.Equal(t, map[string]string{"ns/a": "11"}, stored(t, here))
		require.Len(t, objects(t, here), 1)
	})
}

// Rows of another version of the API are older than what any list shows, so that they are replaced
// or removed.
func TestRowsOfAnotherVersionAreOld(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		sink := opened(t, sqlsink.Config{Address: address})
		later := pods
		later.Version = "v2"
		here, now := sink.Place("here", pods), sink.Place("here", later)
		require.NoError(t, write(t.Context(), here, put("a", "10"), put("b", "11")))
		require.Equal(t, map[string]string{"ns/a": "0", "ns/b": "0"}, stored(t, now))
		require.NoError(t, write(t.Context(), now, put("a", "10"), gone("b")))
		require.Equal(t, map[string]string{"ns/a": "10"}, stored(t, now))
	})
}

func text(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// saved is the checkpoint of a place, or "none".
func saved(t testing.TB, at sqlsink.Place) string {
	t.Helper()
	r, err := at.Checkpoint().Load(t.Context())
	if errors.Is(err, fs.ErrNotExist) {
		return "none"
	}
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(text)
}

// A checkpoint is kept whole, of any size, and only for its place.
func TestCheckpointsAreKept(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		sink := opened(t, sqlsink.Config{Address: address})
		here, there := sink.Place("here", pods), sink.Place("there", pods)
		save := func(at sqlsink.Place, what string) {
			require.NoError(t, at.Checkpoint().Save(t.Context(), text(what)))
		}
		require.NoError(t, write(t.Context(), here, put("a", "10")))
		require.NoError(t, write(t.Context(), there, put("a", "10")))

		require.Equal(t, "none", saved(t, here))
		large := strings.Repeat("0123456789", 1<<16)
		save(here, large)
		save(there, "there")
		require.Equal(t, large, saved(t, here))
		save(here, "small")
		require.Equal(t, "small", saved(t, here))

		// What fails leaves what was there.
		failed := errors.New("failed")
		require.ErrorIs(t, here.Checkpoint().Save(t.Context(), func(w io.Writer) error {
			return errors.Join(text(large)(w), failed)
		}), failed)
		require.Panics(t, func() {
			_ = here.Checkpoint().Save(t.Context(), func(w io.Writer) error { panic(text(large)(w)) })
		})
		require.Equal(t, "small", saved(t, here))

		// Rows of another version may be newer than the checkpoint, whichever version is asked for.
		later := pods
		later.Version = "v2"
		now := sink.Place("here", later)
		require.NoError(t, write(t.Context(), now, put("b", "10")))
		require.Equal(t, "none", saved(t, here))
		require.Equal(t, "none", saved(t, now))
		require.NoError(t, write(t.Context(), here, gone("b")))
		require.Equal(t, "small", saved(t, here))

		// Without a row it is not believed.
		require.NoError(t, write(t.Context(), here, gone("a")))
		require.Equal(t, "none", saved(t, here))
		require.Equal(t, "there", saved(t, there))
	})
}
