package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnswerCountsForNoNewerVersion(t *testing.T) {
	k := newAcquaintance()
	_, mine := k.join("7", true)
	require.True(t, mine)
	for _, version := range []string{"", "6", "7"} {
		_, mine = k.join(version, true)
		require.False(t, mine, version)
	}
	_, mine = k.join("8", true)
	require.True(t, mine)
}
