package factory_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/factory"
)

func TestClusterHasOneServerUntilAllUsersRelease(t *testing.T) {
	f := factory.New()
	first, err := f.UseServer("east", "one")
	require.NoError(t, err)
	second, err := f.UseServer("east", "one")
	require.NoError(t, err)
	_, err = f.UseServer("west", "two")
	require.NoError(t, err)
	first()
	first()
	_, err = f.UseServer("east", "two")
	var conflict *factory.ServerConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, factory.ServerConflictError{Cluster: "east", Server: "two", Used: "one"}, *conflict)
	require.EqualError(t, err, `cluster "east" has the server one, not two: give each cluster a name`)
	second()
	_, err = f.UseServer("east", "two")
	require.NoError(t, err)
}
