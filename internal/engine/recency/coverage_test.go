package recency_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/engine/recency"
)

// A version may be claimed after a complete list, until the next list or a gap.
func TestCoverage(t *testing.T) {
	var c recency.Coverage
	require.Empty(t, c.Claim("7", 0), "nothing was listed")
	c.Begin(3)
	c.End(true)
	require.Equal(t, "7", c.Claim("7", 3))
	require.Empty(t, c.Claim("0", 3), "a server takes it for any version")
	require.Empty(t, c.Claim("7", 4), "there is a gap since the list began")
	c.Begin(4)
	require.Empty(t, c.Claim("7", 4), "a list is under way")
	c.End(true)
	require.Equal(t, "7", c.Claim("7", 4), "the list has repaired the gap")
	c.Begin(4)
	c.End(false)
	require.Empty(t, c.Claim("7", 4), "the list has not shown everything")
}
