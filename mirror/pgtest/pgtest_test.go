package pgtest_test

import (
	"testing"

	"github.com/rvinformer/informer/mirror/pgtest"
	"github.com/stretchr/testify/require"
)

// What was committed is there after the server was killed and started again.
func TestServerIsKilledAndRestarted(t *testing.T) {
	server := pgtest.Start(t)
	require.NotEqual(t, server.NewDatabase(t), server.NewDatabase(t))
	server.Query(t, "test2", "CREATE TABLE things AS SELECT generate_series(1, 3) AS thing")
	server.Kill(t)
	require.Error(t, server.Psql("test2").Run())
	server.Restart(t)
	require.Equal(t, "1\n2\n3", server.Query(t, "test2", "SELECT thing FROM things ORDER BY thing"))
}
