package sqlsink

import (
	"context"

	"github.com/jackc/pgx/v5/pgconn"
)

// errPooler says that the address is that of a pooler that gives sessions away. Locks and settings of a
// session would stay with others, and temporary tables and prepared statements would not be there.
var errPooler = &UnusableError{"a pooler between it and this program gives sessions to other clients after each transaction",
	"name the address of the server itself, or have the pooler keep sessions (pool_mode = session in PgBouncer)"}

// theSession tells a session of a server from all others.
const theSession = `SELECT pg_backend_pid() || ' ' || pg_postmaster_start_time()`

// checkSessions returns errPooler unless each connection is a session of its own: one client may not get
// the session of another one, nor another session while that one is in a transaction. It leaves no trace
// in the sessions.
func checkSessions(ctx context.Context, config *pgconn.Config) error {
	one, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = one.Close(ctx) }() // nothing was written
	other, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = other.Close(ctx) }()
	before, err := ask(ctx, one, theSession)
	if err != nil {
		return err
	}
	of, err := ask(ctx, other, `BEGIN; `+theSession)
	if err != nil {
		return err
	}
	if of == before {
		return errPooler
	}
	after, err := ask(ctx, one, theSession)
	if err == nil && after != before {
		return errPooler
	}
	return err
}

// ask returns the first value of the last statement.
func ask(ctx context.Context, conn *pgconn.PgConn, statements string) (string, error) {
	results, err := conn.Exec(ctx, statements).ReadAll()
	if err != nil {
		return "", err
	}
	return string(results[len(results)-1].Rows[0][0]), nil
}
