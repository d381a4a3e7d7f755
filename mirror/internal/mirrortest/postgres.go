package mirrortest

import (
	"errors"
	"sync"
	"testing"

	"github.com/rvinformer/informer/sqlsink"
	"github.com/rvinformer/informer/sqlsink/pgtest"
	"github.com/stretchr/testify/require"
)

// sharedPostgres is one PostgreSQL server for all tests that do nothing to the server itself.
var sharedPostgres = sync.OnceValues(func() (*pgtest.Server, error) { return pgtest.New() })

// NewPostgres creates a database, and returns its address.
func NewPostgres(t testing.TB) string {
	server, err := sharedPostgres()
	if errors.Is(err, pgtest.ErrMissing) {
		pgtest.Skip(t)
	}
	require.NoError(t, err)
	return server.NewDatabase(t)
}

// StopPostgres ends the server of NewPostgres. It is for TestMain.
func StopPostgres() error {
	server, err := sharedPostgres()
	if err != nil {
		return nil // it was said
	}
	return server.Stop()
}

// Open opens a database until the test ends.
func Open(t testing.TB, config sqlsink.Config) *sqlsink.Sink {
	db, err := sqlsink.Open(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}
