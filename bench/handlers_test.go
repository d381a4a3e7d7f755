package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHandlers runs a plan with few pods, and holds what came out against what cannot be otherwise.
// The server sends the set once to a few handlers. On a busy machine, one that falls behind the
// others of many lists by itself, so that it may be sent to each.
func TestHandlers(t *testing.T) {
	p := newHandlers()
	p.pods, p.runs = 10_000, 1
	document := measured(t, p)
	require.Contains(t, document, "## Several handlers that start together")
	for _, h := range p.heats {
		own := h.runs[ownInformer][0]
		for _, v := range h.variants {
			r := h.runs[v.Name][0]
			require.Equal(t, p.pods, r.Delivered, v.Name)
			require.Positive(t, r.LiveBytes, v.Name)
			sets := float64(r.ServerBytes) / float64(own.ServerBytes)
			require.Greater(t, sets, 0.99, v.Name)
			require.Less(t, sets, float64(sharedBy[len(sharedBy)-1])+0.1, v.Name)
		}
	}
}
