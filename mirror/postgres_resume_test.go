package main

import (
	"testing"

	"github.com/rvinformer/informer/informertest"
	"github.com/stretchr/testify/require"
)

// With PostgreSQL too, a start goes on where the last run has stopped, another server under the
// name of a cluster waits, and rows that are gone are fetched again.
func TestResumeWithPostgres(t *testing.T) {
	t.Parallel()
	address := newPostgresAddress(t)
	run := func(c *demoCluster) map[string]row {
		t.Helper()
		return mirroredIn(t, openPostgresFor(t, address, true), c)
	}
	c := newTestCluster(t, "here", 400, informertest.Options{})
	run(c)
	require.Len(t, listed(c.server), len(c.stock))

	changeAll(t, c)
	for name, row := range run(c) {
		row.counts.handled = 0
		require.Equal(t, counts{added: 2, updated: 2, deleted: 2}, row.counts, name)
		require.True(t, row.resumed, name)
	}
	require.Empty(t, listed(c.server))

	c.server.Compact()
	changeAll(t, c)
	c.server.Compact()
	run(c)
	require.NotEmpty(t, listed(c.server))

	db := openPostgresFor(t, address, true)
	another := beginAnew(t, db, c)
	require.NoError(t, db.Close())
	run(another)
	require.Empty(t, listed(another.server))

	db = openPostgresFor(t, address, true)
	_, err := db.pool.Exec(t.Context(), "DELETE FROM objects WHERE resource = 'pods'")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	run(another)
	require.True(t, listed(another.server).Has(pods))
}
