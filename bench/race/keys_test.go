package race

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKeysAreThoseOfAList holds the keys against what the measurements say of them.
func TestKeysAreThoseOfAList(t *testing.T) {
	const n = 20_000
	for _, names := range []Names{PodNames, RandomNames} {
		keys, err := names.keys(n)
		require.NoError(t, err)
		require.Equal(t, n, keys.len())
		var all []string
		for i := range n {
			all = append(all, keys.at(i))
		}
		require.True(t, slices.IsSorted(all))
		require.Len(t, slices.Compact(slices.Clone(all)), n)
		for i := range n {
			_, there := slices.BinarySearch(all, keys.near(i))
			require.False(t, there)
		}
		obj, later := keys.object(7, 0), keys.object(7, 1)
		require.Equal(t, all[7], obj.Namespace+"/"+obj.Name)
		require.Len(t, string(obj.UID), 36)
		require.Equal(t, obj.UID, later.UID)
		require.Less(t, obj.ResourceVersion, later.ResourceVersion)
	}
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(shuffled(n)))), n)
}
