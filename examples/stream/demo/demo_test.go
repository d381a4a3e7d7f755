package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDemoComparesTheTableWithTheCluster(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, demo(&out, t.TempDir()))
	require.Contains(t, out.String(), "After 2000 changes, the table of the stream and the cluster have the same ")
}
