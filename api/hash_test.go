package api

import (
	"hash/fnv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestHash holds the hash equal to Go's and to apimachinery's.
func TestHash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		h := fnv.New64a()
		h.Write([]byte(text))
		require.Equal(t, h.Sum64(), hashOf(text))
	})
}
