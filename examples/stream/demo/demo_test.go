package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDemoComparesAConsumerWithTheCluster(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, demo(&out, t.TempDir()))
	require.Contains(t, out.String(), "After 2000 changes, a consumer of the stream and the cluster have the same ")
}
