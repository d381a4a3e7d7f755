package keeper

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/known"
	"github.com/rvinformer/informer/internal/report"
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

// A later run of an informer does not go on from "0", which a server takes for any version.
func TestVersionZeroIsNotClaimed(t *testing.T) {
	k := Keeper{Versions: &known.Versions{}}
	k.Report = &report.Report{}
	k.covers.complete(k.gaps())
	require.Equal(t, "7", k.covered("7"))
	require.Empty(t, k.covered("0"))
}
