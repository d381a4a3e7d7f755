package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHandlers runs a plan with few pods, and holds what came out against what cannot be otherwise.
func TestHandlers(t *testing.T) {
	p := newHandlers()
	p.quicken()
	document := measured(t, p)
	require.Contains(t, document, "## Several handlers that start together")
	for _, h := range p.heats {
		own := h.runs[ownInformer][0]
		for _, v := range h.variants {
			r := h.runs[v.Name][0]
			require.Equal(t, p.pods, r.Delivered, v.Name)
			require.Positive(t, r.LiveBytes, v.Name)
			require.InEpsilon(t, own.ServerBytes, r.ServerBytes, 0.01, "%s: the server sends the set once", v.Name)
		}
	}
}
