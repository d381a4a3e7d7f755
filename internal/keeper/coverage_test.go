package keeper

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A version may be claimed after a complete list, until the next list or a gap.
func TestCoverage(t *testing.T) {
	var c coverage
	require.False(t, c.is(0), "nothing was listed")
	c.complete(3)
	require.True(t, c.is(3))
	require.False(t, c.is(4), "there is a gap since the list began")
	c.begin()
	require.False(t, c.is(3), "a list is under way")
	c.complete(4)
	require.True(t, c.is(4), "the list has repaired the gap")
}
