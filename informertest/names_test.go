package informertest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/informertest"
)

// identities are the names and UIDs of some objects whose names the server makes.
func identities(t *testing.T, seed uint64) (made []string) {
	s := start(t, informertest.Options{Seed: seed})
	for range 3 {
		w := widget("a", "1", 1)
		w.SetName("")
		w.SetGenerateName("w-")
		created, err := s.Create(widgets, w)
		require.NoError(t, err)
		require.Regexp(t, "^w-.{5}$", created.GetName())
		require.Regexp(t, "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$", string(created.GetUID()))
		made = append(made, created.GetName(), string(created.GetUID()))
	}
	return made
}

func TestSeedDecidesNamesAndUIDs(t *testing.T) {
	require.Equal(t, identities(t, 1), identities(t, 1))
	require.NotEqual(t, identities(t, 1), identities(t, 2))
}

func TestNoSeedMakesRandomNamesAndUIDs(t *testing.T) {
	require.NotEqual(t, identities(t, 0), identities(t, 0))
}
