package main

import (
	"errors"
	"sync"
	"testing"

	"github.com/rvinformer/informer/mirror/pgtest"
	"github.com/stretchr/testify/require"
)

// sharedPostgres is one PostgreSQL server for all tests that do nothing to the server itself.
var sharedPostgres = sync.OnceValues(func() (*pgtest.Server, error) { return pgtest.New() })

// newPostgresAddress creates a database, and returns its address.
func newPostgresAddress(t *testing.T) string {
	server, err := sharedPostgres()
	if errors.Is(err, pgtest.ErrMissing) {
		pgtest.Skip(t)
	}
	require.NoError(t, err)
	return server.NewDatabase(t)
}

// openPostgresFor opens a database, which the test closes.
func openPostgresFor(t *testing.T, address string, alone bool) *postgres {
	config, _, err := parseAddress(address)
	require.NoError(t, err)
	db, err := openPostgres(t.Context(), config, shardsOf(alone))
	require.NoError(t, err)
	return db
}

// shardsOf is the number of shards of a mirror that is alone, or shares the work.
func shardsOf(alone bool) int {
	if alone {
		return 0
	}
	return 1
}

// openTestPostgres opens a database until the test ends.
func openTestPostgres(t *testing.T, address string, alone bool) *postgres {
	db := openPostgresFor(t, address, alone)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// The demo with PostgreSQL, as a newcomer runs it: its database equals the servers, and so it does
// when other clusters have come under the same names.
func TestDemoWithPostgres(t *testing.T) {
	t.Parallel()
	address := newPostgresAddress(t)
	for range 2 {
		to := newOutput()
		require.Equal(t, exitOK, run(t.Context(), []string{"--demo", "--demo-objects=600", "--once", "--database", address}, to.screen), to)
		require.Contains(t, to.String(), "21 synced, 0 failed")
		require.Regexp(t, `verified: \d\d\d rows equal 3 servers`, to.String())
	}
}
